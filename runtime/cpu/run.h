/* The command-list walker: one call runs a list of launches in order, each
 * split over a persistent pool of threads. */
#ifndef MR_RUN_H
#define MR_RUN_H

#include "abi.h"

#define MR_MAX_REDUCES 16

/* A value of a phase that is folded, scanned or sorted into a temporary. */
typedef struct mr_reduce {
	mr_i32 op;         /* of fold.h */
	mr_i32 scan;       /* op is scanned */
	mr_i32 dt;         /* of the values */
	mr_i32 temp;       /* the operand that takes the result */
	mr_i32 size;       /* bytes of one element there */
	mr_i32 load;       /* the operand whose elements are the values, -1 where they are computed */
	mr_i32 descending; /* of sorts */
	mr_i32 total;      /* number of the fold of all points that it is, counted from 1; 0: a row's */
	mr_u64 empty;      /* what a fold of nothing gives */
} mr_reduce;

/* An elementwise program over the points of a row, or over rows as points. */
typedef struct mr_phase {
	mr_eval eval;     /* tier 1: the phase; tier 0: mr_tier0_eval */
	const void *code; /* tier 0: the program */
	mr_i64 scratch;   /* bytes that an evaluation needs */
	mr_i64 row;       /* a row is one point */
	mr_i64 stores;
	mr_i64 look;      /* the next tile is asked for meanwhile */
	mr_i64 even;      /* what it loads is the same at all points of a row's tail; stores are those that it makes there */
	const struct mr_stored { mr_i32 operand, size; } *stored;
	mr_i64 nreduce;
	const mr_reduce *reduces;
} mr_phase;

/* Memory between phases: a value per row, or per point. */
typedef struct mr_temp {
	mr_i32 size;
	mr_i32 row;
} mr_temp;

/* The order of a launch's dims. */
enum {
	MR_NONE = 0, /* no rows: one phase over all points */
	MR_ROWS = 1, /* kept dims, then reduced dims */
	MR_COLS = 2, /* kept dims but the last, reduced dims, the last kept dim */
	MR_DOT = 3   /* a contraction, which has domains of its own */
};

/* A scatter: phase 0 gives the indices, phase 1 what is scattered. */
typedef struct mr_scatter {
	mr_i32 out, in;    /* operands */
	mr_i32 dt, index;  /* dtypes of the elements, and of the indices */
	mr_i32 mode;       /* MR_T0_ERROR … */
	mr_i32 op;         /* of fold.h; MR_FOLDS: the last one stays */
	mr_i32 spread;     /* MR_COLS: indices differ along the columns */
	mr_i32 copy;       /* the output is other memory than the operand */
	mr_i64 parts;      /* of the axis, each some thread's */
} mr_scatter;

/* Operands that are transposed tile by tile, see transpose.c. */
typedef struct mr_transpose {
	mr_i64 dim;        /* along which they are neighbours; of rows the last kept one */
	mr_i64 rows, cols; /* of a tile of an elementwise launch: points along dim and along the innermost */
	mr_i64 count;
	const struct mr_transposed { mr_i32 operand, size; } *ops;
} mr_transpose;

typedef struct mr_launch {
	mr_args args;    /* bufs, scratch and code are set by the walker */
	mr_i64 total;    /* points of the domain */
	mr_i64 bytes;    /* touched by one point, for the size of shares */
	mr_i64 mode;
	mr_i64 nops;     /* operands of the kernel; args.ops has room for the temporaries behind them */
	mr_i64 kept;     /* number of kept dims */
	mr_i64 outputs;  /* points of the kept dims */
	mr_i64 reduced;  /* points of the reduced dims */
	mr_i64 tile;     /* rows worked on together */
	mr_i64 threads;  /* worth having */
	mr_i64 split;    /* threads share rows, phase by phase */
	mr_i64 wave;     /* neighbours with the same one run at a time, each on a thread; 0: by itself */
	const mr_i64 *tails; /* of each row: where its tail begins, see mr_phase.even; NULL where rows have none */
	const mr_i64 *ahead; /* per operand: bytes of an element where its elements lie in the order of points and are worth asking for, else 0 */
	mr_i64 nphases, ntemps;
	mr_i64 ntotals;
	const mr_phase *phases;
	const mr_temp *temps;
	const struct mr_dot *dot; /* MR_DOT */
	const mr_transpose *transpose; /* NULL where no operand is transposed; MR_NONE and MR_ROWS only */
	const struct mr_scatter *scatter; /* of a scatter, in the order of MR_ROWS or MR_COLS */
} mr_launch;

