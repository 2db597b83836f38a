//go:build cgo

/* The memory of a tile and where its operands are. */
#include <string.h>

#include "rows.h"

/* The most that one of a phase's reduces takes, and how many there are. */
typedef struct {
	mr_i64 count, acc, scratch, sort;
} needs;

static mr_i64 most(mr_i64 a, mr_i64 b) { return a > b ? a : b; }

static needs needs_of(const rowjob *x)
{
	const mr_launch *l = x->l;
	const mr_i64 lanes = l->reduced < MR_LANES && x->columns > 1 ? l->reduced : MR_LANES;
	needs n = {0};
	for (mr_i64 k = 0; k < l->nphases; k++) {
		const mr_phase *ph = l->phases + k;
		n.scratch = most(n.scratch, ph->scratch);
		n.count = most(n.count, ph->nreduce);
		for (mr_i64 i = 0; i < ph->nreduce; i++) {
			const mr_reduce *r = ph->reduces + i;
			if (r->op >= MR_SORT) {
				n.sort = mr_align(l->reduced * 8);
			} else if (r->scan) {
				n.acc = most(n.acc, mr_align(x->columns * 8) * 2);
			} else {
				const mr_folder *f = mr_folder_of(r);
				n.acc = most(n.acc, f->size * most(MR_LANES, (f->lanes == 1 ? 1 : lanes) * x->columns));
			}
		}
	}
	n.acc = mr_align(n.acc);
	return n;
}

static mr_i64 chunk_bytes(const rowjob *x) { return mr_align(8 * most(MR_CHUNK, x->columns)); }

static mr_i64 temp_bytes(const mr_launch *l, mr_i64 rows, int k)
{
	const mr_temp *t = l->temps + k;
	/* Block functions read and write whole groups. */
	return mr_align(rows * (t->row ? 1 : l->reduced) * t->size + 64 * 8);
}

/* Elements from one row of a transposed operand to the next: rows a whole number
 * of pages long would meet in a few lines of the first-level cache. */
static mr_i64 pitch(const mr_launch *l, mr_i32 size) { return (l->reduced + 63) / 64 * 64 + 64 / size; }

static mr_i64 transposed_bytes(const mr_launch *l, const struct mr_transposed *o)
{
	return mr_align(l->tile * pitch(l, o->size) * o->size + 64 * 8);
}

mr_i64 mr_tile_bytes(const rowjob *x)
{
	const mr_launch *l = x->l;
	const needs n = needs_of(x);
	mr_i64 bytes = mr_align((l->nops + l->ntemps) * (mr_i64)sizeof(mr_operand));
	bytes += n.count * (2 * chunk_bytes(x) + n.acc + mr_align(16 * x->columns));
	bytes += l->ntotals * MR_OPEN + n.sort * n.count + (n.sort ? mr_align(mr_sort_work(l->reduced)) : 0) + n.scratch + 64;
	if (!l->split)
		for (int k = 0; k < l->ntemps; k++)
			bytes += temp_bytes(l, l->tile, k);
	for (mr_i64 k = 0; l->transpose && k < l->transpose->count; k++)
		bytes += transposed_bytes(l, l->transpose->ops + k);
	return bytes;
}

/* Sets the operands of the temporaries, whose memory begins at base and holds
 * so many rows. */
static void place_temps(rowtile *t, char *base, mr_i64 rows)
{
	const mr_launch *l = t->x->l;
	const int cols = l->mode == MR_COLS;
	const mr_i64 rank = t->points.rank;
	for (int k = 0; k < l->ntemps; k++) {
		mr_operand *o = t->ops + l->nops + k;
		memset(o, 0, sizeof *o);
		o->base = base;
		base += temp_bytes(l, rows, k);
		mr_i64 dense = 1;
		for (mr_i64 d = rank - 1; d >= 0; d--) {
			const int kept = cols ? d == rank - 1 : d < l->kept;
			if (l->temps[k].row && !kept)
				continue;
			o->stride[d] = dense;
			dense *= cols && kept ? 1 : t->points.dims[d];
		}
	}
}

/* Has an operand read where its transposed rows will be. */
static void place_transposed(rowtile *t, const struct mr_transposed *from, char *base)
{
	const mr_launch *l = t->x->l;
	mr_operand *o = t->ops + from->operand;
	mr_i64 dense = 1;
	o->base = base;
	for (mr_i64 d = l->args.rank - 1; d >= 0; d--) {
		if (d == l->kept - 1)
			dense = pitch(l, from->size);
		o->stride[d] = dense;
		dense *= l->args.dims[d];
	}
}

/* Transposes what the tile's rows have of an operand: those of one stretch along
 * the last kept dim at a time. */
static void transpose_rows(rowtile *t, const struct mr_transposed *k)
{
	const mr_launch *l = t->x->l;
	const mr_operand *from = l->args.ops + k->operand;
	mr_operand *o = t->ops + k->operand;
	const mr_i64 inner = l->args.rank - 1, last = l->kept - 1, ld = pitch(l, k->size);
	const mr_i64 width = l->args.dims[last], n = l->args.dims[inner];
	o->offset = -t->first * ld;
	for (mr_i64 r = t->first, end = t->first + t->n, m; r < end; r += m) {
		mr_i64 at = from->offset + r % width * from->stride[last], rest = r / width;
		m = width - r % width < end - r ? width - r % width : end - r;
		for (mr_i64 d = last - 1; d >= 0; d--) {
			at += rest % l->args.dims[d] * from->stride[d];
			rest /= l->args.dims[d];
		}
		for (mr_i64 p = 0; p < l->reduced; p += n) {
			mr_i64 q = at;
			rest = p / n;
			for (mr_i64 d = inner - 1; d > last; d--) {
				q += rest % l->args.dims[d] * from->stride[d];
				rest /= l->args.dims[d];
			}
			mr_transposed(k->size, o->base + ((r - t->first) * ld + p) * k->size, ld,
				from->base + q * k->size, from->stride[last], from->stride[inner], m, n);
		}
	}
}

