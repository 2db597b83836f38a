//go:build cgo

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "contract.h"

/* Multiplications that pay for one more thread. */
#define THREAD_WORK (1 << 20)

/* A contraction of at most so much work runs without panels, and so does one of
 * few outputs: in vectors where columns are neighbours, or one by one. */
#define SMALL_WORK 1024
#define SMALL_ROW 8192 /* of one row */
#define SCALAR_WORK 216
#define SCALAR_OUTPUTS 4

/* Rows of x up to which y is read where it lies: packing it would cost as much
 * as the work itself. */
#define SKINNY 16

/* How many k steps of a whole strip such a contraction does at once: short
 * enough that its chains stay in cache, long enough that memory is read in
 * runs. */
#define SKINNY_STEP 32
#define SKINNY_PIECE 64

/* Columns from which a matrix is transposed in vectors. Fewer of a y whose columns lie
 * along k are multiplied one by one, for a row or two. */
#define SQUARE 16

/* Rows up to which such columns are transposed again for every four of them. */
#define ALONG_ROWS 8

/* Bytes of a tile's row, of a tile, of the packed strip that one thread keeps,
 * and of a side packed for all threads. */
#define ROW_BYTES 2048
#define TILE_BYTES (1 << 18)
#define KEEP_BYTES (4 << 20)
#define SHARED_BYTES (96 << 20)

/* Steps of k up to which a tile takes about as long to write and to hand on as to
 * compute, and its bytes then: it stays in the nearest cache. */
#define SHORT_K 8
#define SHORT_TILE (1 << 14)

/* Rows of a thread from which it packs one panel of y in less time than it takes to read
 * what another has packed: that lies far away by then, as k is long. */
#define FEW_ROWS 48

/* Bytes of y up to which packing it would not pay. */
#define NEAR_BYTES (1 << 15)

/* Bytes of x up to which its rows are read where they lie, in a cache that is
 * near: unless they lie so far apart that they meet in a few lines of it. */
#define DIRECT_BYTES (1 << 19)
#define PAGE 2048

#define LINE 64

typedef struct {
	const mr_contract *c;
	const mr_kernels *f;
	mr_pool *pool;
	int swap;         /* x and y have changed places, tiles are transposed at the end */
	int skinny;       /* few rows */
	int direct;       /* x is read where it lies */
	int straight;     /* one block of k: whole panels of results are written where they belong */
	int near;         /* straight, and all of y is small enough to be read where it lies */
	int masked;       /* by c->mask */
	mr_i64 *tails;    /* c->tails and c->hidden, where they are told */
	mr_i64 *hidden;
	mr_side x, y;
	mr_i64 m, n, k;
	mr_i64 size;      /* of an element */
	mr_i64 kc;        /* k steps of a block: MR_CK, or k */
	mr_i64 blocks;    /* of k */
	mr_i64 mb, nb;    /* rows and columns of a tile; nb is a multiple of nr */
	mr_i64 ld;        /* of a tile */
	mr_i64 group;     /* rows of a unit, a multiple of mb */
	mr_i64 groups, strips;
	mr_i64 panels;    /* of all of y */
	mr_i64 keep;      /* blocks of a strip that a thread keeps packed; blocks, or 1 */
	mr_i64 batch;     /* where sides are packed for all threads: the one in work */
	int pack_x, pack_y;
	mr_packed *stays;   /* of y where it is packed for all */
	int packed;       /* y is in there */
	char *all_x, *all_y;
	char *all_known;  /* of all_y, see panels */
	mr_i64 at_strip, at_known, at_tile, at_acc, at_stage, scratch; /* offsets in a thread's scratch; x is first */
	int failed;
} job;

/* A block of k of a strip of y: panels are step elements apart, their rows ld. */
typedef struct {
	const char *p;
	mr_i64 step, ld;
	char *known; /* of each, what was found out; 0 before anybody looked. NULL where nobody does */
} panels;

enum { FINITE = 1, NOT_FINITE = 2, SMALL = 4, NOT_SMALL = 8 };

static mr_i64 least(mr_i64 a, mr_i64 b) { return a < b ? a : b; }
static mr_i64 greatest(mr_i64 a, mr_i64 b) { return a > b ? a : b; }
static mr_i64 scaled(mr_i64 n, mr_i64 power) { return power < 0 ? n >> -power : n << power; }
static mr_i64 ceil_div(mr_i64 a, mr_i64 b) { return (a + b - 1) / b; }
static mr_i64 up(mr_i64 a, mr_i64 to) { return ceil_div(a, to) * to; }

