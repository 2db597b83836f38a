//go:build cgo

/* One phase of a tile. */
#include <string.h>

#include "rows.h"

void mr_row_phase(rowtile *t, const mr_phase *ph)
{
	const mr_i64 first = t->x->l->mode == MR_COLS ? 0 : t->first;
	t->rows.code = ph->code;
	ph->eval(&t->rows, first, first + t->n);
}

/* Asks for what the next tile has in place of points [begin, end). GCC takes a
 * function that does nothing else for one without effect, and drops calls. */
static inline __attribute__((always_inline)) void look_ahead(const rowtile *t, mr_i64 begin, mr_i64 end)
{
	const mr_launch *l = t->x->l;
	const mr_i64 shift = t->n * l->reduced;
	if (end + shift > l->total)
		return;
	for (mr_i64 i = 0; i < l->nops; i++) {
		const mr_operand *o = t->ops + i;
		const mr_i64 size = l->ahead[i], to = (end + shift + o->offset) * size;
		for (mr_i64 at = (begin + shift + o->offset) * size; at < to; at += 64)
			__builtin_prefetch(o->base + at, 0, 2);
	}
}

/* Evaluates points [begin, end) of a phase. Memory would stand still while a
 * phase computes on what the one before left in a cache. */
static void evaluate(rowtile *t, const mr_phase *ph, mr_i64 begin, mr_i64 end)
{
	if (!ph->look || !t->own) {
		ph->eval(&t->points, begin, end);
		return;
	}
	void *bufs[MR_MAX_REDUCES];
	t->points.bufs = bufs;
	for (mr_i64 p = begin; p < end; p += MR_LOOK) {
		const mr_i64 to = end - p < MR_LOOK ? end : p + MR_LOOK;
		for (mr_i64 k = 0; k < ph->nreduce; k++)
			bufs[k] = (char *)t->bufs[k] + (p - begin) * mr_folds_used->dtype[ph->reduces[k].dt].size;
		look_ahead(t, p, to);
		ph->eval(&t->points, p, to);
	}
	t->points.bufs = t->bufs;
}

/* Where results of a strip's row number r go. */
static char *result_at(const rowtile *t, const mr_reduce *r, mr_i64 strip, mr_i64 point)
{
	const mr_launch *l = t->x->l;
	const mr_operand *o = t->ops + r->temp;
	const int row = l->temps[r->temp - l->nops].row;
	mr_i64 at = o->offset;
	if (l->mode == MR_ROWS)
		at += row ? t->first + strip : (t->first + strip) * l->reduced;
	return o->base + (at + point * t->columns) * r->size;
}

/* The memory of the values where they lie in an operand, a row's elements a
 * fixed step apart: nothing needs to be evaluated then. */
typedef struct {
	const char *p;
	mr_i64 step;
} lying;

static int lies(const rowtile *t, const mr_reduce *r, lying *at)
{
	const mr_launch *l = t->x->l;
	if (r->load < 0 || r->op >= MR_SORT || mr_folds_used->dtype[r->dt].widen)
		return 0;
	const mr_operand *o = t->ops + r->load;
	const int cols = l->mode == MR_COLS;
	const mr_i64 first = cols ? 0 : l->kept, end = t->points.rank - cols; /* reduced dims */
	if (o->nstages > 0 || (cols && o->stride[end] != 1 && t->columns > 1))
		return 0;
	mr_i64 step = 0, dense = 0;
	for (mr_i64 d = end - 1; d >= first; d--) {
		if (t->points.dims[d] == 1)
			continue;
		if (step == 0)
			dense = step = o->stride[d];
		if (o->stride[d] != dense || dense == 0)
			return 0;
		dense *= t->points.dims[d];
	}
	if (r->scan ? step != t->columns : !cols && step > 1)
		return 0;
	at->p = o->base + o->offset * mr_folds_used->dtype[r->dt].size;
	at->step = step;
	return 1;
}

/* A strip's first element in an operand. */
static const char *strip_start(const rowtile *t, const mr_reduce *r, const lying *at, mr_i64 strip)
{
	const mr_launch *l = t->x->l;
	mr_i64 p = 0, row = t->first + strip;
	if (l->mode == MR_ROWS)
		for (mr_i64 d = l->kept - 1; d >= 0; d--) {
			p += row % l->args.dims[d] * t->ops[r->load].stride[d];
			row /= l->args.dims[d];
		}
	return at->p + p * mr_folds_used->dtype[r->dt].size;
}

