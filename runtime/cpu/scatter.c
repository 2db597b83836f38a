//go:build cgo

/* Scatters. What is combined with one element comes in the order of the row, so
 * a row is one thread's work: rows are shared out, as whole ones, or, where the
 * last kept dim lies densely, as columns, of which many are worked on together.
 * Where there are fewer of those than threads, every thread looks at all indices
 * and takes those that name its part of the axis. */
#include <string.h>

#include "fold.h"
#include "run.h"
#include "tier0.h"

/* Points evaluated at a time; a stretch of columns is no longer. */
#define CHUNK 2048

/* So many rows ahead what an index names is asked for, this many bytes of it. */
#define AHEAD 6
#define ASKED 1024

typedef struct {
	const mr_launch *l;
	const mr_scatter *s;
	mr_pool *pool;
	const mr_dtype *dt;
	const mr_folder *f; /* 0 where the last one stays */
	mr_i64 width;       /* columns in all, 1 where rows are whole */
	mr_i64 across;      /* tiles of columns */
	mr_i64 room;        /* bytes of a thread's memory */
	mr_i64 outer;       /* dims in front of those that a tile has */
	int failed;
} job;

/* A thread's share on its way. */
typedef struct {
	const job *x;
	mr_args index, value; /* what the phases are evaluated with */
	mr_operand *ops;
	char *base;         /* element 0 of the tile's first column, or of the output */
	mr_i64 columns, lo, hi;
	mr_i64 *at;
	char *indices, *values, *wide, *old;
} walk;

static mr_i64 align(mr_i64 n) { return (n + 63) & ~(mr_i64)63; }

/* Block functions write whole groups. */
#define BUFFER align(8 * (CHUNK + MR_T0_GROUP))

static mr_i64 room_of(const mr_launch *l)
{
	mr_i64 scratch = 0;
	for (mr_i64 k = 0; k < l->nphases; k++)
		if (l->phases[k].scratch > scratch)
			scratch = l->phases[k].scratch;
	return align((l->nops + l->ntemps) * (mr_i64)sizeof(mr_operand)) + 5 * BUFFER + align(scratch);
}

static int open_walk(job *x, int who, walk *w)
{
	const mr_launch *l = x->l;
	char *s = mr_scratch(x->pool, who, x->room);
	if (!s) {
		__atomic_store_n(&x->failed, 1, __ATOMIC_RELAXED);
		return -1;
	}
	memset(w, 0, sizeof *w);
	w->x = x;
	w->ops = (mr_operand *)s;
	s += align((l->nops + l->ntemps) * (mr_i64)sizeof(mr_operand));
	memset(w->ops, 0, (size_t)(l->nops + l->ntemps) * sizeof *w->ops);
	memcpy(w->ops, l->args.ops, (size_t)l->nops * sizeof *w->ops);
	char **buffers[] = {(char **)&w->at, &w->indices, &w->values, &w->wide, &w->old};
	for (int i = 0; i < 5; i++, s += BUFFER)
		*buffers[i] = s;
	w->index = w->value = l->args;
	w->index.ops = w->value.ops = w->ops;
	w->index.scratch = w->value.scratch = s;
	w->columns = 1;
	return 0;
}

static void evaluate(const mr_phase *ph, mr_args *a, void *to, mr_i64 begin, mr_i64 n)
{
	void *bufs[1] = {to};
	a->code = ph->code;
	a->bufs = bufs;
	ph->eval(a, begin, begin + n);
}

/* Turns n indices into how far from a row's first element that is which they
 * name: negative where nothing is to be done. */
static void resolve(walk *w, mr_i64 n)
{
	const mr_scatter *s = w->x->s;
	const mr_operand *o = w->ops + s->out;
	for (mr_i64 k = 0; k < n; k++) {
		mr_i64 i = s->index == MR_I32 ? ((const mr_i32 *)w->indices)[k] : ((const mr_i64 *)w->indices)[k];
		if (s->mode == MR_T0_CLAMP)
			i = i < 0 ? 0 : i >= o->isize ? o->isize - 1 : i;
		w->at[k] = i >= w->lo && i < w->hi ? i * o->istride : -1;
	}
}

/* Notes indices out of range at points [begin, end) of the launch, whose
 * columns, where they share their indices, count as one. */
