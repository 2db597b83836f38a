//go:build cgo

#include <math.h>
#include <string.h>

#include "run.h"

#if defined __GNUC__ && !defined __clang__
/* Selections on floats become vector code only without traps to mind. */
#pragma GCC optimize("no-trapping-math", "no-math-errno")
#endif

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

/* Maximum: NaN wins, and +0 is above -0: equal floats differ in nothing but
 * the sign of zero, which the conjunction of their bits settles. */
#define MAXIMUM(F, U, NAME)                                \
	static inline F NAME(F a, F b)                     \
	{                                                  \
		union { F f; U u; } x = {a}, y = {b}, z;   \
		z.u = x.u & y.u;                           \
		F r = a > b ? a : b;                       \
		r = a == b ? z.f : r;                      \
		return a != a ? a : r;                     \
	}
MAXIMUM(float, mr_u32, max_f32)
MAXIMUM(double, mr_u64, max_f64)

/* Sums of integers wrap, which unsigned types define. */
#define ADD(a, b) ((a) + (b))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

#define T mr_u8
#define NAME sum_u8
#define START 0
#define COMBINE(a, b) (mr_u8)ADD(a, b)
#include "fold.h"
#define T mr_u32
#define NAME sum_u32
#define START 0
#define COMBINE ADD
#include "fold.h"
#define T mr_u64
#define NAME sum_u64
#define START 0
#define COMBINE ADD
#include "fold.h"
#define T float
#define NAME sum_f32
#define START -0.0f
#define COMBINE ADD
#include "fold.h"
#define T double
#define NAME sum_f64
#define START -0.0
#define COMBINE ADD
#include "fold.h"

#define T mr_u8
#define NAME max_u8
#define START 0
#define COMBINE LARGER
#include "fold.h"
#define T mr_i32
#define NAME max_i32
#define START (-2147483647 - 1)
#define COMBINE LARGER
#include "fold.h"
#define T mr_i64
#define NAME max_i64
#define START (-9223372036854775807ll - 1)
#define COMBINE LARGER
#include "fold.h"
#define T mr_u32
#define NAME max_u32
#define START 0
#define COMBINE LARGER
#include "fold.h"
#define T mr_u64
#define NAME max_u64
#define START 0
#define COMBINE LARGER
#include "fold.h"
#define T float
#define NAME max_f32
#define START (-(float)INFINITY)
#define COMBINE max_f32
#include "fold.h"
#define T double
#define NAME max_f64
#define START (-(double)INFINITY)
#define COMBINE max_f64
#include "fold.h"

/* What folding a dtype needs. */
typedef struct {
	mr_i64 size;
	void (*start)(void *acc, mr_i64 n);
	void (*add)(void *acc, const void *values, mr_i64 r, mr_i64 m, mr_i64 n);
	void (*lanes)(void *acc, mr_i64 n);
	void (*combine)(void *total, const void *block, mr_i64 n);
} folder;

#define FOLDER(T, N) {sizeof(T), start_##N, add_##N, lanes_##N, combine_##N}

static const folder folders[2][MR_F64 + 1] = {
	[MR_SUM] = {
		[MR_U8] = FOLDER(mr_u8, sum_u8),
		[MR_I32] = FOLDER(mr_u32, sum_u32),
		[MR_I64] = FOLDER(mr_u64, sum_u64),
		[MR_U32] = FOLDER(mr_u32, sum_u32),
		[MR_U64] = FOLDER(mr_u64, sum_u64),
		[MR_F32] = FOLDER(float, sum_f32),
		[MR_F64] = FOLDER(double, sum_f64),
	},
	[MR_MAX] = {
		[MR_U8] = FOLDER(mr_u8, max_u8),
		[MR_I32] = FOLDER(mr_i32, max_i32),
		[MR_I64] = FOLDER(mr_i64, max_i64),
		[MR_U32] = FOLDER(mr_u32, max_u32),
		[MR_U64] = FOLDER(mr_u64, max_u64),
		[MR_F32] = FOLDER(float, max_f32),
		[MR_F64] = FOLDER(double, max_f64),
	},
};

