//go:build cgo

/* Loads behind a guard and loads through an index: every lane is looked at, for
 * where the guard is false, or the index out of range, there need not be any
 * memory. tier0_lanes.go is the same in Go. */
#include "tier0.h"

/* Element j of a value whose groups are step bytes apart. */
static const char *lane(const mr_t0_val *v, mr_i64 j, mr_i64 size) {
	return v->p + j / MR_T0_GROUP * v->step + j % MR_T0_GROUP * size;
}

/* Turns an index into what it adds to a position. Returns 0 where nothing is to
 * be read. */
static int resolve(const mr_args *a, const mr_t0_instr *in, mr_i64 *i) {
	const mr_operand *o = &a->ops[in->slot];
	if ((mr_u64)*i >= (mr_u64)o->isize) {
		switch (in->imm & 255) {
		case MR_T0_CLAMP:
			*i = *i < 0 ? 0 : o->isize - 1;
			break;
		case MR_T0_ERROR:
			mr_note_fault(a, in->slot, *i);
			return 0;
		default:
			return 0;
		}
	}
	*i *= o->istride;
	return 1;
}

/* Where the elements of n points along the last dim come from: *from points at
 * what lane j reads, 0 where it reads nothing. */
typedef struct lanes {
	const mr_args *a;
	const mr_t0_instr *in;
	const mr_t0_val *guard, *index;
} lanes;

static int find(const lanes *m, mr_i64 j, mr_i64 p, mr_i64 *from) {
	const mr_i64 wide = (mr_i64)(m->in->imm >> 8); /* bytes of an index */
	mr_i64 beyond = 0;
	if (m->guard && !*lane(m->guard, j, 1))
		return 0;
	if (m->index) {
		const char *q = lane(m->index, j, wide);
		beyond = wide == 4 ? *(const mr_i32 *)q : *(const mr_i64 *)q;
		if (!resolve(m->a, m->in, &beyond))
			return 0;
	}
	*from = mr_staged(&m->a->ops[m->in->slot], p) + beyond;
	return 1;
}

#define READ(T) do { \
	for (mr_i64 i = 0; i < len; i++) { \
		mr_i64 from; \
		((T *)buf)[to + i] = find(&m, to + i, row + i * step, &from) ? ((const T *)o->base)[from] : 0; \
	} \
} while (0)

void mr_t0_lanes(const mr_args *a, const mr_t0_instr *in, const mr_t0_val *v, const mr_i64 *at, mr_i64 n, char *buf) {
	const mr_operand *o = &a->ops[in->slot];
	const mr_i64 last = a->rank - 1;
	const int indexed = in->fn == MR_T0_LOADAT;
	const mr_i32 g = in->src[indexed];
	const lanes m = {a, in, g < 0 ? 0 : &v[g], indexed ? &v[in->src[0]] : 0};
	mr_i64 idx[MR_MAX_RANK];
	for (mr_i64 d = 0; d <= last; d++)
		idx[d] = at[d];
	for (mr_i64 to = 0; to < n;) {
		mr_i64 row = o->offset, len = n - to, step = 0;
		for (mr_i64 d = 0; d <= last; d++)
			row += idx[d] * o->stride[d];
		if (last >= 0) {
			step = o->stride[last];
			if (len > a->dims[last] - idx[last])
				len = a->dims[last] - idx[last];
		}
		switch (in->size) {
		case 1: READ(mr_u8); break;
		case 2: READ(mr_u16); break;
		case 4: READ(mr_u32); break;
		default: READ(mr_u64);
		}
		to += len;
		if (last >= 0)
			idx[last] = 0;
		for (mr_i64 d = last - 1; d >= 0 && ++idx[d] == a->dims[d]; d--)
			idx[d] = 0;
	}
}
