//go:build cgo

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fpenv.h"
#include "run.h"

/* A job is open while its share of state's generation is odd. Threads join an
 * open job by counting themselves into the low bits; its owner closes it when
 * no unit is left and waits for those that joined. A thread that wakes late
 * finds the job closed and touches nothing of it. */
#define ACTIVE 0xffff
#define GENERATION 0x10000

/* Spins before a thread sleeps: some 30 µs, a few times what a launch takes,
 * so that a list of launches never pays for waking. */
#define SPINS 4000

typedef struct worker {
	mr_pool *pool;
	int who;
	pthread_t thread;
	struct memory {
		void *p;
		mr_i64 size;
	} own, walker;
} worker;

struct mr_pool {
	_Atomic mr_u64 state;
	_Atomic int sleeping;
	_Atomic int quit;
	int n;
	pthread_mutex_t lock;
	pthread_cond_t wake;

	/* the job */
	mr_share fn;
	void *ctx;
	mr_i64 total, grain;
	int limit;
	_Alignas(64) _Atomic mr_i64 next;
	_Alignas(64) worker workers[]; /* n, and one whose memory belongs to whole jobs */
};

static inline void relax(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

static void take(mr_pool *p, int who)
{
	for (;;) {
		mr_i64 begin = atomic_fetch_add_explicit(&p->next, p->grain, memory_order_relaxed);
		if (begin >= p->total)
			return;
		mr_i64 end = p->total - begin > p->grain ? begin + p->grain : p->total;
		p->fn(p->ctx, who, begin, end);
	}
}

/* Waits for a generation other than the last one; 0 at the end of the pool. */
static int await(mr_pool *p, mr_u64 last, mr_u64 *state)
{
	for (int i = 0; i < SPINS; i++) {
		*state = atomic_load(&p->state);
		if (*state / GENERATION != last && *state & GENERATION)
			return 1;
		if (atomic_load(&p->quit))
			return 0;
		relax();
	}
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add(&p->sleeping, 1);
	for (;;) {
		*state = atomic_load(&p->state);
		if ((*state / GENERATION != last && *state & GENERATION) || atomic_load(&p->quit))
			break;
		pthread_cond_wait(&p->wake, &p->lock);
	}
	atomic_fetch_sub(&p->sleeping, 1);
	pthread_mutex_unlock(&p->lock);
	return !atomic_load(&p->quit);
}

static void *work(void *arg)
{
	worker *w = arg;
	mr_pool *p = w->pool;
	mr_u64 last = 0, state;
	while (await(p, last, &state)) {
		last = state / GENERATION;
		while (state / GENERATION == last && !atomic_compare_exchange_weak(&p->state, &state, state + 1))
			;
		if (state / GENERATION != last)
			continue; /* closed meanwhile */
		if (w->who < p->limit) {
			mr_fpenv saved = mr_fpenv_set();
			take(p, w->who);
			mr_fpenv_restore(saved);
		}
		atomic_fetch_sub(&p->state, 1);
	}
	return NULL;
}

mr_pool *mr_pool_open(int n)
{
	mr_pool *p;
	size_t size = sizeof *p + (size_t)(n + 1) * sizeof *p->workers;
	if (n < 1 || posix_memalign((void **)&p, 64, size) != 0)
		return NULL;
	memset(p, 0, size);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->n = 1;
	p->workers[0].pool = p;
	for (int i = 1; i < n; i++) {
		worker *w = &p->workers[i];
		w->pool = p;
		w->who = i;
		if (pthread_create(&w->thread, NULL, work, w) != 0) {
			mr_pool_close(p);
			return NULL;
		}
		p->n++;
	}
	return p;
}

void mr_pool_close(mr_pool *p)
{
	pthread_mutex_lock(&p->lock);
	atomic_store(&p->quit, 1);
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (int i = 1; i < p->n; i++)
		pthread_join(p->workers[i].thread, NULL);
	for (int i = 0; i <= p->n; i++) {
		free(p->workers[i].own.p);
		free(p->workers[i].walker.p);
	}
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int mr_pool_threads(const mr_pool *p) { return p->n; }

void mr_split(mr_pool *p, int n, mr_i64 total, mr_i64 grain, mr_share fn, void *ctx)
{
	if (n <= 1 || p->n == 1 || total <= grain) {
		if (total > 0)
			fn(ctx, 0, 0, total);
		return;
	}
	p->fn = fn;
	p->ctx = ctx;
	p->total = total;
	p->grain = grain;
	p->limit = n;
	atomic_store_explicit(&p->next, 0, memory_order_relaxed);
	atomic_fetch_add(&p->state, GENERATION); /* opens */
	if (atomic_load(&p->sleeping) > 0) {
		pthread_mutex_lock(&p->lock);
		pthread_cond_broadcast(&p->wake);
		pthread_mutex_unlock(&p->lock);
	}
	take(p, 0);
	atomic_fetch_add(&p->state, GENERATION); /* closes */
	for (int i = 0; atomic_load(&p->state) & ACTIVE; i++) {
		if (i < SPINS)
			relax();
		else
			sched_yield();
	}
}

static void *reserve(struct memory *m, mr_i64 bytes)
{
	if (m->size < bytes) {
		free(m->p);
		m->size = 0;
		if (posix_memalign(&m->p, 64, (size_t)bytes) != 0) {
			m->p = NULL;
			return NULL;
		}
		m->size = bytes;
	}
	return m->p;
}

void *mr_scratch(mr_pool *p, int who, mr_i64 bytes) { return reserve(&p->workers[who].own, bytes); }
void *mr_walker_scratch(mr_pool *p, int who, mr_i64 bytes) { return reserve(&p->workers[who].walker, bytes); }