/* Values evaluated at a time, so that they stay in the first-level cache. A
 * multiple of the lanes that divides a block. */
#define CHUNK 2048

/* Columns taken together where the last kept dim is innermost. */
#define COLUMNS 128

typedef struct {
	const mr_launch *l;
	mr_pool *pool;
	mr_i64 outputs; /* points of the kept dims */
	mr_i64 reduced; /* points of the reduced dims */
	mr_i64 blocks;  /* of MR_BLOCK reduced points; units of a share are (block, outputs) where split */
	mr_i64 width;   /* COLS: size of the last kept dim; ROWS: 1 */
	mr_i64 tiles;   /* COLS: tiles of a row of outputs */
	int split;      /* blocks are shared out, and their results go to partials */
	char *partials; /* per reduce, per block, per output: 8 bytes */
	int failed;
} reduction;

static mr_i64 through_stages(const mr_operand *o, mr_i64 p)
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

/* Kept dim k is dim k of the domain, but the last one of MR_COLS. */
static mr_i64 kept_dim(const mr_launch *l, mr_i64 k)
{
	return l->mode == MR_COLS && k == l->kept - 1 ? l->args.rank - 1 : k;
}

/* Writes n results to outputs first, first+1, … of reduction k. */
static void write_results(const mr_launch *l, int k, mr_i64 first, mr_i64 n, const char *values)
{
	const mr_operand *o = l->args.ops + l->reduces[k].operand;
	const mr_i64 size = folders[l->reduces[k].op][l->reduces[k].dt].size;
	for (mr_i64 j = 0; j < n; j++) {
		mr_i64 p = o->offset, out = first + j;
		int on = 1;
		for (mr_i64 d = l->kept - 1; d >= 0; d--) {
			const mr_i64 dim = kept_dim(l, d), at = out % l->args.dims[dim];
			p += at * o->stride[dim];
			out /= l->args.dims[dim];
			on &= at == 0 || !(o->guard >> dim & 1);
		}
		if (on)
			memcpy(o->base + through_stages(o, p) * size, values + j * size, (size_t)size);
	}
}

/* Where a thread's memory is cut. */
typedef struct {
	void *bufs[MR_MAX_REDUCES];
	char *acc[MR_MAX_REDUCES];
	char *total[MR_MAX_REDUCES]; /* COLUMNS values */
} room;

static int make_room(reduction *x, int who, mr_args *a, room *m)
{
	const mr_launch *l = x->l;
	const mr_i64 acc = x->width > 1 ? MR_LANES * COLUMNS * 8 : MR_LANES * 8;
	const mr_i64 each = CHUNK * 8 + acc + COLUMNS * 8;
	char *s = mr_scratch(x->pool, who, each * l->nreduce + l->scratch + 64);
	if (!s) {
		__atomic_store_n(&x->failed, 1, __ATOMIC_RELAXED);
		return -1;
	}
	for (mr_i64 k = 0; k < l->nreduce; k++, s += each) {
		m->bufs[k] = s;
		m->acc[k] = s + CHUNK * 8;
		m->total[k] = s + CHUNK * 8 + acc;
	}
	a->bufs = m->bufs;
	a->scratch = s;
	return 0;
}

static const folder *folder_of(const mr_launch *l, mr_i64 k)
{
	return &folders[l->reduces[k].op][l->reduces[k].dt];
}

/* Folds reduced points [r, end) of one block into the lanes: a->… are points
 * of n columns each, numbered from the reduced point `origin`. */