int mr_make_tile(rowjob *x, int who, rowtile *t)
{
	const mr_launch *l = x->l;
	const needs n = needs_of(x);
	char *s = mr_scratch(x->pool, who, x->room);
	if (!s) {
		__atomic_store_n(&x->failed, 1, __ATOMIC_RELAXED);
		return -1;
	}
	memset(t, 0, sizeof *t);
	t->x = x;
	t->ops = (mr_operand *)s;
	s += mr_align((l->nops + l->ntemps) * (mr_i64)sizeof(mr_operand));
	for (mr_i64 k = 0; k < n.count; k++) {
		t->bufs[k] = s;
		t->wide[k] = s + chunk_bytes(x);
		t->acc[k] = s + 2 * chunk_bytes(x);
		t->total[k] = t->acc[k] + n.acc;
		s = t->total[k] + mr_align(16 * x->columns);
	}
	t->open = s;
	s += l->ntotals * MR_OPEN;
	for (mr_i64 k = 0; k < n.count; k++, s += n.sort)
		t->sorting[k] = s;
	t->work = s;
	s += n.sort ? mr_align(mr_sort_work(l->reduced)) : 0;
	char *scratch = s;
	s += mr_align(n.scratch);
	memcpy(t->ops, l->args.ops, (size_t)l->nops * sizeof *t->ops);
	t->points = t->rows = l->args;
	t->points.ops = t->rows.ops = t->ops;
	t->points.bufs = t->bufs;
	t->points.scratch = t->rows.scratch = scratch;
	if (l->mode == MR_ROWS) {
		t->rows.rank = l->kept > 0 ? l->kept : 1;
		if (l->kept == 0)
			t->rows.dims[0] = 1;
	} else {
		const mr_i64 outer = l->kept - 1;
		t->points.rank = t->rows.rank = l->args.rank - outer;
		for (mr_i64 d = 0; d < t->points.rank; d++) {
			t->points.dims[d] = l->args.dims[d + outer];
			t->rows.dims[d] = 1;
		}
	}
	t->own = !l->split;
	for (mr_i64 k = 0; l->transpose && k < l->transpose->count; k++) {
		place_transposed(t, l->transpose->ops + k, s);
		s += transposed_bytes(l, l->transpose->ops + k);
	}
	place_temps(t, l->split ? x->shared : s, l->split ? l->outputs : l->tile);
	return 0;
}

/* Columns [left, left + n) of the outer kept point `row`. */
static void place_columns(rowtile *t, mr_i64 row, mr_i64 left, mr_i64 n)
{
	const mr_launch *l = t->x->l;
	const mr_i64 outer = l->kept - 1, rank = l->args.rank;
	for (mr_i64 i = 0; i < l->nops; i++) {
		const mr_operand *from = l->args.ops + i;
		mr_operand *o = t->ops + i;
		mr_i64 at = row;
		o->offset = from->offset + left * from->stride[rank - 1];
		for (mr_i64 d = outer - 1; d >= 0; d--) {
			o->offset += at % l->args.dims[d] * from->stride[d];
			at /= l->args.dims[d];
		}
		memcpy(o->stride, from->stride + outer, (size_t)(rank - outer) * sizeof *o->stride);
		o->guard = from->guard >> outer;
	}
	t->points.dims[t->points.rank - 1] = t->rows.dims[t->rows.rank - 1] = n;
}

void mr_place_tile(rowtile *t, mr_i64 u)
{
	const rowjob *x = t->x;
	const mr_launch *l = x->l;
	const int cols = l->mode == MR_COLS;
	if (cols) {
		const mr_i64 row = u / x->across, left = u % x->across * l->tile;
		t->n = x->width - left < l->tile ? x->width - left : l->tile;
		t->first = row * x->width + left;
		place_columns(t, row, left, t->n);
	} else {
		t->first = u * l->tile;
		t->n = l->outputs - t->first < l->tile ? l->outputs - t->first : l->tile;
	}
	for (mr_i64 k = 0; l->transpose && k < l->transpose->count; k++)
		transpose_rows(t, l->transpose->ops + k);
	t->strips = cols ? 1 : t->n;
	t->columns = cols ? t->n : 1;
	/* Rows of temporaries are counted from the tile's first, or from the
	 * launch's where they are shared; points from the tile's domain. */
	const mr_i64 shift = (cols ? t->first : 0) - (t->own ? t->first : 0);
	for (int k = 0; k < l->ntemps; k++) {
		mr_operand *o = t->ops + l->nops + k;
		o->offset = shift * (l->temps[k].row ? 1 : l->reduced);
		if (cols && !l->temps[k].row) /* dense within the tile */
			for (mr_i64 d = t->points.rank - 2, dense = t->n; d >= 0; d--) {
				o->stride[d] = dense;
				dense *= t->points.dims[d];
			}
	}
}
