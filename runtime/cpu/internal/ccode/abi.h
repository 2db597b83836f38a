/* What a launch looks like to the code that evaluates it. Printed kernels
 * carry this text, so it includes nothing: the compiler's own type macros
 * stand for stdint.h. Strides, offsets and positions count elements. */
#ifndef MR_ABI
#define MR_ABI 1

typedef __INT8_TYPE__ mr_i8;
typedef __UINT8_TYPE__ mr_u8;
typedef __INT16_TYPE__ mr_i16;
typedef __UINT16_TYPE__ mr_u16;
typedef __INT32_TYPE__ mr_i32;
typedef __UINT32_TYPE__ mr_u32;
typedef __INT64_TYPE__ mr_i64;
typedef __UINT64_TYPE__ mr_u64;

#define MR_MAX_RANK 16

/* One stage of a view that no stride describes: a linear position is taken
 * apart row-major over dims and put together again with stride and offset. */
typedef struct mr_stage {
	mr_i64 offset;
	mr_i64 rank;
	const mr_i64 *dims;
	const mr_i64 *stride;
} mr_stage;

/* One operand. The element of a point i is at offset + sum(stride[d]*i[d]),
 * then through the stages. Index operands have no base: the position itself is
 * their value. */
typedef struct mr_operand {
	char *base;
	mr_i64 offset;
	mr_i64 stride[MR_MAX_RANK];
	const mr_stage *stages;
	mr_i32 nstages;
	/* Outputs only: bit d is set where stride[d] is 0 and dims[d] above 1. Only
	 * points at position 0 of every such dim store. */
	mr_u32 guard;
	/* Loads through an index i in [0, isize): the element istride*i further on. */
	mr_i64 istride;
	mr_i64 isize;
	/* Outputs only: set where there is so much that caches would lose it before
	 * it is read again. It may be stored past them then; whoever tells other
	 * threads of it waits for such stores. */
	mr_i64 stream;
} mr_operand;

/* The least index that was out of range where that is a fault, and its
 * operand. One for a launch. */
typedef struct mr_fault {
	mr_i32 lock;
	mr_i32 set;
	mr_i64 operand;
	mr_i64 index;
} mr_fault;

/* What an evaluation needs. Points are numbered row-major over dims. */
typedef struct mr_args {
	mr_i64 rank;
	mr_i64 dims[MR_MAX_RANK];
	const mr_operand *ops;   /* one per operand of the kernel */
	const mr_u64 *scalars;   /* bits in the kernel's scalar dtypes */
	void *const *bufs;       /* one per Reduce: its value of point p goes to element p-begin, in the dtype's memory size */
	mr_fault *fault;         /* where the kernel loads through indices */
} mr_args;

/* Position p of an operand, gone through its stages. */
static inline mr_i64 mr_staged(const mr_operand *o, mr_i64 p)
{
	for (mr_i32 k = 0; k < o->nstages; k++) {
		const mr_stage *s = o->stages + k;
		mr_i64 q = s->offset;
		for (mr_i64 d = s->rank - 1; d >= 0; d--) {
			q += p % s->dims[d] * s->stride[d];
			p /= s->dims[d];
		}
		p = q;
	}
	return p;
}

/* Notes an index of operand k that is out of range. The least is remembered,
 * whichever thread finds it, so that the message does not depend on their
 * order. */
static inline __attribute__((cold)) void mr_note_fault(const mr_args *a, mr_i64 k, mr_i64 index)
{
	mr_fault *f = a->fault;
	while (__atomic_exchange_n(&f->lock, 1, __ATOMIC_ACQUIRE))
		;
	if (!f->set || index < f->index || (index == f->index && k < f->operand)) {
		f->operand = k;
		f->index = index;
		f->set = 1;
	}
	__atomic_store_n(&f->lock, 0, __ATOMIC_RELEASE);
}

/* Evaluates points [begin, end): loads, body, stores, values to reduce. */
typedef void (*mr_eval)(const mr_args *a, mr_i64 begin, mr_i64 end);

#endif
