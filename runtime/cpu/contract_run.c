//go:build cgo

/* What the engine asks of a kernel's phases: the elements of a side, and what
 * becomes of the results. */
#include <string.h>

#include "contract_run.h"

/* Runs up to this length go through a buffer, many in one evaluation, where
 * they do not follow each other in memory. */
#define SHORT_RUN 512

typedef struct {
	const mr_dot *d;
	const mr_view *v;
	const mr_walked *w;
	mr_pool *pool;
} source;

static const mr_kernels *kernels(const source *s) { return &mr_contract_level((int)s->d->level)[s->d->c.type]; }

static mr_i64 up(mr_i64 n) { return (n + 63) & ~(mr_i64)63; }

/* A thread's memory: operands, a block of values, what the evaluation needs. */
static mr_i64 ops_bytes(const mr_dot *d) { return up(d->nops * (mr_i64)sizeof(mr_operand)); }
static mr_i64 values_bytes(const mr_dot *d) { return up(MR_C_FILL * mr_contract_level((int)d->level)[d->c.type].size); }

static mr_i64 room(const mr_dot *d)
{
	mr_i64 scratch = 0;
	const mr_view *v[] = {d->c.x.kind == MR_SIDE_MEM || d->wx.on ? NULL : &d->x, d->c.y.kind == MR_SIDE_MEM || d->wy.on ? NULL : &d->y, d->drains && !d->wz.on ? &d->z : NULL};
	int any = 0;
	for (int i = 0; i < 3; i++)
		if (v[i]) {
			any = 1;
			if (v[i]->phase->scratch > scratch)
				scratch = v[i]->phase->scratch;
		}
	return any ? ops_bytes(d) + values_bytes(d) + up(scratch) : 0;
}

/* An evaluation on thread who: its operands may be changed. */
static char *begin(const source *s, int who, mr_args *a)
{
	char *own = mr_walker_scratch(s->pool, who, room(s->d));
	*a = s->v->args;
	a->code = s->v->phase->code;
	a->scratch = own + ops_bytes(s->d) + values_bytes(s->d);
	return own;
}

/* Makes the block at (o, i) of a batch a domain of its own. */
static void place(const source *s, mr_args *a, mr_operand *ops, mr_i64 batch, mr_i64 o, mr_i64 outer, mr_i64 i, mr_i64 inner)
{
	const mr_view *v = s->v;
	mr_i64 at[MR_MAX_RANK];
	for (mr_i64 d = v->lead - 1; d >= 0; d--) {
		at[d] = batch % v->args.dims[d];
		batch /= v->args.dims[d];
	}
	for (mr_i64 k = 0; k < s->d->nops; k++) {
		const mr_operand *from = v->args.ops + k;
		mr_operand *to = ops + k;
		to->base = from->base;
		to->stages = from->stages;
		to->nstages = from->nstages;
		to->guard = 0;
		to->istride = from->istride;
		to->isize = from->isize;
		to->stride[0] = from->stride[v->lead];
		to->stride[1] = from->stride[v->lead + 1];
		to->offset = from->offset + o * to->stride[0] + i * to->stride[1];
		for (mr_i64 d = 0; d < v->lead; d++)
			to->offset += at[d] * from->stride[d];
	}
	a->ops = ops;
	a->rank = 2;
	a->dims[0] = outer;
	a->dims[1] = inner;
}

/* Values of points [o0, o1) by [i0, i1) of a batch, runs of the inner group
 * being ld elements apart. */
static void values(const source *s, int who, mr_i64 batch, mr_i64 o0, mr_i64 o1, mr_i64 i0, mr_i64 i1, char *dst, mr_i64 ld)
{
	const mr_view *v = s->v;
	const mr_i64 size = mr_contract_level((int)s->d->level)[s->d->c.type].size;
	const mr_i64 rows = o1 - o0, run = i1 - i0;
	mr_args a;
	char *own = begin(s, who, &a);
	void *bufs[1];
	a.bufs = bufs;
	mr_i64 first = (batch * v->outer + o0) * v->inner + i0, next = v->inner;
	if (v->flat) {
		place(s, &a, (mr_operand *)own, batch, o0, rows, i0, run);
		first = 0;
		next = run;
	}
	if (rows == 1 || (next == run && ld == run)) {
		bufs[0] = dst;
		v->phase->eval(&a, first, first + rows * run);
		return;
	}
	if (next == run && run <= SHORT_RUN) {
		char *block = bufs[0] = own + ops_bytes(s->d);
		v->phase->eval(&a, first, first + rows * run);
		for (mr_i64 r = 0; r < rows; r++)
			memcpy(dst + r * ld * size, block + r * run * size, (size_t)(run * size));
		return;
	}
	for (mr_i64 r = 0; r < rows; r++, first += next) {
		bufs[0] = dst + r * ld * size;
		v->phase->eval(&a, first, first + run);
	}
}

static void fill_k(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 ld)
{
	values(ctx, who, batch, i0, i1, p0, p1, dst, ld);
}

static void fill_i(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 ld)
{
	values(ctx, who, batch, p0, p1, i0, i1, dst, ld);
}

/* Memory along several dims. */
static const char *walked(const source *s, mr_i64 batch)
{
	const mr_contract *c = &s->d->c;
	mr_i64 at = 0;
	for (mr_i64 d = c->rank - 1; d >= 0; d--) {
		at += batch % c->dims[d] * s->w->batch[d];
		batch /= c->dims[d];
	}
	return s->w->base + at * kernels(s)->size;
}

static void walk_k(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 ld)
{
	const source *s = ctx;
	kernels(s)->walk(dst, ld, walked(s, batch), &s->w->outer, i0, i1, &s->w->inner, p0, p1);
}