static void fold_block(const mr_launch *l, const mr_args *a, room *m, mr_i64 base, mr_i64 r, mr_i64 end, mr_i64 n)
{
	mr_i64 step = CHUNK / n;
	if (step > MR_LANES)
		step = step / MR_LANES * MR_LANES;
	for (mr_i64 k = 0; k < l->nreduce; k++)
		folder_of(l, k)->start(m->acc[k], n);
	for (; r < end; r += step) {
		const mr_i64 count = end - r < step ? end - r : step;
		l->eval(a, base + r * n, base + (r + count) * n);
		for (mr_i64 k = 0; k < l->nreduce; k++)
			folder_of(l, k)->add(m->acc[k], m->bufs[k], r, count, n);
	}
	for (mr_i64 k = 0; k < l->nreduce; k++)
		folder_of(l, k)->lanes(m->acc[k], n);
}

/* All or one of the blocks of n neighbouring outputs. */
static void fold_outputs(reduction *x, const mr_args *a, room *m, mr_i64 base, mr_i64 first, mr_i64 n, mr_i64 block)
{
	const mr_launch *l = x->l;
	const mr_i64 from = x->split ? block : 0, to = x->split ? block + 1 : x->blocks;
	for (mr_i64 b = from; b < to; b++) {
		const mr_i64 r = b * MR_BLOCK;
		fold_block(l, a, m, base, r, x->reduced - r < MR_BLOCK ? x->reduced : r + MR_BLOCK, n);
		for (mr_i64 k = 0; k < l->nreduce; k++) {
			const folder *f = folder_of(l, k);
			if (x->split)
				memcpy(x->partials + ((k * x->blocks + b) * x->outputs) * 8 + first * f->size, m->acc[k], (size_t)(n * f->size));
			else if (b == 0)
				memcpy(m->total[k], m->acc[k], (size_t)(n * f->size));
			else
				f->combine(m->total[k], m->acc[k], n);
		}
	}
	if (!x->split)
		for (mr_i64 k = 0; k < l->nreduce; k++)
			write_results(l, (int)k, first, n, m->total[k]);
}

/* Rows so short that many fit a chunk: one evaluation serves many outputs. */
static void short_rows(reduction *x, const mr_args *a, room *m, mr_i64 begin, mr_i64 end)
{
	const mr_launch *l = x->l;
	const mr_i64 step = CHUNK / x->reduced;
	for (mr_i64 o = begin; o < end; o += step) {
		const mr_i64 n = end - o < step ? end - o : step;
		l->eval(a, o * x->reduced, (o + n) * x->reduced);
		for (mr_i64 k = 0; k < l->nreduce; k++) {
			const folder *f = folder_of(l, k);
			for (mr_i64 j = 0; j < n; j++) {
				f->start(m->acc[k], 1);
				f->add(m->acc[k], (char *)m->bufs[k] + j * x->reduced * f->size, 0, x->reduced, 1);
				f->lanes(m->acc[k], 1);
				write_results(l, (int)k, o + j, 1, m->acc[k]);
			}
		}
	}
}

/* Units are outputs, or blocks of outputs. */
static void rows(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	reduction *x = ctx;
	mr_args a = x->l->args;
	room m;
	if (make_room(x, who, &a, &m))
		return;
	if (!x->split && x->reduced <= CHUNK / 2) {
		short_rows(x, &a, &m, begin, end);
		return;
	}
	for (mr_i64 u = begin; u < end; u++) {
		const mr_i64 o = x->split ? u / x->blocks : u;
		fold_outputs(x, &a, &m, o * x->reduced, o, 1, u % x->blocks);
	}
}

/* Units are tiles of neighbouring outputs, or blocks of such tiles. A tile is
 * a domain of its own: the reduced dims, then its columns. */