typedef struct mr_pool mr_pool;

/* A pool of n threads, the caller of mr_run being one of them. They are started
 * for the first job that is worth several, and flush denormals or not, as
 * mr_fpenv_set says. NULL where memory is refused. */
mr_pool *mr_pool_open(int n, int flush);
/* How many of them the system refused, as far as was tried: jobs run on the others.
 * To be read atomically. */
const mr_i32 *mr_pool_refused(const mr_pool *p);
/* Wakes threads that sleep, for a job that will come soon: they wait for it
 * awake for a moment, and sleep again. Called at any time. */
void mr_pool_rouse(mr_pool *p);
/* How many sleep. To be read atomically. */
const mr_i32 *mr_pool_sleeping(const mr_pool *p);
void mr_pool_close(mr_pool *p);

/* A share of a job: units [begin, end), on thread number who of the pool. */
typedef void (*mr_share)(void *ctx, int who, mr_i64 begin, mr_i64 end);

/* Runs units [0, total) in shares of about grain units on at most n threads.
 * Returns when all are done. One call at a time per pool. */
void mr_split(mr_pool *p, int n, mr_i64 total, mr_i64 grain, mr_share fn, void *ctx);
int mr_pool_threads(const mr_pool *p);
int mr_pool_flushes(const mr_pool *p);

/* Memory of thread who of the pool, or of the job as a whole where who is the
 * number of threads: at least so many bytes, 64-byte aligned; NULL where it is
 * refused. Contents last until the next call for it. */
void *mr_scratch(mr_pool *p, int who, mr_i64 bytes);
/* The same, of another memory, for what runs inside a job that uses the first. */
void *mr_walker_scratch(mr_pool *p, int who, mr_i64 bytes);
/* A pool of the caller alone, for what thread who of p runs as a whole: with it as
 * their pool, jobs inside a job of p have scratch of their own. NULL where memory
 * is refused. Made when it is first asked for: by the owner of jobs, between them. */
mr_pool *mr_pool_inner(mr_pool *p, int who);

/* dst[i*ldd + j], in elements of so many bytes, becomes src[i*rs + j*cs] for i <
 * rows, j < cols: the transposed operands of a tile. */
void mr_transposed(mr_i32 size, void *dst, mr_i64 ldd, const void *src, mr_i64 rs, mr_i64 cs, mr_i64 rows, mr_i64 cols);

/* The same where rows follow one another, as few points as each may have. Where all are
 * alike (rs == 0) the first ones are copied. */
void mr_spread(mr_i32 size, char *dst, const char *src, mr_i64 rs, mr_i64 cs, mr_i64 rows, mr_i64 cols);

/* Waits for what this thread stored past the caches. */
static inline void mr_streamed(void)
{
#if defined __SSE__
	__builtin_ia32_sfence();
#endif
}

/* Runs n launches in order. One call at a time per pool. Returns 0, or -1
 * where scratch memory is refused, or the number, counted from 1, of the launch
 * that met an index out of range: then nothing further has run. */
int mr_run(mr_pool *p, const mr_launch *list, mr_i64 n);

/* One launch with rows, with a scatter, or with operands that are transposed;
 * parts of mr_run. */
int mr_run_rows(mr_pool *p, const mr_launch *l);
int mr_run_transposed(mr_pool *p, const mr_launch *l);
int mr_run_scatter(mr_pool *p, const mr_launch *l);

/* Copies on all threads. */
void mr_copy(mr_pool *p, void *dst, const void *src, mr_i64 bytes);

/* Tier 0: evaluates a->code. */
void mr_tier0_eval(const mr_args *a, mr_i64 begin, mr_i64 end);

#endif