static mr_i64 batch_offset(const mr_contract *c, const mr_i64 *stride, mr_i64 batch)
{
	mr_i64 at = 0;
	for (mr_i64 d = c->rank - 1; d > 0; d--) {
		at += batch % c->dims[d] * stride[d];
		batch /= c->dims[d];
	}
	return c->rank > 0 ? at + batch * stride[0] : 0;
}

/* Element (i, p) of a side in memory. */
static const char *element(const job *j, const mr_side *s, mr_i64 batch, mr_i64 i, mr_i64 p)
{
	return (const char *)s->base + (batch_offset(j->c, s->batch, batch) + i * s->stride + p * s->kstride) * j->size;
}

/* Writes rows [i, i+rows) of x, k steps [p, p+k), to dst, whose rows are MR_CK
 * elements apart. */
static void load_x(const job *j, int who, mr_i64 batch, mr_i64 i, mr_i64 rows, mr_i64 p, mr_i64 k, char *dst, char *stage)
{
	const mr_side *s = &j->x;
	if (s->kind == MR_SIDE_MEM) {
		const char *src = element(j, s, batch, i, p);
		if (s->kstride == 1)
			for (mr_i64 r = 0; r < rows; r++)
				memcpy(dst + r * MR_CK * j->size, src + r * s->stride * j->size, (size_t)(k * j->size));
		else if (s->stride == 1)
			j->f->transpose(dst, MR_CK, src, s->kstride, k, rows);
		else
			j->f->gather(dst, MR_CK, src, s->stride, s->kstride, rows, k);
		return;
	}
	if (s->kind == MR_SIDE_FILL_K) {
		const mr_i64 step = MR_C_FILL / MR_CK;
		for (mr_i64 r = 0; r < rows; r += step)
			s->fill(s->ctx, who, batch, i + r, i + least(r + step, rows), p, p + k, dst + r * MR_CK * j->size, MR_CK);
		return;
	}
	const mr_i64 wide = MR_C_FILL / 8;
	for (mr_i64 r = 0; r < rows; r += wide) {
		const mr_i64 w = least(wide, rows - r), step = MR_C_FILL / w & ~(mr_i64)7;
		for (mr_i64 q = 0; q < k; q += step) {
			const mr_i64 kq = least(step, k - q);
			s->fill(s->ctx, who, batch, i + r, i + r + w, p + q, p + q + kq, stage, w);
			j->f->transpose(dst + (r * MR_CK + q) * j->size, MR_CK, stage, w, kq, w);
		}
	}
}

/* Takes rows of runs of columns apart into panels: row q, columns [from,
 * from+cols) of the strip, from being a multiple of nr. */
static void to_panels(const job *j, char *dst, mr_i64 k, mr_i64 from, mr_i64 cols, const char *src, mr_i64 ld, mr_i64 first)
{
	const mr_i64 row = j->f->nr * j->size, panel = j->kc * row, full = cols / j->f->nr, rest = cols % j->f->nr * j->size;
	dst += from / j->f->nr * panel + first * row;
	for (mr_i64 q = 0; q < k; q++, dst += row, src += ld * j->size) {
		char *d = dst;
		const char *s = src;
		/* constant lengths become a few moves */
		if (row == 128)
			for (mr_i64 f = 0; f < full; f++, d += panel, s += 128)
				memcpy(d, s, 128);
		else if (row == 64)
			for (mr_i64 f = 0; f < full; f++, d += panel, s += 64)
				memcpy(d, s, 64);
		else
			for (mr_i64 f = 0; f < full; f++, d += panel, s += row)
				memcpy(d, s, (size_t)row);
		if (rest) {
			memcpy(d, s, (size_t)rest);
			memset(d + rest, 0, (size_t)(row - rest));
		}
	}
}

/* Writes columns [i, i+cols) of y, k steps [p, p+k), to dst as panels: kc rows
 * of nr columns each, the last one filled up with zeros. */