static void walk_i(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 ld)
{
	const source *s = ctx;
	kernels(s)->walk(dst, ld, walked(s, batch), &s->w->outer, p0, p1, &s->w->inner, i0, i1);
}

static mr_i64 panels_walked;

mr_i64 mr_panels_walked(void) { return __atomic_load_n(&panels_walked, __ATOMIC_RELAXED); }

static void walk_panels(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 panel)
{
	const source *s = ctx;
	__atomic_fetch_add(&panels_walked, 1, __ATOMIC_RELAXED);
	kernels(s)->walk_panels(dst, panel, walked(s, batch), &s->w->outer, p0, p1, &s->w->inner, i0, i1);
}

static void unwalk(void *ctx, int who, mr_i64 batch, mr_i64 row0, mr_i64 rows, mr_i64 col0, mr_i64 cols, void *tile, mr_i64 ld)
{
	const source *s = ctx;
	const mr_i64 size = kernels(s)->size;
	for (mr_i64 c = 0; c < cols; c += MR_C_WALK) {
		const mr_i64 end = cols - c < MR_C_WALK ? cols : c + MR_C_WALK;
		kernels(s)->unwalk((char *)walked(s, batch), (const char *)tile + c * size, ld, &s->w->outer, row0, row0 + rows, &s->w->inner, col0 + c, col0 + end);
	}
}

/* How many of the rows of a tile are evaluated as one, with what does not go on from row
 * to row spread over the block of values: 0 where that cannot be. */
static mr_i64 together(const source *s, const mr_operand *ops, mr_i64 rows, mr_i64 cols)
{
	mr_i64 row = 0, room = values_bytes(s->d);
	for (mr_i64 k = 0; k < s->v->ntouched; k++) {
		const mr_i32 size = s->v->touched[k].size;
		const mr_operand *o = ops + s->v->touched[k].operand;
		if (o->stride[0] == cols * o->stride[1])
			continue;
		if (size == 0 || o->nstages > 0)
			return 0;
		row += cols * size;
		room -= 64;
	}
	if (s->v->ntouched == 0 || row > room)
		return 0;
	return row == 0 || rows < room / row ? rows : room / row;
}

static void spread(const source *s, mr_args *a, mr_operand *ops, char *local)
{
	const mr_i64 rows = a->dims[0], cols = a->dims[1];
	for (mr_i64 k = 0; k < s->v->ntouched; k++) {
		mr_operand *o = ops + s->v->touched[k].operand;
		if (o->stride[0] != cols * o->stride[1]) {
			const mr_i32 size = s->v->touched[k].size;
			mr_spread(size, local, o->base + o->offset * size, o->stride[0], o->stride[1], rows, cols);
			o->base = local;
			o->offset = 0;
			o->stride[1] = 1;
			local += up(rows * cols * size);
		}
		o->stride[0] = o->stride[1];
	}
	a->rank = 1;
	a->dims[0] = rows * cols;
}

/* The last phase over a tile, which is one of its operands. */
static void drain(void *ctx, int who, mr_i64 batch, mr_i64 row0, mr_i64 rows, mr_i64 col0, mr_i64 cols, void *tile, mr_i64 ld)
{
	const source *s = ctx;
	const mr_view *v = s->v;
	mr_args a;
	mr_operand *ops = (mr_operand *)begin(s, who, &a), *t = ops + s->d->temp;
	for (mr_i64 r = 0, high = rows; v->flat && r < rows; r += high) {
		place(s, &a, ops, batch, row0 + r, rows - r < high ? rows - r : high, col0, cols);
		t->base = tile;
		t->offset = r * ld;
		t->stride[0] = ld;
		t->stride[1] = 1;
		const mr_i64 some = together(s, ops, a.dims[0], cols);
		if (some > 0) {
			a.dims[0] = high = some;
			spread(s, &a, ops, (char *)ops + ops_bytes(s->d));
		}
		v->phase->eval(&a, 0, a.rank == 1 ? a.dims[0] : rows * cols);
	}
	if (v->flat)
		return;
	memcpy(ops, v->args.ops, (size_t)s->d->nops * sizeof *ops);
	a.ops = ops;
	t->base = tile;
	mr_i64 first = (batch * v->outer + row0) * v->inner + col0;
	for (mr_i64 r = 0; r < rows; r++, first += v->inner) {
		t->offset = r * ld - col0;
		v->phase->eval(&a, first, first + cols);
	}
}

static void use(mr_side *side, source *s)
{
	if (side->kind == MR_SIDE_MEM)
		return;
	side->panels = s->w->on && side->kind == MR_SIDE_FILL_I ? walk_panels : NULL;
	if (s->w->on)
		side->fill = side->kind == MR_SIDE_FILL_K ? walk_k : walk_i;
	else
		side->fill = side->kind == MR_SIDE_FILL_K ? fill_k : fill_i;
	side->ctx = s;
}

int mr_run_dot(mr_pool *p, const mr_dot *d)
{
	mr_contract c = d->c;
	source x = {d, &d->x, &d->wx, p}, y = {d, &d->y, &d->wy, p}, z = {d, &d->z, &d->wz, p};
	use(&c.x, &x);
	use(&c.y, &y);
	if (d->drains) {
		c.drain = d->wz.on ? unwalk : drain;
		c.ctx = &z;
	}
	const mr_i64 bytes = room(d);
	for (int i = 0; bytes > 0 && i < mr_pool_threads(p); i++)
		if (!mr_walker_scratch(p, i, bytes))
			return -1;
	return mr_contract_run(p, &c, (int)d->level);
}
