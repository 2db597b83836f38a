/* Kernels with a contraction: what the engine of contract.h reads and writes
 * is memory where it can be, else it comes from evaluating phases. */
#ifndef MR_CONTRACT_RUN_H
#define MR_CONTRACT_RUN_H

#include "contract.h"

/* A phase over the points of a side, or over the results. Its domain is the
 * dims of the batch, then those of the outer group, then those of the inner
 * one. For a side that is filled along k these are its rows or columns and k;
 * for one filled the other way, k and its rows or columns; for results, rows
 * and columns. */
typedef struct mr_view {
	const mr_phase *phase;
	mr_args args;         /* bufs, scratch and code are set by the walker */
	mr_i64 lead;          /* dims of the batch */
	mr_i64 outer, inner;  /* points of the groups */
	mr_i64 flat;          /* each group is one dim: blocks are evaluated whole */
	mr_i64 ntouched;      /* z with short rows only, see shortRow in transpose.go: what the phase touches, of */
	const struct mr_transposed *touched; /* size 0 where it must not be spread */
} mr_view;

/* A side, or the results, that are memory along several dims: its groups are
 * those that its view would have. */
typedef struct mr_walked {
	mr_i64 on;
	char *base;
	mr_i64 batch[MR_MAX_RANK];
	mr_walk outer, inner;
} mr_walked;

typedef struct mr_dot {
	mr_contract c;        /* fills, drain and their contexts are set by the walker */
	mr_view x, y, z;      /* z is the last phase; phases of views that are memory are not looked at */
	mr_walked wx, wy, wz; /* instead of the views where they are on */
	mr_i64 nops;          /* operands of every phase */
	mr_i64 temp;          /* the one that is the result */
	mr_i64 drains;        /* the sink is z, not memory */
	mr_i64 level;         /* ISA level */
} mr_dot;

/* Runs one. Returns 0, or -1 where scratch memory is refused. */
int mr_run_dot(mr_pool *p, const mr_dot *d);

/* How often, so far, a part of a side that is memory along several dims was copied into
 * panels at once: by the numbers nobody can tell. */
mr_i64 mr_panels_walked(void);

#endif