static void load_y(const job *j, int who, mr_i64 batch, mr_i64 i, mr_i64 cols, mr_i64 p, mr_i64 k, char *dst, char *stage)
{
	const mr_side *s = &j->y;
	const mr_i64 nr = j->f->nr, panel = j->kc * nr * j->size;
	const char *src = s->kind == MR_SIDE_MEM ? element(j, s, batch, i, p) : NULL;
	if (src && s->stride == 1) {
		to_panels(j, dst, k, 0, cols, src, s->kstride, 0);
		return;
	}
	if (s->kind == MR_SIDE_FILL_I && s->panels) {
		for (mr_i64 f = 0; f < cols; f += MR_C_PANELS_COLUMNS)
			s->panels(s->ctx, who, batch, i + f, i + least(f + MR_C_PANELS_COLUMNS, cols), p, p + k, dst + f / nr * panel, j->kc * nr);
		return;
	}
	if (s->kind == MR_SIDE_FILL_I) {
		const mr_i64 wide = least(cols, MR_C_FILL / 8 / nr * nr), step = MR_C_FILL / wide & ~(mr_i64)7;
		for (mr_i64 f = 0; f < cols; f += wide)
			for (mr_i64 q = 0; q < k; q += step) {
				const mr_i64 w = least(wide, cols - f), kq = least(step, k - q);
				s->fill(s->ctx, who, batch, i + f, i + f + w, p + q, p + q + kq, stage, w);
				to_panels(j, dst, kq, f, w, stage, w, q);
			}
		return;
	}
	const mr_i64 step = MR_C_FILL / nr & ~(mr_i64)7;
	for (mr_i64 f = 0; f < cols; f += nr, dst += panel) {
		const mr_i64 w = least(nr, cols - f);
		if (w < nr)
			memset(dst, 0, (size_t)(k * nr * j->size));
		if (src && s->kstride == 1)
			j->f->transpose(dst, nr, src + f * s->stride * j->size, s->stride, w, k);
		else if (src)
			j->f->gather(dst, nr, src + f * s->stride * j->size, s->kstride, s->stride, k, w);
		else
			for (mr_i64 q = 0; q < k; q += step) {
				const mr_i64 kq = least(step, k - q);
				s->fill(s->ctx, who, batch, i + f, i + f + w, p + q, p + q + kq, stage, kq);
				j->f->transpose(dst + q * nr * j->size, nr, stage, kq, w, kq);
			}
	}
}

/* Hands rows [i, i+rows), columns [at, at+cols) of the tile on. */
static void finish(const job *j, int who, mr_i64 batch, mr_i64 i, mr_i64 rows, mr_i64 at, mr_i64 cols, char *tile, char *spare)
{
	const mr_contract *c = j->c;
	mr_i64 ld = j->ld;
	if (j->swap) {
		j->f->transpose(spare, rows, tile, ld, rows, cols);
		tile = spare;
		ld = rows;
		mr_i64 t = i;
		i = at;
		at = t;
		t = rows;
		rows = cols;
		cols = t;
	}
	if (c->drain) {
		c->drain(c->ctx, who, batch, i, rows, at, cols, tile, ld);
		return;
	}
	char *out = (char *)c->out + (batch_offset(c, c->outbatch, batch) + i * c->outrow + at) * j->size;
	for (mr_i64 r = 0; r < rows; r++)
		memcpy(out + r * c->outrow * j->size, tile + r * ld * j->size, (size_t)(cols * j->size));
}

/* Looks a fact about panel q up, or finds it out: another thread that does the
 * same at the same time finds the same. */
static int is(const job *j, const panels *y, mr_i64 q, mr_i64 k, int yes, int no)
{
	char known = __atomic_load_n(y->known + q, __ATOMIC_RELAXED);
	if (!(known & (yes | no))) {
		const char *p = y->p + q * y->step * j->size;
		const mr_i64 n = k * j->f->nr;
		known |= (yes == FINITE ? j->f->finite(p, n) : j->f->small_all(p, n, 1, n)) ? yes : no;
		__atomic_store_n(y->known + q, known, __ATOMIC_RELAXED);
	}
	return known & yes;
}

static int all_finite(const job *j, const panels *y, mr_i64 q, mr_i64 k)
{
	return !j->f->finite || is(j, y, q, k, FINITE, NOT_FINITE);
}

/* The columns of a tile that somebody will see, [*from, *to). */
static void seen(const job *j, mr_i64 i, mr_i64 rows, mr_i64 at, mr_i64 cols, const char *x, mr_i64 ldx, mr_i64 k, mr_i64 *from, mr_i64 *to)
{
	const mr_contract *c = j->c;
	*from = 0;
	*to = cols;
	if (j->masked && c->maskkind == MR_MASK_INF)
		j->f->unmasked((const char *)c->mask + (i * c->maskrow + at) * j->size, c->maskrow, rows, cols, from, to);
	else if (j->masked)
		mr_unmasked_bytes((const char *)c->mask + i * c->maskrow + at, c->maskrow, rows, cols, c->maskkind == MR_MASK_TRUE, from, to);
	if (*from >= *to)
		*from = *to = 0; /* none */
	if (c->masksmall && (*from > 0 || *to < cols) && !j->f->small_all(x, ldx, rows, k)) {
		*from = 0;
		*to = cols;
	}
}

