/* The command-list walker: one call runs a list of launches in order, each
 * split over a persistent pool of threads. */
#ifndef MR_RUN_H
#define MR_RUN_H

#include "abi.h"

/* How a launch folds values. Values arrive through mr_args.bufs; the order is
 * the one of docs/numerics.md: 64 lanes by index modulo 64, blocks of 4096,
 * one fixed fold, blocks combined in order. */
enum { MR_SUM = 0, MR_MAX = 1 };
enum { MR_BOOL = 1, MR_U8, MR_I32, MR_I64, MR_U32, MR_U64, MR_F32, MR_F64 }; /* as ir.DType */

typedef struct mr_reduce {
	mr_i32 op;
	mr_i32 dt;
	mr_i32 operand; /* output operand, stride 0 along the reduced dims */
} mr_reduce;

typedef struct mr_launch {
	mr_args args;      /* bufs and scratch are set per thread by the walker */
	mr_eval eval;      /* tier 1: the kernel; tier 0: mr_tier0_eval */
	mr_i64 total;      /* points of the domain */
	mr_i64 bytes;      /* touched by one point, for the choice of threads */
	mr_i64 scratch;    /* bytes of scratch an evaluation needs */
	mr_i64 kept;       /* leading dims that are kept; rank where nothing is reduced */
	mr_i64 nreduce;
	const mr_reduce *reduces;
} mr_launch;

typedef struct mr_pool mr_pool;

/* Starts a pool of n threads, the caller of mr_run being one of them. NULL
 * where threads or memory are refused. */
mr_pool *mr_pool_open(int n);
void mr_pool_close(mr_pool *p);

/* Runs n launches in order. One call at a time per pool. Returns 0, or -1
 * where scratch memory is refused: then nothing further has run. */
int mr_run(mr_pool *p, const mr_launch *list, mr_i64 n);

/* Tier 0: evaluates a->code. */
void mr_tier0_eval(const mr_args *a, mr_i64 begin, mr_i64 end);

#endif