/* Hands elements r to r+m-1 of a strip to reduce k. */
void mr_take(rowtile *t, const mr_phase *ph, mr_i64 k, mr_i64 strip, const char *values, mr_i64 step, mr_i64 r, mr_i64 m)
{
	const mr_reduce *red = ph->reduces + k;
	const mr_dtype *dt = &mr_folds_used->dtype[red->dt];
	const mr_i64 n = t->columns;
	if (red->op >= MR_SORT) {
		memcpy(t->sorting[k] + r * dt->size, values, (size_t)(m * dt->size));
		if (r + m == t->x->l->reduced)
			mr_sort(result_at(t, red, strip, 0), t->sorting[k], r + m, red->dt, red->descending,
				red->op == MR_ARGSORT ? red->size : 0, t->work);
		return;
	}
	const mr_folder *f = mr_folder_of(red);
	if (dt->widen) {
		dt->widen(t->wide[k], values, m * n);
		values = t->wide[k];
	}
	if (red->total) {
		mr_take_total(t, red, values, (t->first + strip) * t->x->l->reduced + r, m);
		return;
	}
	if (!red->scan) {
		f->add(t->acc[k], values, r, m, n, step);
		return;
	}
	char *out = result_at(t, red, strip, r);
	f->scan(dt->widen ? t->wide[k] : out, values, t->acc[k], t->acc[k] + mr_align(n * 8), r, m, n);
	if (dt->narrow)
		dt->narrow(out, t->wide[k], m * n);
}

/* Writes the results of folds, n rows from the strip's first on. */
static void give(rowtile *t, const mr_reduce *red, mr_i64 strip, void *total)
{
	const mr_dtype *dt = &mr_folds_used->dtype[red->dt];
	const mr_folder *f = mr_folder_of(red);
	char *out = result_at(t, red, strip, 0);
	if (dt->narrow && f->lanes > 1)
		dt->narrow(out, total, t->columns);
	else
		f->result(out, red->size, total, t->columns);
}

static int folds(const mr_reduce *r) { return !r->scan && !r->total && r->op < MR_SORT; }

/* The memory of a partial result of the tile's strip. */
static char *partial(const rowtile *t, mr_i64 k, mr_i64 block, mr_i64 strip)
{
	return t->x->partials + ((k * t->x->blocks + block) * t->x->l->outputs + t->first + strip) * 16;
}

/* The end of a block of a strip. */
void mr_end_block(rowtile *t, const mr_phase *ph, mr_i64 strip, mr_i64 block, mr_i64 elements)
{
	for (mr_i64 k = 0; k < ph->nreduce; k++) {
		const mr_reduce *red = ph->reduces + k;
		if (!folds(red))
			continue;
		const mr_folder *f = mr_folder_of(red);
		f->finish(t->acc[k], elements, t->columns);
		const size_t bytes = (size_t)(f->lanes == 1 ? 16 : f->size) * (size_t)t->columns;
		if (!t->own)
			memcpy(partial(t, k, block, strip), t->acc[k], bytes);
		else if (t->x->blocks == 1)
			give(t, red, strip, t->acc[k]);
		else if (block == 0)
			memcpy(t->total[k], t->acc[k], bytes);
		else
			f->combine(t->total[k], t->acc[k], t->columns);
		if (t->own && block > 0 && block == t->x->blocks - 1)
			give(t, red, strip, t->total[k]);
	}
}

void mr_start_block(rowtile *t, const mr_phase *ph)
{
	if (t->columns > 1)
		return;
	for (mr_i64 k = 0; k < ph->nreduce; k++)
		if (folds(ph->reduces + k))
			mr_folder_of(ph->reduces + k)->start(t->acc[k]);
}

/* Blocks [from, to) of a strip, in chunks. */
static void walk(rowtile *t, const mr_phase *ph, const lying *at, mr_i64 strip, mr_i64 from, mr_i64 to)
{
	const mr_launch *l = t->x->l;
	const mr_i64 n = t->columns;
	const mr_i64 base = l->mode == MR_ROWS ? (t->first + strip) * l->reduced : 0;
	mr_i64 step = MR_CHUNK / n > 0 ? MR_CHUNK / n : 1;
	if (at)
		step = MR_BLOCK;
	const char *lie[MR_MAX_REDUCES];
	for (mr_i64 k = 0; at && k < ph->nreduce; k++)
		lie[k] = strip_start(t, ph->reduces + k, at + k, strip);
	for (mr_i64 b = from; b < to; b++) {
		const mr_i64 first = b * MR_BLOCK, end = l->reduced - first < MR_BLOCK ? l->reduced : first + MR_BLOCK;
		mr_start_block(t, ph);
		for (mr_i64 r = first; r < end; r += step) {
			const mr_i64 m = end - r < step ? end - r : step;
			if (!at)
				evaluate(t, ph, base + r * n, base + (r + m) * n);
			for (mr_i64 k = 0; k < ph->nreduce; k++)
				if (at)
					mr_take(t, ph, k, strip, lie[k] + r * at[k].step * mr_folds_used->dtype[ph->reduces[k].dt].size, at[k].step, r, m);
				else
					mr_take(t, ph, k, strip, t->bufs[k], n, r, m);
		}
		mr_end_block(t, ph, strip, b, end - first);
	}
}