static void clear(const job *j, mr_i64 rows, mr_i64 cols, char *c, mr_i64 ldc)
{
	for (mr_i64 r = 0; r < rows; r++)
		memset(c + r * ldc * j->size, 0, (size_t)(cols * j->size));
}

/* One block of k of a tile. Where all its rows of x begin or end with zeros,
 * as weights do whose scores were masked, the chains take only what is between:
 * 0 times a finite number is +0 or -0, which added to a chain can change the
 * sign of a zero and nothing else, and a zero of either sign that is added to
 * the total, which is never -0, leaves it as it is. Where nobody sees a panel of
 * results, they are +0. */
static void panel_tile(const job *j, int who, mr_i64 batch, mr_i64 i, mr_i64 rows, mr_i64 at, mr_i64 cols, mr_i64 b, panels y, char *tile, mr_i64 ld, char *own)
{
	const mr_kernels *f = j->f;
	const mr_i64 nr = f->nr, p = b * MR_CK, k = least(MR_CK, j->k - p);
	const mr_i64 count = ceil_div(cols, nr), last = cols - (count - 1) * nr <= f->lanes ? 1 : 2;
	const int flags = MR_C_OPEN | MR_C_CLOSE | (b == 0 ? MR_C_FIRST : 0);
	for (mr_i64 r = 0; r < rows; r += f->mr) {
		const mr_i64 height = least(f->mr, rows - r);
		const char *x = own;
		mr_i64 ldx = MR_CK, from = 0, to = k, left = 0, right = cols;
		if (j->direct) {
			x = element(j, &j->x, batch, i + r, p);
			ldx = j->x.stride;
		} else if (j->pack_x) {
			x = j->all_x + (b * j->m + i + r) * MR_CK * j->size;
		} else {
			load_x(j, who, batch, i + r, height, p, k, own, own + j->at_stage);
		}
		if (y.known) {
			f->extent(x, ldx, height, k, &from, &to);
			seen(j, i + r, height, at, cols, x, ldx, k, &left, &right);
		}
		mr_i64 end = 0; /* of the panels that are computed */
		for (mr_i64 q = 0; q < count; q++) {
			if (((q + 1) * nr <= left || q * nr >= right) && (!j->c->masksmall || is(j, &y, q, k, SMALL, NOT_SMALL))) {
				const mr_i64 wide = q == count - 1 ? cols - q * nr : nr;
				clear(j, height, wide, tile + (r * ld + q * nr) * j->size, ld);
				if (j->hidden)
					*j->hidden += height * wide;
				continue;
			}
			end = q + 1;
			mr_i64 first = 0, steps = k;
			if (to - from < k && all_finite(j, &y, q, k)) {
				first = from;
				steps = to - from;
			}
			if (steps > 0 || b == 0)
				f->tile(height, q == count - 1 ? last : 2, x + first * j->size, ldx, y.p + (q * y.step + first * y.ld) * j->size, y.ld, steps, NULL, tile + (r * ld + q * nr) * j->size, ld, flags);
		}
		for (mr_i64 t = i + r; j->tails && t < i + r + height; t++)
			if (end > 0 || at == 0)
				j->tails[t] = at + least(end * nr, cols);
	}
}

/* One tile of few rows: y is read where it lies, as many steps of k at once as
 * leave the chains of all columns in cache, or taken through a buffer in pieces
 * of a panel. */