static void look(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	job *x = ctx;
	const mr_scatter *s = x->s;
	walk w;
	if (open_walk(x, who, &w))
		return;
	const mr_u64 size = (mr_u64)w.ops[s->out].isize;
	if (x->l->mode == MR_COLS && !s->spread)
		w.index.dims[w.index.rank - 1] = 1;
	for (mr_i64 p = begin; p < end; p += CHUNK) {
		const mr_i64 n = end - p < CHUNK ? end - p : CHUNK;
		evaluate(x->l->phases, &w.index, w.indices, p, n);
		for (mr_i64 k = 0; k < n; k++) {
			const mr_i64 i = s->index == MR_I32 ? ((const mr_i32 *)w.indices)[k] : ((const mr_i64 *)w.indices)[k];
			if ((mr_u64)i >= size)
				mr_note_fault(&w.index, s->out, i);
		}
	}
}

#define PUT(T) do { \
	T *to = (T *)base; \
	for (mr_i64 k = 0; k < n; k++, to += step) \
		if (at[k] >= 0) \
			to[at[k]] = ((const T *)values)[k]; \
} while (0)

/* Element by element, in order. */
static void each(const walk *w, char *base, const mr_i64 *at, mr_i64 step, const char *values, mr_i64 n)
{
	const mr_dtype *dt = w->x->dt;
	const mr_folder *f = w->x->f;
	if (!f) {
		switch (dt->size) {
		case 1: PUT(mr_u8); break;
		case 2: PUT(mr_u16); break;
		case 4: PUT(mr_u32); break;
		default: PUT(mr_u64);
		}
		return;
	}
	if (!dt->widen) {
		f->into(base, at, step, values, n);
		return;
	}
	dt->widen(w->wide, values, n);
	for (mr_i64 k = 0; k < n; k++) {
		if (at[k] < 0)
			continue;
		char *to = base + (k * step + at[k]) * dt->size;
		dt->widen(w->old, to, 1);
		f->combine(w->old, w->wide + k * f->size, 1);
		dt->narrow(to, w->old, 1);
	}
}

/* n neighbours at once. */
static void stretch(const walk *w, char *to, const char *values, mr_i64 n)
{
	const mr_dtype *dt = w->x->dt;
	const mr_folder *f = w->x->f;
	if (!f) {
		memcpy(to, values, (size_t)(n * dt->size));
	} else if (!dt->widen) {
		f->combine(to, values, n);
	} else {
		dt->widen(w->wide, values, n);
		dt->widen(w->old, to, n);
		f->combine(w->old, w->wide, n);
		dt->narrow(to, w->old, n);
	}
}

/* Where the values of dims [0, rank) lie in memory, row-major and a fixed step
 * apart; NULL where they do not. */
static const char *lying(const walk *w, const mr_phase *ph, mr_i64 rank, mr_i64 *step)
{
	const mr_reduce *r = ph->reduces;
	if (r->load < 0)
		return 0;
	const mr_operand *o = w->ops + r->load;
	mr_i64 dense = 0;
	if (o->nstages > 0)
		return 0;
	*step = 0;
	for (mr_i64 d = rank - 1; d >= 0; d--) {
		if (w->value.dims[d] == 1)
			continue;
		if (dense == 0)
			dense = *step = o->stride[d];
		if (o->stride[d] != dense || dense == 0)
			return 0;
		dense *= w->value.dims[d];
	}
	return o->base + o->offset * w->x->dt->size;
}

/* Rows [from, to). */
static void rows(walk *w, mr_i64 from, mr_i64 to)
{
	const mr_launch *l = w->x->l;
	const mr_operand *o = w->ops + w->x->s->out;
	const mr_i64 size = w->x->dt->size;
	mr_i64 step, left = 0, row = from;
	const char *lie = lying(w, l->phases + 1, l->args.rank, &step), *values = w->values;
	if (step != 0 && step != 1)
		lie = 0;
	for (mr_i64 p = from * l->reduced; p < to * l->reduced;) {
		const mr_i64 n = to * l->reduced - p < CHUNK ? to * l->reduced - p : CHUNK;
		evaluate(l->phases, &w->index, w->indices, p, n);
		if (lie)
			values = lie + p * size;
		else
			evaluate(l->phases + 1, &w->value, w->values, p, n);
		resolve(w, n);
		for (mr_i64 k = 0; k < n;) {
			if (left == 0) {
				mr_i64 at = row++, off = 0;
				for (mr_i64 d = l->kept - 1; d >= 0; d--) {
					off += at % l->args.dims[d] * o->stride[d];
					at /= l->args.dims[d];
				}
				w->base = o->base + (o->offset + off) * size;
				left = l->reduced;
			}
			const mr_i64 m = left < n - k ? left : n - k;
			each(w, w->base, w->at + k, 0, values + k * size, m);
			left -= m;
			k += m;
		}
		p += n;
	}
}

