//go:build cgo

/* Kernels with rows: tiles are shared out among threads. */
#include <string.h>

#include "rows.h"

static void tiles(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	rowjob *x = ctx;
	rowtile t;
	if (mr_make_tile(x, who, &t))
		return;
	for (mr_i64 u = begin; u < end; u++) {
		if (u == begin || u % x->grain == 0) { /* one thread has all shares as one */
			t.from = u / x->grain * x->share;
			t.to = x->l->total - t.from < x->share ? x->l->total : t.from + x->share;
		}
		mr_place_tile(&t, u);
		for (mr_i64 k = 0; k < x->l->nphases; k++) {
			const mr_phase *ph = x->l->phases + k;
			if (ph->row)
				mr_row_phase(&t, ph);
			else
				mr_point_phase(&t, ph, 0, x->blocks);
		}
	}
	mr_streamed();
}

int mr_run_rows(mr_pool *p, const mr_launch *l)
{
	rowjob x = {.l = l, .pool = p, .width = 1};
	x.blocks = (l->reduced + MR_BLOCK - 1) / MR_BLOCK;
	x.columns = 1;
	if (l->mode == MR_COLS) {
		x.width = l->args.dims[l->args.rank - 1];
		x.columns = l->tile;
		x.across = (x.width + l->tile - 1) / l->tile;
		x.tiles = l->outputs / x.width * x.across;
	} else {
		x.tiles = (l->outputs + l->tile - 1) / l->tile;
	}
	x.room = mr_tile_bytes(&x);
	if (l->split)
		return mr_run_split(&x);
	x.grain = x.tiles / (l->threads * 8) + 1;
	x.share = x.grain * l->tile * l->reduced;
	if (l->ntotals > 0 && mr_open_totals(&x))
		return -1;
	mr_split(p, (int)l->threads, x.tiles, x.grain, tiles, &x);
	if (x.failed)
		return -1;
	if (l->ntotals > 0)
		mr_close_totals(&x);
	return 0;
}