static void skinny_tile(const job *j, int who, mr_i64 batch, mr_i64 i, mr_i64 rows, mr_i64 at, mr_i64 cols, char *own)
{
	const mr_kernels *f = j->f;
	const mr_i64 nr = f->nr, full = j->y.stride == 1 ? cols / nr : 0;
	const mr_i64 wide = rows > 2 ? 1 : 4 / rows; /* panels of a call */
	char *tile = own + j->at_tile, *acc = own + j->at_acc, *piece = own + j->at_strip;
	for (mr_i64 b = 0; b < j->blocks; b++) {
		const mr_i64 p = b * MR_CK, k = least(MR_CK, j->k - p);
		const int first = b == 0 ? MR_C_FIRST : 0;
		load_x(j, who, batch, i, rows, p, k, own, own + j->at_stage);
		const mr_i64 step = full > wide ? SKINNY_STEP : k;
		for (mr_i64 q = 0; full > 0 && q < k; q += step) {
			const mr_i64 kq = least(step, k - q);
			const int flags = first | (q == 0 ? MR_C_OPEN : 0) | (q + kq == k ? MR_C_CLOSE : 0);
			const char *y = element(j, &j->y, batch, at, p + q);
			for (mr_i64 s = 0; s < full;) {
				const mr_i64 w = s + wide <= full ? wide : 1, to = s * nr * j->size;
				f->tile(rows, 2 * w, own + q * j->size, MR_CK, y + to, j->y.kstride, kq, acc + to, tile + to, j->ld, flags);
				s += w;
			}
		}
		mr_i64 s = full * nr;
		if (f->along && j->y.kstride == 1 && rows <= ALONG_ROWS && k >= f->lanes)
			for (; s + f->lanes <= cols; s += f->lanes)
				f->along(rows, own, MR_CK, element(j, &j->y, batch, at + s, p), j->y.stride, k, tile + s * j->size, j->ld, first);
		for (; s < cols; s += nr) {
			const mr_i64 w = least(nr, cols - s), to = s * j->size;
			if (rows <= 2 && w < SQUARE && j->y.stride != 1) {
				f->small(rows, w, k, own, MR_CK, 1, element(j, &j->y, batch, at + s, p), j->y.stride, j->y.kstride, acc + to, j->ld);
				f->tile(rows, w <= f->lanes ? 1 : 2, own, MR_CK, NULL, 0, 0, acc + to, tile + to, j->ld, first | MR_C_CLOSE);
				continue;
			}
			for (mr_i64 q = 0; q < k; q += SKINNY_PIECE) {
				const mr_i64 kq = least(SKINNY_PIECE, k - q);
				const int flags = first | (q == 0 ? MR_C_OPEN : 0) | (q + kq == k ? MR_C_CLOSE : 0);
				load_y(j, who, batch, at + s, w, p + q, kq, piece, own + j->at_stage);
				f->tile(rows, w <= f->lanes ? 1 : 2, own + q * j->size, MR_CK, piece, nr, kq, acc + to, tile + to, j->ld, flags);
			}
		}
	}
}

/* Block b of the strip at column at, packed; the thread keeps it, if it keeps
 * any, from one tile of rows to the next. */
static panels panels_of(const job *j, int who, mr_i64 batch, mr_i64 at, mr_i64 cols, mr_i64 b, int fresh, char *own)
{
	const mr_i64 nr = j->f->nr, count = ceil_div(cols, nr), step = j->kc * nr;
	if (j->pack_y) {
		const mr_i64 first = b * j->panels + at / nr;
		return (panels){j->all_y + first * step * j->size, step, nr, j->all_known + first};
	}
	const mr_i64 first = (j->keep > 1 ? b : 0) * count;
	char *y = own + j->at_strip + first * step * j->size, *known = own + j->at_known + first;
	if (fresh || j->keep < j->blocks) {
		load_y(j, who, batch, at, cols, b * MR_CK, least(MR_CK, j->k - b * MR_CK), y, own + j->at_stage);
		memset(known, 0, (size_t)count);
	}
	return (panels){y, step, nr, known};
}

/* Unit (batch, group of rows, strip of columns). */
static void unit(const job *j, int who, mr_i64 batch, mr_i64 group, mr_i64 strip, char *own)
{
	const mr_contract *c = j->c;
	const mr_i64 from = group * j->group, to = least(j->m, from + j->group);
	const mr_i64 at = strip * j->nb, cols = least(j->nb, j->n - at), nr = j->f->nr;
	for (mr_i64 i = from; i < to; i += j->mb) {
		const mr_i64 rows = least(j->mb, to - i);
		char *tile = own + j->at_tile;
		if (j->k == 0) {
			memset(tile, 0, (size_t)(rows * j->ld * j->size));
		} else if (j->skinny) {
			skinny_tile(j, who, batch, i, rows, at, cols, own);
		} else if (j->straight && cols % nr == 0) {
			char *out = (char *)c->out + (batch_offset(c, c->outbatch, batch) + i * c->outrow + at) * j->size;
			panels y = {.p = NULL};
			if (j->near)
				y = (panels){element(j, &j->y, batch, at, 0), nr, j->y.kstride, NULL};
			else
				y = panels_of(j, who, batch, at, cols, 0, i == from, own);
			panel_tile(j, who, batch, i, rows, at, cols, 0, y, out, c->outrow, own);
			continue;
		} else {
			for (mr_i64 b = 0; b < j->blocks; b++)
				panel_tile(j, who, batch, i, rows, at, cols, b, panels_of(j, who, batch, at, cols, b, i == from, own), tile, j->ld, own);
		}
		finish(j, who, batch, i, rows, at, cols, tile, own + j->at_acc);
	}
}

