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
	mr_pool *inner; /* see mr_pool_inner */
	int asleep; /* under the pool's lock */
	int off;    /* the processor it keeps off, or -1; its own while it is awake, under the lock while it sleeps */
} worker;

#if defined __linux__ && !defined __ANDROID__
#define PLACES cpu_set_t
#else
#define PLACES int
#endif

struct mr_pool {
	_Atomic mr_u64 state;
	_Atomic mr_i32 sleeping;
	_Atomic int quit;
	_Atomic int at;  /* the processor that the owner of the last job was on, or -1 */
	int n;
	int flush;       /* see fpenv.h */
	int running;     /* threads there are, the owner of jobs included; written under the lock, by the owner of jobs */
	mr_i32 refused; /* threads that the system did not give: read from outside at any time */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	PLACES home; /* where the owner of jobs may run, and so the others; under the lock */

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

/* Runs one share; 0 where none was left. */
static int take(mr_pool *p, int who)
{
	mr_i64 begin = atomic_fetch_add_explicit(&p->next, p->grain, memory_order_relaxed);
	if (begin >= p->total)
		return 0;
	mr_i64 end = p->total - begin > p->grain ? begin + p->grain : p->total;
	p->fn(p->ctx, who, begin, end);
	return 1;
}

/* Linux likes to wake a thread on the processor of the one that wakes it, which
 * it expects to sleep soon. The owner of a job does not: it works on, and with
 * two processors both threads may stay on one of them for the whole job. So
 * threads keep off the owner's processor from before they sleep until they have
 * done a share: saying so takes longer than waking, and nobody waits then. Only
 * where the owner moved meanwhile it has to be said when they are woken. */
#if defined __linux__ && !defined __ANDROID__
static int here(void) { return sched_getcpu(); }

/* With the lock held. */
static void keep_off(worker *w)
{
	mr_pool *p = w->pool;
	const int at = atomic_load(&p->at);
	cpu_set_t others = p->home;
	if (at >= 0)
		CPU_CLR(at, &others);
	if (at < 0 || CPU_COUNT(&others) == 0)
		return;
	w->off = pthread_setaffinity_np(w->thread, sizeof others, &others) == 0 ? at : -1;
}

/* Sets home; 1 where it was so before. With the lock held. */
static int find_home(mr_pool *p)
{
	cpu_set_t home;
	if (sched_getaffinity(0, sizeof home, &home) != 0)
		return 1;
	const int same = CPU_EQUAL(&home, &p->home);
	p->home = home;
	return same;
}

static void come_back(worker *w)
{
	if (w->off < 0)
		return;
	pthread_mutex_lock(&w->pool->lock);
	pthread_setaffinity_np(w->thread, sizeof w->pool->home, &w->pool->home);
	pthread_mutex_unlock(&w->pool->lock);
	w->off = -1;
}
#else
static int here(void) { return -1; }
static void keep_off(worker *w) { (void)w; }
static int find_home(mr_pool *p) { return 1; }
static void come_back(worker *w) { (void)w; }
#endif

/* Wakes the threads that sleep. */
static void wake(mr_pool *p)
{
	pthread_mutex_lock(&p->lock);
	const int same = find_home(p), at = atomic_load(&p->at);
	for (int i = 1; i < p->running; i++) {
		worker *w = &p->workers[i];
		if (!w->asleep)
			continue;
		if (!same || w->off != at)
			keep_off(w);
		w->asleep = 0;
		atomic_fetch_sub(&p->sleeping, 1);
	}
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

static int opened(const mr_pool *p, mr_u64 last, mr_u64 *state)
{
	*state = atomic_load(&p->state);
	return *state / GENERATION != last && *state & GENERATION;
}

/* Waits for a generation other than the last one; 0 at the end of the pool. */
static int await(worker *w, mr_u64 last, mr_u64 *state)
{
	mr_pool *p = w->pool;
	for (;;) {
		for (int i = 0; i < SPINS; i++) {
			if (opened(p, last, state))
				return 1;
			if (atomic_load(&p->quit))
				return 0;
			relax();
		}
		pthread_mutex_lock(&p->lock);
		if (w->off < 0 || w->off != atomic_load(&p->at))
			keep_off(w);
		w->asleep = 1;
		atomic_fetch_add(&p->sleeping, 1);
		if (opened(p, last, state)) { /* by an owner who saw nobody sleep */
			w->asleep = 0;
			atomic_fetch_sub(&p->sleeping, 1);
		}
		while (w->asleep && !atomic_load(&p->quit))
			pthread_cond_wait(&p->wake, &p->lock);
		pthread_mutex_unlock(&p->lock);
	}
}

static void *work(void *arg)
{
	worker *w = arg;
	mr_pool *p = w->pool;
	mr_u64 last = 0, state;
	while (await(w, last, &state)) {
		last = state / GENERATION;
		while (state / GENERATION == last && !atomic_compare_exchange_weak(&p->state, &state, state + 1))
			;
		if (state / GENERATION != last)
			continue; /* closed meanwhile */
		if (w->who < p->limit) {
			mr_fpenv saved = mr_fpenv_set(p->flush);
			if (take(p, w->who)) {
				come_back(w);
				while (take(p, w->who))
					;
			}
			mr_fpenv_restore(saved);
		}
		atomic_fetch_sub(&p->state, 1);
	}
	return NULL;
}

mr_pool *mr_pool_open(int n, int flush)
{
	mr_pool *p;
	size_t size = sizeof *p + (size_t)(n + 1) * sizeof *p->workers;
	if (n < 1 || posix_memalign((void **)&p, 64, size) != 0)
		return NULL;
	memset(p, 0, size);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->n = n;
	p->flush = flush;
	p->running = 1;
	for (int i = 0; i < n; i++) {
		p->workers[i].pool = p;
		p->workers[i].who = i;
		p->workers[i].off = -1;
	}
	atomic_store(&p->at, -1);
	return p;
}

/* Starts the threads, for the first job that is worth more than one: a program
 * that computes on small tensors waits for none. Fewer do the same work. */
static void start(mr_pool *p)
{
	pthread_mutex_lock(&p->lock);
	find_home(p);
	while (p->running < p->n) {
		worker *w = &p->workers[p->running];
		if (pthread_create(&w->thread, NULL, work, w) != 0) {
			__atomic_store_n(&p->refused, p->n - p->running, __ATOMIC_RELAXED);
			break;
		}
		p->running++;
	}
	pthread_mutex_unlock(&p->lock);
}

void mr_pool_rouse(mr_pool *p)
{
	atomic_store(&p->at, here());
	wake(p);
}

const mr_i32 *mr_pool_sleeping(const mr_pool *p) { return (const mr_i32 *)&p->sleeping; }

const mr_i32 *mr_pool_refused(const mr_pool *p) { return &p->refused; }

void mr_pool_close(mr_pool *p)
{
	pthread_mutex_lock(&p->lock);
	atomic_store(&p->quit, 1);
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (int i = 1; i < p->running; i++)
		pthread_join(p->workers[i].thread, NULL);
	for (int i = 0; i <= p->n; i++) {
		free(p->workers[i].own.p);
		free(p->workers[i].walker.p);
		if (p->workers[i].inner)
			mr_pool_close(p->workers[i].inner);
	}
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

int mr_pool_threads(const mr_pool *p) { return p->n; }

int mr_pool_flushes(const mr_pool *p) { return p->flush; }

void mr_split(mr_pool *p, int n, mr_i64 total, mr_i64 grain, mr_share fn, void *ctx)
{
	if (n > 1 && p->running < p->n && total > grain && p->refused == 0)
		start(p);
	if (n <= 1 || p->running == 1 || total <= grain) {
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
	atomic_store_explicit(&p->at, here(), memory_order_relaxed);
	atomic_fetch_add(&p->state, GENERATION); /* opens */
	if (atomic_load(&p->sleeping) > 0)
		wake(p);
	while (take(p, 0))
		;
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

mr_pool *mr_pool_inner(mr_pool *p, int who)
{
	worker *w = &p->workers[who];
	if (!w->inner)
		w->inner = mr_pool_open(1, w->pool->flush);
	return w->inner;
}