static void columns(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	reduction *x = ctx;
	const mr_launch *l = x->l;
	const mr_i64 outer = l->kept - 1, rank = l->args.rank;
	mr_operand ops[l->nops];
	mr_args a = l->args;
	room m;
	if (make_room(x, who, &a, &m))
		return;
	a.rank = rank - outer;
	a.ops = ops;
	for (mr_i64 u = begin; u < end; u++) {
		const mr_i64 t = x->split ? u / x->blocks : u;
		const mr_i64 row = t / x->tiles, left = t % x->tiles * COLUMNS;
		const mr_i64 n = x->width - left < COLUMNS ? x->width - left : COLUMNS;
		for (mr_i64 i = 0; i < l->nops; i++) {
			ops[i] = l->args.ops[i];
			mr_i64 at = row;
			for (mr_i64 d = outer - 1; d >= 0; d--) {
				ops[i].offset += at % l->args.dims[d] * ops[i].stride[d];
				at /= l->args.dims[d];
			}
			ops[i].offset += left * ops[i].stride[rank - 1];
			memmove(ops[i].stride, ops[i].stride + outer, (size_t)(rank - outer) * sizeof *ops[i].stride);
			ops[i].guard >>= outer;
		}
		memcpy(a.dims, l->args.dims + outer, (size_t)(rank - outer) * sizeof *a.dims);
		a.dims[a.rank - 1] = n;
		fold_outputs(x, &a, &m, 0, row * x->width + left, n, u % x->blocks);
	}
}

/* Combines the blocks of outputs [begin, end) in order. */
static void finish(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	reduction *x = ctx;
	(void)who;
	for (mr_i64 k = 0; k < x->l->nreduce; k++) {
		const folder *f = folder_of(x->l, k);
		char *first = x->partials + k * x->blocks * x->outputs * 8;
		for (mr_i64 b = 1; b < x->blocks; b++)
			f->combine(first + begin * f->size, first + b * x->outputs * 8 + begin * f->size, end - begin);
		write_results(x->l, (int)k, begin, end - begin, first + begin * f->size);
	}
}

/* The sum of nothing is +0. */
static void write_zeros(const mr_launch *l, mr_i64 outputs)
{
	static const char zero[8];
	for (mr_i64 k = 0; k < l->nreduce; k++)
		for (mr_i64 o = 0; o < outputs; o++)
			write_results(l, (int)k, o, 1, zero);
}

int mr_run_reduce(mr_pool *p, const mr_launch *l)
{
	reduction x = {.l = l, .pool = p, .outputs = 1, .width = 1, .tiles = 1};
	for (mr_i64 d = 0; d < l->kept; d++)
		x.outputs *= l->args.dims[kept_dim(l, d)];
	if (x.outputs == 0)
		return 0;
	if (l->total == 0) {
		write_zeros(l, x.outputs);
		return 0;
	}
	x.reduced = l->total / x.outputs;
	x.blocks = (x.reduced + MR_BLOCK - 1) / MR_BLOCK;
	mr_i64 units = x.outputs;
	if (l->mode == MR_COLS) {
		x.width = l->args.dims[l->args.rank - 1];
		x.tiles = (x.width + COLUMNS - 1) / COLUMNS;
		units = x.outputs / x.width * x.tiles;
	}
	mr_i64 threads = l->total * (l->bytes > 0 ? l->bytes : 1) / 65536 + 1;
	if (threads > mr_pool_threads(p))
		threads = mr_pool_threads(p);
	/* Too few outputs for the threads there are: share out their blocks. */
	x.split = threads > 1 && x.blocks > 1 && units < 4 * threads;
	if (x.split) {
		x.partials = mr_scratch(p, mr_pool_threads(p), l->nreduce * x.blocks * x.outputs * 8);
		if (!x.partials)
			return -1;
		units *= x.blocks;
	}
	mr_i64 grain = units / (threads * 8) + 1;
	mr_split(p, (int)threads, units, grain, l->mode == MR_COLS ? columns : rows, &x);
	if (x.failed)
		return -1;
	if (x.split)
		mr_split(p, 1, x.outputs, x.outputs, finish, &x);
	return 0;
}
