//go:build cgo

/* Elementwise launches some of whose operands are transposed tile by tile. */
#include <string.h>

#include "contract.h"
#include "rows.h"

typedef struct {
	const mr_launch *l;
	const mr_transpose *t;
	mr_pool *pool;
	mr_i64 down, across; /* tiles along the two dims */
	mr_i64 room;         /* bytes of a tile's operands */
	int failed;
} job;

/* Elements are moved in vectors of 16 bytes at every ISA level, so by the one there always is. */
void mr_transposed(mr_i32 size, void *dst, mr_i64 ldd, const void *src, mr_i64 rs, mr_i64 cs, mr_i64 rows, mr_i64 cols)
{
	const int type = size == 1 ? MR_C_I8 : size == 2 ? MR_C_I16 : size == 4 ? MR_C_I32 : MR_C_I64;
	const mr_kernels *f = mr_contract_level(0) + type;
	if (rs == 1)
		f->transpose(dst, ldd, src, cs, cols, rows);
	else
		f->gather(dst, ldd, src, rs, cs, rows, cols);
}

void mr_spread(mr_i32 size, char *dst, const char *src, mr_i64 rs, mr_i64 cs, mr_i64 rows, mr_i64 cols)
{
	const mr_i64 row = cols * size, all = rows * row;
	mr_transposed(size, dst, cols, src, rs, cs, rs == 0 ? 1 : rows, cols);
	if (rs == 0)
		for (mr_i64 n = row; n < all; n *= 2)
			memcpy(dst + n, dst, (size_t)(n < all - n ? n : all - n));
}

/* Moves the operands of a launch to tile u, and the args to its domain: the two
 * dims, or one where all operands go on from row to row. */
static void place(const job *x, mr_i64 u, mr_args *a, mr_operand *ops, char *local)
{
	const mr_launch *l = x->l;
	const mr_transpose *t = x->t;
	const mr_i64 inner = l->args.rank - 1;
	const mr_i64 top = u % x->down * t->rows, left = u / x->down % x->across * t->cols;
	const mr_i64 rows = l->args.dims[t->dim] - top < t->rows ? l->args.dims[t->dim] - top : t->rows;
	const mr_i64 cols = l->args.dims[inner] - left < t->cols ? l->args.dims[inner] - left : t->cols;
	mr_i64 at[MR_MAX_RANK], rest = u / x->down / x->across;
	for (mr_i64 d = inner - 1; d >= 0; d--) {
		if (d == t->dim) {
			at[d] = top;
			continue;
		}
		at[d] = rest % l->args.dims[d];
		rest /= l->args.dims[d];
	}
	at[inner] = left;
	for (mr_i64 i = 0; i < l->nops; i++) {
		const mr_operand *from = l->args.ops + i;
		mr_operand *o = ops + i;
		o->base = from->base;
		o->offset = from->offset;
		for (mr_i64 d = 0; d <= inner; d++)
			o->offset += from->stride[d] * at[d];
		o->stride[0] = from->stride[t->dim];
		o->stride[1] = from->stride[inner];
	}
	for (mr_i64 k = 0; k < t->count; k++) {
		mr_operand *o = ops + t->ops[k].operand;
		const mr_i32 size = t->ops[k].size;
		mr_spread(size, local, o->base + o->offset * size, o->stride[0], o->stride[1], rows, cols);
		o->base = local;
		o->offset = 0;
		o->stride[0] = cols;
		o->stride[1] = 1;
		local += mr_align(t->rows * t->cols * size);
	}
	int goes_on = 1;
	for (mr_i64 i = 0; i < l->nops; i++)
		goes_on = goes_on && ops[i].stride[0] == cols * ops[i].stride[1];
	a->rank = 2;
	a->dims[0] = rows;
	a->dims[1] = cols;
	if (goes_on) {
		a->rank = 1;
		a->dims[0] = rows * cols;
		for (mr_i64 i = 0; i < l->nops; i++)
			ops[i].stride[0] = ops[i].stride[1];
	}
}

static void tiles(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	job *x = ctx;
	const mr_launch *l = x->l;
	const mr_phase *ph = l->phases;
	const mr_i64 ops = mr_align(l->nops * (mr_i64)sizeof(mr_operand));
	char *s = mr_scratch(x->pool, who, ops + x->room + ph->scratch);
	if (!s) {
		__atomic_store_n(&x->failed, 1, __ATOMIC_RELAXED);
		return;
	}
	mr_args a = l->args;
	a.code = ph->code;
	a.ops = memcpy(s, l->args.ops, (size_t)l->nops * sizeof(mr_operand));
	a.scratch = s + ops + x->room;
	for (mr_i64 u = begin; u < end; u++) {
		place(x, u, &a, (mr_operand *)s, s + ops);
		ph->eval(&a, 0, a.rank == 1 ? a.dims[0] : a.dims[0] * a.dims[1]);
	}
	mr_streamed();
}

int mr_run_transposed(mr_pool *p, const mr_launch *l)
{
	const mr_transpose *t = l->transpose;
	job x = {.l = l, .t = t, .pool = p};
	const mr_i64 m = l->args.dims[t->dim], n = l->args.dims[l->args.rank - 1];
	x.down = (m + t->rows - 1) / t->rows;
	x.across = (n + t->cols - 1) / t->cols;
	for (mr_i64 k = 0; k < t->count; k++)
		x.room += mr_align(t->rows * t->cols * t->ops[k].size);
	const mr_i64 total = l->total / (m * n) * x.down * x.across;
	mr_i64 threads = l->threads;
	if (threads > mr_pool_threads(p))
		threads = mr_pool_threads(p);
	mr_split(p, (int)threads, total, threads > 1 ? total / (threads * 8) + 1 : total, tiles, &x);
	return x.failed ? -1 : 0;
}