/* Columns so short that every element is a lane, straight from memory. */
static int few(rowtile *t, const mr_phase *ph, const lying *at)
{
	const mr_i64 m = t->x->l->reduced;
	if (m > MR_LANES || t->columns == 1)
		return 0;
	for (mr_i64 k = 0; k < ph->nreduce; k++)
		if (!folds(ph->reduces + k) || !mr_folder_of(ph->reduces + k)->few)
			return 0;
	for (mr_i64 k = 0; k < ph->nreduce; k++) {
		const mr_reduce *r = ph->reduces + k;
		mr_folder_of(r)->few(result_at(t, r, 0, 0), strip_start(t, r, at + k, 0), m, t->columns, at[k].step);
	}
	return 1;
}

/* Rows so short that many fit a chunk: one evaluation serves many. */
static void short_rows(rowtile *t, const mr_phase *ph)
{
	const mr_i64 len = t->x->l->reduced, step = MR_CHUNK / len;
	for (mr_i64 s = 0; s < t->strips; s += step) {
		const mr_i64 n = t->strips - s < step ? t->strips - s : step;
		evaluate(t, ph, (t->first + s) * len, (t->first + s + n) * len);
		for (mr_i64 j = 0; j < n; j++) {
			mr_start_block(t, ph);
			for (mr_i64 k = 0; k < ph->nreduce; k++)
				mr_take(t, ph, k, s + j, (char *)t->bufs[k] + j * len * mr_folds_used->dtype[ph->reduces[k].dt].size, 1, 0, len);
			mr_end_block(t, ph, s + j, 0, len);
		}
	}
}

/* Rows without points: folds give what they give of nothing. */
static void no_points(rowtile *t, const mr_phase *ph)
{
	for (mr_i64 k = 0; k < ph->nreduce; k++)
		if (folds(ph->reduces + k))
			for (mr_i64 j = 0; j < t->n; j++)
				memcpy(result_at(t, ph->reduces + k, 0, 0) + j * ph->reduces[k].size, &ph->reduces[k].empty, (size_t)ph->reduces[k].size);
}

void mr_point_phase(rowtile *t, const mr_phase *ph, mr_i64 from, mr_i64 to)
{
	const mr_launch *l = t->x->l;
	lying at[MR_MAX_REDUCES];
	int direct = ph->stores == 0;
	t->points.code = ph->code;
	if (l->reduced == 0) {
		no_points(t, ph);
		return;
	}
	if (ph->even && t->own && l->reduced <= MR_BLOCK) {
		mr_even_phase(t, ph);
		return;
	}
	if (ph->nreduce == 0) {
		const mr_i64 first = l->mode == MR_ROWS ? t->first * l->reduced : 0;
		if (!t->own && t->strips == 1) {
			const mr_i64 end = to * MR_BLOCK < l->reduced ? to * MR_BLOCK : l->reduced;
			ph->eval(&t->points, first + from * MR_BLOCK * t->columns, first + end * t->columns);
		} else {
			evaluate(t, ph, first, first + l->reduced * t->n);
		}
		return;
	}
	for (mr_i64 k = 0; direct && k < ph->nreduce; k++)
		direct = lies(t, ph->reduces + k, at + k);
	if (!direct && l->mode == MR_ROWS && l->reduced <= MR_CHUNK / 2 && t->own) {
		short_rows(t, ph);
		return;
	}
	if (direct && few(t, ph, at))
		return;
	for (mr_i64 s = 0; s < t->strips; s++)
		walk(t, ph, direct ? at : NULL, s, from, to);
}

void mr_combine(rowtile *t, const mr_phase *ph)
{
	for (mr_i64 k = 0; k < ph->nreduce; k++) {
		const mr_reduce *red = ph->reduces + k;
		for (mr_i64 s = 0; s < t->strips && t->x->blocks > 0 && folds(red); s++) {
			for (mr_i64 b = 1; b < t->x->blocks; b++)
				mr_folder_of(red)->combine(partial(t, k, 0, s), partial(t, k, b, s), t->columns);
			give(t, red, s, partial(t, k, 0, s));
		}
	}
}
