/* How rows are walked; shared by rows.c, tile.c and split.c.
 *
 * A tile is a few rows with all their points. Its phases run one after
 * another; what passes from one to the next is in temporaries, which are
 * operands behind the kernel's own. In the order of MR_ROWS a tile is a range
 * of the launch's domain, and its rows are strips of one column. In that of
 * MR_COLS it is a domain of its own, one strip with a column per row. */
#ifndef MR_ROWS_H
#define MR_ROWS_H

#include "fold.h"
#include "run.h"

/* Points evaluated at a time for a fold, so that their values stay in the
 * first-level cache. A multiple of the lanes and of a scan's blocks that
 * divides a block. */
#define MR_CHUNK 2048

/* Points evaluated between two looks ahead: what is asked for at once must not
 * keep the loads that are needed now waiting. */
#define MR_LOOK 512

typedef struct rowjob {
	const mr_launch *l;
	mr_pool *pool;
	mr_i64 blocks;         /* of MR_BLOCK points in a row */
	mr_i64 width;          /* MR_COLS: size of the last kept dim */
	mr_i64 across;         /* MR_COLS: tiles along it */
	mr_i64 tiles;
	mr_i64 room;           /* bytes of a thread's memory */
	mr_i64 columns;        /* of the widest strip */
	const mr_phase *phase; /* split: the one at work */
	char *shared;          /* split: temporaries, then partial results */
	char *partials;
	mr_i64 grain, share;   /* tiles, and points, that a thread gets at a time */
	char *sums, *edges;    /* of totals: results of blocks, and the elements of those that two shares have */
	int failed;
} rowjob;

/* A tile on its way through the phases, in a thread's memory. */
typedef struct rowtile {
	rowjob *x;
	mr_args points, rows; /* what phases of either level are evaluated with */
	mr_operand *ops;
	mr_i64 first, n;      /* rows */
	mr_i64 strips, columns;
	int own;              /* the temporaries are this tile's alone */
	char *sorting[MR_MAX_REDUCES]; /* a row's values */
	char *work;           /* of a sort */
	void *bufs[MR_MAX_REDUCES];
	char *wide[MR_MAX_REDUCES]; /* values in the dtype that computes them */
	char *acc[MR_MAX_REDUCES];
	char *total[MR_MAX_REDUCES];
	char *open;           /* lanes of totals, of the block at hand */
	mr_i64 from, to;      /* points of the share */
} rowtile;

/* Bytes of a thread's memory, which make_tile cuts up. */
mr_i64 mr_tile_bytes(const rowjob *x);
int mr_make_tile(rowjob *x, int who, rowtile *t);
/* Moves to tile number u. */
void mr_place_tile(rowtile *t, mr_i64 u);

/* Runs a phase whose points are rows. */
void mr_row_phase(rowtile *t, const mr_phase *ph);
/* Runs blocks [from, to) of all strips of a phase. Where the tile is shared
 * with other threads, results of folds go to the partial ones. */
void mr_point_phase(rowtile *t, const mr_phase *ph, mr_i64 from, mr_i64 to);
/* The same of all strips, where points of tails are alike. */
void mr_even_phase(rowtile *t, const mr_phase *ph);
/* The end of a block of a strip, and its beginning; what hands over values; see
 * phase.c. */
void mr_start_block(rowtile *t, const mr_phase *ph);
void mr_take(rowtile *t, const mr_phase *ph, mr_i64 k, mr_i64 strip, const char *values, mr_i64 step, mr_i64 r, mr_i64 m);
void mr_end_block(rowtile *t, const mr_phase *ph, mr_i64 strip, mr_i64 block, mr_i64 elements);
/* Combines the partial results of the tile's rows. */
void mr_combine(rowtile *t, const mr_phase *ph);

/* Totals, see total.c: makes room for those of a launch; takes m elements, from point
 * p of the launch on; writes the totals when all is done. */
int mr_open_totals(rowjob *x);
void mr_take_total(rowtile *t, const mr_reduce *r, const char *values, mr_i64 p, mr_i64 m);
void mr_close_totals(rowjob *x);

/* Few rows: phases are shared out one by one. */
int mr_run_split(rowjob *x);

/* Bytes of the lanes of a total. */
#define MR_OPEN (8 * MR_LANES)

static inline mr_i64 mr_align(mr_i64 n) { return (n + 63) & ~(mr_i64)63; }

static inline const mr_folder *mr_folder_of(const mr_reduce *r)
{
	return &mr_folds_used->fold[r->op][mr_folds_used->dtype[r->dt].compute];
}

#endif