static char *scratch(job *j, int who)
{
	char *own = mr_scratch(j->pool, who, j->scratch);
	if (!own)
		__atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
	return own;
}

static void compute(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	job *j = ctx;
	char *own = scratch(j, who);
	for (mr_i64 u = begin; own && u < end; u++)
		unit(j, who, j->batch + u / (j->groups * j->strips), u / j->strips % j->groups, u % j->strips, own);
}

/* Packs for all threads: units are strips of a block of y, then tiles of rows
 * of a block of x. */
static void pack(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	job *j = ctx;
	char *own = scratch(j, who);
	const mr_i64 ys = j->pack_y && !j->packed ? j->blocks * j->strips : 0, xs = ceil_div(j->m, j->mb);
	for (mr_i64 u = begin; own && u < end; u++) {
		const mr_i64 b = u < ys ? u / j->strips : (u - ys) / xs, p = b * MR_CK, k = least(MR_CK, j->k - p);
		if (u < ys) {
			const mr_i64 at = u % j->strips * j->nb, cols = least(j->nb, j->n - at), first = b * j->panels + at / j->f->nr;
			load_y(j, who, j->batch, at, cols, p, k, j->all_y + first * j->kc * j->f->nr * j->size, own + j->at_stage);
			memset(j->all_known + first, 0, (size_t)ceil_div(cols, j->f->nr));
		} else {
			const mr_i64 i = (u - ys) % xs * j->mb;
			load_x(j, who, j->batch, i, least(j->mb, j->m - i), p, k, j->all_x + (b * j->m + i) * MR_CK * j->size, own + j->at_stage);
		}
	}
}

/* Small matrices in memory, several to a unit: no panels, nothing in scratch
 * but a result that a drain takes. */
static void small(void *ctx, int who, mr_i64 begin, mr_i64 end)
{
	job *j = ctx;
	const mr_contract *c = j->c;
	char *own = c->drain ? scratch(j, who) : NULL;
	if (c->drain && !own)
		return;
	for (mr_i64 b = begin; b < end; b++) {
		char *out = own;
		mr_i64 ld = c->n;
		if (!c->drain) {
			out = (char *)c->out + batch_offset(c, c->outbatch, b) * j->size;
			ld = c->outrow;
		}
		j->f->small(c->m, c->n, c->k, element(j, &c->x, b, 0, 0), c->x.stride, c->x.kstride, element(j, &c->y, b, 0, 0), c->y.stride, c->y.kstride, out, ld);
		if (c->drain)
			c->drain(c->ctx, who, b, 0, c->m, 0, c->n, out, ld);
	}
}

/* All panels of y, and what is known of each. */
static mr_i64 all_y_bytes(const job *j) { return up(j->blocks * j->panels * (j->kc * j->f->nr * j->size + 1), LINE); }

/* This run's y does not stay packed. */
static void drop(const mr_contract *c)
{
	if (c->stays)
		c->stays->full = 0;
}

/* Rows of a tile of so many bytes. */
static mr_i64 tile_rows(const job *j, mr_i64 bytes)
{
	return greatest(bytes / (j->nb * j->size) / j->f->mr, 1) * j->f->mr;
}