/* Moves to columns [left, left + n) of the outer kept point `row`. */
static void place(walk *w, mr_i64 row, mr_i64 left, mr_i64 n)
{
	const job *x = w->x;
	const mr_launch *l = x->l;
	const mr_i64 rank = l->args.rank, inner = rank - x->outer;
	for (mr_i64 i = 0; i < l->nops; i++) {
		const mr_operand *from = l->args.ops + i;
		mr_operand *o = w->ops + i;
		mr_i64 at = row;
		o->offset = from->offset + left * from->stride[rank - 1];
		for (mr_i64 d = x->outer - 1; d >= 0; d--) {
			o->offset += at % l->args.dims[d] * from->stride[d];
			at /= l->args.dims[d];
		}
		memcpy(o->stride, from->stride + x->outer, (size_t)inner * sizeof *o->stride);
	}
	w->index.rank = w->value.rank = inner;
	for (mr_i64 d = 0; d < inner; d++)
		w->index.dims[d] = w->value.dims[d] = l->args.dims[d + x->outer];
	w->value.dims[inner - 1] = n;
	w->index.dims[inner - 1] = x->s->spread ? n : 1;
	w->columns = n;
	w->base = w->ops[x->s->out].base + w->ops[x->s->out].offset * x->dt->size;
}

static void ask(const walk *w, mr_i64 at)
{
	const mr_i64 size = w->x->dt->size, bytes = w->columns * size < ASKED ? w->columns * size : ASKED;
	if (at < 0)
		return;
	for (mr_i64 b = 0; b < bytes; b += 64)
		__builtin_prefetch(w->base + at * size + b, 1);
}

/* The columns that were placed. */
static void columns(walk *w)
{
	const mr_launch *l = w->x->l;
	const mr_i64 size = w->x->dt->size, n = w->columns, per = w->index.dims[w->index.rank - 1];
	const mr_i64 most = CHUNK / n > 0 ? CHUNK / n : 1;
	mr_i64 step = n;
	const char *lie = 0, *values = w->values;
	if (w->ops[l->phases[1].reduces->load < 0 ? 0 : l->phases[1].reduces->load].stride[w->value.rank - 1] == 1)
		lie = lying(w, l->phases + 1, w->value.rank - 1, &step);
	for (mr_i64 r = 0; r < l->reduced; r += most) {
		const mr_i64 m = l->reduced - r < most ? l->reduced - r : most;
		evaluate(l->phases, &w->index, w->indices, r * per, m * per);
		if (lie) {
			values = lie + r * step * size;
		} else {
			step = n;
			evaluate(l->phases + 1, &w->value, w->values, r * n, m * n);
		}
		resolve(w, m * per);
		for (mr_i64 j = 0; j < m; j++, values += step * size) {
			if (per > 1) {
				each(w, w->base, w->at + j * n, 1, values, n);
				continue;
			}
			if (j + AHEAD < m)
				ask(w, w->at[j + AHEAD]);
			if (w->at[j] >= 0)
				stretch(w, w->base + w->at[j] * size, values, n);
		}
		values = w->values;
	}
}

static void shares(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	job *x = ctx;
	const mr_launch *l = x->l;
	const mr_i64 parts = x->s->parts;
	walk w;
	if (open_walk(x, who, &w))
		return;
	for (mr_i64 u = begin; u < end; u++) {
		const mr_i64 part = u % parts, unit = u / parts, size = w.ops[x->s->out].isize;
		w.lo = size / parts * part;
		w.hi = part == parts - 1 ? size : w.lo + size / parts;
		if (l->mode == MR_ROWS) {
			/* All that is this share's, unless it is part of a row. */
			const mr_i64 to = parts == 1 ? end : unit + 1;
			rows(&w, unit, to);
			u = parts == 1 ? end : u;
			continue;
		}
		const mr_i64 left = unit % x->across * l->tile;
		place(&w, unit / x->across, left, x->width - left < l->tile ? x->width - left : l->tile);
		columns(&w);
	}
}

#define COPY(T) do { \
	for (mr_i64 i = 0; i < n; i++) \
		((T *)to)[i] = ((const T *)from)[i * step]; \
} while (0)

