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

#define MR_LANES 64
#define MR_BLOCK 4096
#define MR_MAX_REDUCES 8

typedef struct mr_reduce {
	mr_i32 op;
	mr_i32 dt;
	mr_i32 operand; /* output operand, stride 0 along the reduced dims */
	mr_i32 pad;
} mr_reduce;

/* The order of a reducing launch's dims. */
enum {
	MR_NONE = 0, /* nothing is reduced */
	MR_ROWS = 1, /* kept dims, then reduced dims */
	MR_COLS = 2  /* kept dims but the last, reduced dims, the last kept dim */
};

typedef struct mr_launch {
	mr_args args;      /* bufs and scratch are set per thread by the walker */
	mr_eval eval;      /* tier 1: the kernel; tier 0: mr_tier0_eval */
	mr_i64 total;      /* points of the domain */
	mr_i64 bytes;      /* touched by one point, for the choice of threads */
	mr_i64 scratch;    /* bytes of scratch an evaluation needs */
	mr_i64 mode;
	mr_i64 nops;
	mr_i64 kept;       /* number of kept dims */
	mr_i64 nreduce;
	const mr_reduce *reduces;
} mr_launch;

typedef struct mr_pool mr_pool;

/* Starts a pool of n threads, the caller of mr_run being one of them. NULL
 * where threads or memory are refused. */
mr_pool *mr_pool_open(int n);
void mr_pool_close(mr_pool *p);

/* A share of a job: units [begin, end), on thread number who of the pool. */
typedef void (*mr_share)(void *ctx, int who, mr_i64 begin, mr_i64 end);

/* Runs units [0, total) in shares of about grain units on at most n threads.
 * Returns when all are done. One call at a time per pool. */
void mr_split(mr_pool *p, int n, mr_i64 total, mr_i64 grain, mr_share fn, void *ctx);
int mr_pool_threads(const mr_pool *p);

/* Memory of thread who of the pool, or of the job as a whole where who is the
 * number of threads: at least so many bytes, 64-byte aligned; NULL where it is
 * refused. Contents last until the next call for it. */
void *mr_scratch(mr_pool *p, int who, mr_i64 bytes);

/* Runs n launches in order. One call at a time per pool. Returns 0, or -1
 * where scratch memory is refused: then nothing further has run. */
int mr_run(mr_pool *p, const mr_launch *list, mr_i64 n);

/* One launch that reduces; a part of mr_run. */
int mr_run_reduce(mr_pool *p, const mr_launch *l);

/* Copies on all threads. */
void mr_copy(mr_pool *p, void *dst, const void *src, mr_i64 bytes);

/* Tier 0: evaluates a->code. */
void mr_tier0_eval(const mr_args *a, mr_i64 begin, mr_i64 end);

#endif