/* Chooses tiles and units. */
static void plan(job *j, mr_i64 batches, mr_i64 threads)
{
	const mr_kernels *f = j->f;
	j->blocks = ceil_div(j->k, MR_CK);
	j->kc = least(j->k, MR_CK);
	j->panels = ceil_div(j->n, f->nr);
	j->skinny = j->m <= SKINNY && j->y.kind == MR_SIDE_MEM;
	const mr_i64 row_bytes = scaled(ROW_BYTES, j->c->wide), tile_bytes = scaled(j->c->drain && j->k <= SHORT_K ? SHORT_TILE : TILE_BYTES, j->c->high);
	j->nb = least(greatest((j->m <= 4 ? 4 : 1) * row_bytes / j->size / f->nr, 1), j->panels) * f->nr;
	j->mb = least(j->m, tile_rows(j, tile_bytes));
	j->group = j->m;
	j->direct = j->x.kind == MR_SIDE_MEM && j->x.kstride == 1 && j->m * j->x.stride * j->size <= DIRECT_BYTES && (j->m == 1 || j->x.stride * j->size % PAGE != 0);

	/* Enough units that threads end together, also where one of them had to be
	 * woken and begins late. */
	const mr_i64 few = f->nr, wanted = threads > 1 ? 4 * threads : 1;
	const int lone = batches == 1 && j->panels == 1 && !j->skinny && j->m >= FEW_ROWS * threads; /* each packs the one panel for itself */
	if (threads > 1 && batches < threads && j->m >= 4 * j->mb) {
		/* y is packed once for all, if it fits; x is copied as it is read */
		const mr_i64 rows = ceil_div(j->m, ceil_div(2 * wanted, ceil_div(j->n, j->nb)));
		j->mb = least(j->mb, up(rows, f->mr));
		j->group = j->mb;
	} else if (threads > 1) {
		while (j->nb > few && batches * ceil_div(j->n, j->nb) < wanted)
			j->nb = up(j->nb / 2, f->nr);
		if (lone)
			j->group = ceil_div(j->m, threads);
		else if (batches * ceil_div(j->n, j->nb) < threads)
			j->group = up(ceil_div(j->m, wanted / 2), f->mr);
		j->mb = least(j->group, tile_rows(j, tile_bytes));
		j->group = least(up(j->group, j->mb), j->m);
	}
	j->groups = ceil_div(j->m, j->group);
	j->strips = ceil_div(j->n, j->nb);

	j->straight = !j->c->drain && !j->swap && j->blocks == 1;
	j->near = j->straight && j->y.kind == MR_SIDE_MEM && j->y.stride == 1 && j->n % f->nr == 0 && j->k * j->y.kstride * j->size <= NEAR_BYTES;

	j->tails = j->hidden = NULL;
	j->masked = j->c->mask && j->f->unmasked && batches == 1 && j->blocks == 1 && !j->swap;
	if (j->masked && threads <= 1) { /* strips come one after another */
		j->tails = j->c->tails;
		j->hidden = j->c->hidden;
	}

	const mr_i64 y_bytes = all_y_bytes(j), x_bytes = j->blocks * MR_CK * j->m * j->size;
	if (batches == 1 && j->k > 0 && !j->near && !j->skinny && !j->swap && y_bytes <= KEEP_BYTES)
		j->stays = j->c->stays;
	else
		drop(j->c);
	if (j->k > 0 && !j->near && (batches < threads || batches == 1)) {
		j->pack_y = !j->skinny && j->groups > 1 && y_bytes <= SHARED_BYTES && !lone;
		j->pack_x = !j->skinny && j->strips > 1 && j->x.kind != MR_SIDE_MEM && x_bytes <= SHARED_BYTES;
	}
	if (j->stays)
		j->pack_y = 1;
	j->keep = j->group > j->mb && j->blocks * j->kc * j->nb * j->size <= KEEP_BYTES ? j->blocks : 1;

	/* Lines of tiles do not fall on each other in the cache. */
	j->ld = j->nb + (j->nb * j->size % 1024 == 0 ? LINE / j->size : 0);
	const mr_i64 tile = up(j->mb * j->ld * j->size, LINE), strip = j->pack_y ? 0 : j->skinny ? f->nr : j->keep * j->nb;
	j->at_strip = up((j->skinny ? j->mb : f->mr) * MR_CK * j->size, LINE);
	j->at_known = j->at_strip + up(strip * j->kc * j->size, LINE);
	j->at_stage = j->at_known + up(strip / f->nr, LINE);
	j->at_tile = j->at_stage + up(MR_C_FILL * j->size, LINE);
	j->at_acc = j->at_tile + tile;
	j->scratch = j->at_acc + (j->skinny || j->swap ? tile : 0);
}

void mr_packed_free(mr_packed *k)
{
	free(k->p);
	*k = (mr_packed){0};
}