/* The operand, copied to where it is scattered into. */
typedef struct {
	mr_i64 rank, size;
	mr_i64 dims[MR_MAX_RANK + 1], from[MR_MAX_RANK + 1], to[MR_MAX_RANK + 1];
	const char *src;
	char *dst;
} copying;

static void copy_rows(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	const copying *c = ctx;
	const mr_i64 last = c->rank - 1, n = c->dims[last], step = c->from[last];
	(void)who;
	for (mr_i64 row = begin; row < end; row++) {
		const char *from = c->src;
		char *to = c->dst;
		mr_i64 at = row;
		for (mr_i64 d = last - 1; d >= 0; d--) {
			from += at % c->dims[d] * c->from[d] * c->size;
			to += at % c->dims[d] * c->to[d] * c->size;
			at /= c->dims[d];
		}
		if (step == 1) {
			memcpy(to, from, (size_t)(n * c->size));
			continue;
		}
		switch (c->size) {
		case 1: COPY(mr_u8); break;
		case 2: COPY(mr_u16); break;
		case 4: COPY(mr_u32); break;
		default: COPY(mr_u64);
		}
	}
}

/* The output is dense: its dims in the order of its strides are row-major. */
static void copy(const job *x)
{
	const mr_launch *l = x->l;
	const mr_operand *in = l->args.ops + x->s->in, *out = l->args.ops + x->s->out;
	if (out->isize == 0)
		return;
	copying c = {.size = x->dt->size, .src = in->base + in->offset * x->dt->size, .dst = out->base + out->offset * x->dt->size};
	mr_i64 total = 1, dense = 1;
	for (mr_i64 i = 0; i <= l->args.rank; i++) {
		const int axis = i == l->args.rank;
		const mr_i64 n = axis ? out->isize : l->args.dims[i], to = axis ? out->istride : out->stride[i];
		if (n == 1 || to == 0) /* a reduced dim */
			continue;
		mr_i64 d = c.rank++;
		for (; d > 0 && c.to[d - 1] < to; d--) {
			c.dims[d] = c.dims[d - 1];
			c.to[d] = c.to[d - 1];
			c.from[d] = c.from[d - 1];
		}
		c.dims[d] = n;
		c.to[d] = to;
		c.from[d] = axis ? in->istride : in->stride[i];
		total *= n;
	}
	if (c.rank == 0) {
		c.rank = 1;
		c.dims[0] = c.from[0] = c.to[0] = 1;
	}
	for (mr_i64 d = c.rank - 1; d >= 0 && c.from[d] == c.to[d]; d--)
		dense *= c.dims[d];
	if (dense == total) {
		mr_copy(x->pool, c.dst, c.src, total * c.size);
		return;
	}
	const mr_i64 n = total / c.dims[c.rank - 1];
	mr_split(x->pool, (int)l->threads, n, n / (l->threads * 8) + 1, copy_rows, &c);
}

int mr_run_scatter(mr_pool *p, const mr_launch *l)
{
	const mr_scatter *s = l->scatter;
	job x = {.l = l, .s = s, .pool = p, .width = 1, .across = 1, .room = room_of(l)};
	x.dt = &mr_folds_used->dtype[s->dt];
	if (s->op != MR_FOLDS)
		x.f = &mr_folds_used->fold[s->op][x.dt->compute];
	mr_i64 units = l->outputs;
	if (l->mode == MR_COLS) {
		x.outer = l->kept - 1;
		x.width = l->args.dims[l->args.rank - 1];
		x.across = (x.width + l->tile - 1) / l->tile;
		units = l->outputs / x.width * x.across;
	}
	/* Once something is written nothing may fail: it could be the operand. */
	for (int who = 0; who < mr_pool_threads(p); who++)
		if (!mr_scratch(p, who, x.room))
			return -1;
	if (s->mode == MR_T0_ERROR && l->reduced > 0) {
		const mr_i64 points = l->mode == MR_COLS && !s->spread ? l->total / x.width : l->total;
		const mr_i64 grain = points / (l->threads * 4) + CHUNK;
		mr_split(p, (int)l->threads, points, grain, look, &x);
		if (l->args.fault->set)
			return 0;
	}
	if (s->copy)
		copy(&x);
	if (l->reduced > 0)
		mr_split(p, (int)l->threads, units * s->parts, s->parts > 1 ? 1 : units / (l->threads * 8) + 1, shares, &x);
	return x.failed ? -1 : 0;
}
