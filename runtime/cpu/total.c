//go:build cgo

/* Totals: folds of all points of a launch with rows, in the order of
 * docs/numerics.md, which is that of the points. A thread meets the points of its
 * share in order, phase by phase, so it folds the blocks that lie in its share
 * whole. Of the others the elements are kept, and folded when all shares are done. */
#include <string.h>

#include "rows.h"

static mr_i64 blocks_of(const mr_launch *l) { return (l->total + MR_BLOCK - 1) / MR_BLOCK; }

/* Bytes of the results of a total's blocks, and of what shares have of one block. */
static mr_i64 sums_bytes(const mr_launch *l) { return mr_align(blocks_of(l) * 8); }
#define EDGE (8 * MR_BLOCK)

/* Where the elements of block b are kept: it ends behind the share that it begins in. */
static char *edge_of(const rowjob *x, mr_i64 total, mr_i64 b)
{
	return x->edges + ((b * MR_BLOCK / x->share) * x->l->ntotals + total) * EDGE;
}

static mr_i64 elements(const mr_launch *l, mr_i64 b)
{
	const mr_i64 left = l->total - b * MR_BLOCK;
	return left < MR_BLOCK ? left : MR_BLOCK;
}

/* Bytes of an element as it is folded. */
static mr_i64 folded(const mr_reduce *r)
{
	const mr_dtype *dt = &mr_folds_used->dtype[r->dt];
	return dt->widen ? mr_folds_used->dtype[dt->compute].size : dt->size;
}

int mr_open_totals(rowjob *x)
{
	const mr_launch *l = x->l;
	const mr_i64 shares = (x->tiles + x->grain - 1) / x->grain, sums = l->ntotals * sums_bytes(l);
	x->sums = mr_scratch(x->pool, mr_pool_threads(x->pool), sums + shares * l->ntotals * EDGE + 64);
	x->edges = x->sums + sums;
	return x->sums ? 0 : -1;
}

void mr_take_total(rowtile *t, const mr_reduce *r, const char *values, mr_i64 p, mr_i64 m)
{
	const rowjob *x = t->x;
	const mr_folder *f = mr_folder_of(r);
	const mr_i64 size = folded(r), total = r->total - 1;
	char *lanes = t->open + total * MR_OPEN;
	while (m > 0) {
		const mr_i64 b = p / MR_BLOCK, at = p % MR_BLOCK, n = elements(x->l, b), some = n - at < m ? n - at : m;
		if (b * MR_BLOCK < t->from || b * MR_BLOCK + n > t->to) {
			memcpy(edge_of(x, total, b) + at * size, values, (size_t)(some * size));
		} else {
			if (at == 0)
				f->start(lanes);
			f->add(lanes, values, at, some, 1, 1);
			if (at + some == n) {
				f->finish(lanes, n, 1);
				memcpy(x->sums + total * sums_bytes(x->l) + b * 8, lanes, (size_t)f->size);
			}
		}
		values += some * size;
		p += some;
		m -= some;
	}
}

/* Whether no share has all of block b. */
static int shared(const rowjob *x, mr_i64 b)
{
	return b * MR_BLOCK / x->share != (b * MR_BLOCK + elements(x->l, b) - 1) / x->share;
}

static void close(const rowjob *x, const mr_reduce *r)
{
	const mr_launch *l = x->l;
	const mr_dtype *dt = &mr_folds_used->dtype[r->dt];
	const mr_folder *f = mr_folder_of(r);
	const mr_operand *o = l->args.ops + r->temp;
	char *out = o->base + o->offset * r->size, *sums = x->sums + (r->total - 1) * sums_bytes(l);
	_Alignas(64) char lanes[MR_OPEN];
	if (l->total == 0) {
		memcpy(out, &r->empty, (size_t)r->size);
		return;
	}
	for (mr_i64 b = 0; b < blocks_of(l); b++) {
		if (shared(x, b)) {
			f->start(lanes);
			f->add(lanes, edge_of(x, r->total - 1, b), 0, elements(l, b), 1, 1);
			f->finish(lanes, elements(l, b), 1);
			memcpy(sums + b * 8, lanes, (size_t)f->size);
		}
		if (b > 0)
			f->combine(sums, sums + b * 8, 1);
	}
	if (dt->narrow)
		dt->narrow(out, sums, 1);
	else
		f->result(out, r->size, sums, 1);
}

void mr_close_totals(rowjob *x)
{
	const mr_launch *l = x->l;
	for (mr_i64 k = 0; k < l->nphases; k++)
		for (mr_i64 i = 0; i < l->phases[k].nreduce; i++)
			if (l->phases[k].reduces[i].total)
				close(x, l->phases[k].reduces + i);
}