/* Memory of what is packed for all threads, and of a y that stays packed. */
static int shared(job *j)
{
	const mr_i64 y_bytes = j->pack_y ? all_y_bytes(j) : 0, x_bytes = j->pack_x ? j->blocks * MR_CK * j->m * j->size : 0;
	mr_packed *stays = j->stays;
	if (x_bytes > 0 || !stays) {
		j->all_x = mr_scratch(j->pool, mr_pool_threads(j->pool), (stays ? 0 : y_bytes) + x_bytes);
		if (!j->all_x)
			return -1;
		j->all_y = j->all_x + x_bytes;
	}
	if (stays) {
		j->packed = stays->same && stays->full;
		if (stays->size < y_bytes) {
			mr_packed_free(stays);
			j->packed = 0;
			if (posix_memalign(&stays->p, LINE, (size_t)y_bytes) != 0) {
				stays->p = NULL;
				return -1;
			}
			stays->size = y_bytes;
		}
		j->all_y = stays->p;
		stays->full = 1;
	}
	j->all_known = j->all_y + j->blocks * j->panels * j->kc * j->f->nr * j->size;
	return 0;
}

static int run_batches(job *j, mr_i64 batches, mr_i64 threads)
{
	const mr_i64 units = j->groups * j->strips;
	if (!j->pack_x && !j->pack_y) {
		mr_i64 grain = 1;
		if (threads <= 1)
			grain = batches * units;
		else if (batches * units > 16 * threads)
			grain = batches * units / (8 * threads);
		mr_split(j->pool, (int)threads, batches * units, grain, compute, j);
		return j->failed ? -1 : 0;
	}
	if (shared(j))
		return -1;
	const mr_i64 packs = j->blocks * ((j->pack_y && !j->packed ? j->strips : 0) + (j->pack_x ? ceil_div(j->m, j->mb) : 0));
	for (j->batch = 0; j->batch < batches && !j->failed; j->batch++) {
		if (packs > 0)
			mr_split(j->pool, (int)threads, packs, threads > 1 ? 1 : packs, pack, j);
		if (!j->failed)
			mr_split(j->pool, (int)threads, units, threads > 1 ? 1 : units, compute, j);
	}
	if (j->failed)
		drop(j->c);
	return j->failed ? -1 : 0;
}

static int is_small(const mr_contract *c)
{
	if (c->x.kind != MR_SIDE_MEM || c->y.kind != MR_SIDE_MEM)
		return 0;
	if (c->m * c->n <= SCALAR_OUTPUTS)
		return 1;
	return c->m * c->n * c->k <= (c->y.stride != 1 ? SCALAR_WORK : c->m == 1 ? SMALL_ROW : SMALL_WORK);
}

int mr_contract_run(mr_pool *p, const mr_contract *c, int level)
{
	/* the tiniest take less time than choosing how they run */
	const mr_kernels *f = &mr_contract_level(level)[c->type];
	if (c->rank == 0 && !c->drain && c->m > 0 && c->n > 0 && is_small(c)) {
		drop(c);
		f->small(c->m, c->n, c->k, c->x.base, c->x.stride, c->x.kstride, c->y.base, c->y.stride, c->y.kstride, c->out, c->outrow);
		return 0;
	}
	job j = {.c = c, .f = f, .pool = p, .x = c->x, .y = c->y, .m = c->m, .n = c->n, .k = c->k};
	mr_i64 batches = 1;
	j.size = j.f->size;
	for (mr_i64 d = 0; d < c->rank; d++)
		batches *= c->dims[d];
	if (batches == 0 || c->m == 0 || c->n == 0) {
		drop(c);
		return 0;
	}

	const double outputs = (double)batches * (double)c->m * (double)c->n;
	const double work = outputs * (double)c->k + (double)c->work * (outputs + (double)batches * (double)c->k * (double)(c->m + c->n));
	mr_i64 threads = c->threads > 0 ? least(c->threads, mr_pool_threads(p)) : mr_pool_threads(p);
	if (work / THREAD_WORK < (double)threads)
		threads = (mr_i64)(work / THREAD_WORK) + 1;

	if (is_small(c)) {
		drop(c);
		j.scratch = up(c->m * c->n * j.size, LINE);
		mr_split(p, (int)threads, batches, threads > 1 ? ceil_div(batches, 8 * threads) : batches, small, &j);
		return j.failed ? -1 : 0;
	}

	/* Vectors lie along columns; where these fill none and rows are many, the
	 * transposed contraction is computed. A product does not care for the order
	 * of its factors. */
	if (c->n < j.f->lanes && c->m > c->n) {
		j.swap = 1;
		j.x = c->y;
		j.y = c->x;
		j.m = c->n;
		j.n = c->m;
	}
	plan(&j, batches, threads);
	return run_batches(&j, batches, threads);
}
