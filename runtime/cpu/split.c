//go:build cgo

/* Few rows for the threads there are: every phase is shared out, by blocks of
 * rows, and is complete before the next one begins. Temporaries belong to the
 * whole launch. */
#include "rows.h"

static void blocks(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	rowjob *x = ctx;
	rowtile t;
	if (mr_make_tile(x, who, &t))
		return;
	for (mr_i64 u = begin; u < end; u++) {
		const mr_i64 b = u % x->blocks;
		if (u == begin || b == 0)
			mr_place_tile(&t, u / x->blocks);
		mr_point_phase(&t, x->phase, b, b + 1);
	}
	mr_streamed();
}

/* What is left of a phase once all blocks are done, tile by tile. */
static int finish(rowjob *x, const mr_phase *ph)
{
	rowtile t;
	if (x->failed || mr_make_tile(x, 0, &t))
		return -1;
	for (mr_i64 u = 0; u < x->tiles; u++) {
		mr_place_tile(&t, u);
		if (ph->row)
			mr_row_phase(&t, ph);
		else
			mr_combine(&t, ph);
	}
	mr_streamed();
	return 0;
}

int mr_run_split(rowjob *x)
{
	const mr_launch *l = x->l;
	mr_i64 temps = 0, most = 0;
	for (int k = 0; k < l->ntemps; k++)
		temps += mr_align(l->outputs * (l->temps[k].row ? 1 : l->reduced) * l->temps[k].size + 64 * 8);
	for (mr_i64 k = 0; k < l->nphases; k++)
		if (l->phases[k].nreduce > most)
			most = l->phases[k].nreduce;
	x->shared = mr_scratch(x->pool, mr_pool_threads(x->pool), temps + most * x->blocks * l->outputs * 16 + 64);
	if (!x->shared)
		return -1;
	x->partials = x->shared + temps;
	for (mr_i64 k = 0; k < l->nphases; k++) {
		const mr_phase *ph = l->phases + k;
		const mr_i64 units = x->tiles * x->blocks;
		x->phase = ph;
		if (!ph->row)
			mr_split(x->pool, (int)l->threads, units, units / (l->threads * 8) + 1, blocks, x);
		if ((ph->row || ph->nreduce > 0) && finish(x, ph))
			return -1;
	}
	return x->failed ? -1 : 0;
}
