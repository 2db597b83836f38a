//go:build cgo

#include <string.h>

#include "contract_run.h"
#include "fpenv.h"

/* Bytes of a share: small enough that threads end together, large enough that
 * starting a share costs nothing. */
#define SHARE_BYTES (1 << 19)

/* Shares begin at multiples of this many points, so that no two threads write
 * to one cache line of a dense output and blocks of tier 0 stay whole. */
#define SHARE_POINTS 1024

typedef struct {
	const mr_launch *l;
	mr_pool *pool;
	int failed;
} elementwise;

static void evaluate(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	elementwise *e = ctx;
	const mr_phase *ph = e->l->phases;
	mr_args a = e->l->args;
	a.code = ph->code;
	if (ph->scratch > 0 && !(a.scratch = mr_scratch(e->pool, who, ph->scratch))) {
		__atomic_store_n(&e->failed, 1, __ATOMIC_RELAXED);
		return;
	}
	ph->eval(&a, begin, end);
	mr_streamed();
}

static int run_elementwise(mr_pool *p, const mr_launch *l)
{
	const mr_i64 bytes = l->bytes > 0 ? l->bytes : 1;
	mr_i64 threads = l->threads;
	mr_i64 grain = l->total;
	if (threads > mr_pool_threads(p))
		threads = mr_pool_threads(p);
	if (threads > 1) {
		grain = SHARE_BYTES / bytes;
		if (grain > l->total / threads)
			grain = l->total / threads;
		grain = (grain + SHARE_POINTS) / SHARE_POINTS * SHARE_POINTS;
	}
	elementwise e = {l, p, 0};
	mr_split(p, (int)threads, l->total, grain, evaluate, &e);
	return e.failed ? -1 : 0;
}

static int run_one(mr_pool *p, const mr_launch *l)
{
	if (l->mode == MR_NONE)
		return l->transpose ? mr_run_transposed(p, l) : run_elementwise(p, l);
	if (l->mode == MR_DOT)
		return mr_run_dot(p, l->dot);
	if (l->scatter)
		return mr_run_scatter(p, l);
	return mr_run_rows(p, l);
}

typedef struct {
	const mr_launch *l;
	mr_pool *pool;
	int failed;
} wave;

static void whole(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	wave *w = ctx;
	mr_pool *own = mr_pool_inner(w->pool, who);
	for (mr_i64 i = begin; i < end; i++)
		if (run_one(own, w->l + i))
			__atomic_store_n(&w->failed, 1, __ATOMIC_RELAXED);
}

/* Launches that do not depend on each other, each on one thread. */
static int run_wave(mr_pool *p, const mr_launch *list, mr_i64 n)
{
	wave w = {list, p, 0};
	const int threads = n < mr_pool_threads(p) ? (int)n : mr_pool_threads(p);
	for (int i = 0; i < threads; i++)
		if (!mr_pool_inner(p, i))
			return -1;
	mr_split(p, threads, n, 1, whole, &w);
	return w.failed ? -1 : 0;
}

int mr_run(mr_pool *p, const mr_launch *list, mr_i64 n)
{
	int failed = 0;
	mr_fpenv saved = mr_fpenv_set(mr_pool_flushes(p));
	for (mr_i64 i = 0, some = 1; i < n && !failed; i += some) {
		for (some = 1; list[i].wave && i + some < n && list[i + some].wave == list[i].wave; some++)
			;
		failed = some > 1 ? run_wave(p, list + i, some) : run_one(p, list + i);
		if (!failed && list[i].args.fault && list[i].args.fault->set)
			failed = (int)i + 1; /* what comes after would use what was not read */
	}
	mr_fpenv_restore(saved);
	return failed;
}

typedef struct {
	char *dst;
	const char *src;
} copying;

static void copy(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	copying *c = ctx;
	(void)who;
	memcpy(c->dst + begin, c->src + begin, (size_t)(end - begin));
}

void mr_copy(mr_pool *p, void *dst, const void *src, mr_i64 bytes)
{
	copying c = {dst, src};
	mr_split(p, mr_pool_threads(p), bytes, SHARE_BYTES, copy, &c);
}
