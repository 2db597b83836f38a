//go:build cgo && unix

#include "tiles.h"
#include "../ccode/fpenv.h"
#if defined __aarch64__
#include <arm_neon.h>
#endif

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
#define INLINE static inline __attribute__((always_inline))

/* FMA(s, y, x, l) adds y times lane l of x to s, with a single rounding. */
#if defined __aarch64__
#define FMA_F32(s, y, x, l) ((s) = (v_f32)vfmaq_laneq_f32((float32x4_t)(s), (float32x4_t)(y), (float32x4_t)(x), l))
#define FMA_F64(s, y, x, l) ((s) = (v_f64)vfmaq_laneq_f64((float64x2_t)(s), (float64x2_t)(y), (float64x2_t)(x), l))
#else
#define LANES(f, s, y, x, l) \
	for (unsigned at = 0; at < sizeof(s) / sizeof((s)[0]); at++) \
		(s)[at] = f((y)[at], (x)[l], (s)[at])
#define FMA_F32(s, y, x, l) LANES(__builtin_fmaf, s, y, x, l)
#define FMA_F64(s, y, x, l) LANES(__builtin_fma, s, y, x, l)
#endif
#define FMA_INT(s, y, x, l) ((s) += (y) * (x)[l])

/* Shuffles of two vectors, and transposes of squares of vectors. */
typedef mr_u32 v32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef mr_u64 v64 __attribute__((vector_size(16), aligned(8), may_alias));
#if defined __clang__ || __GNUC__ >= 12
#define SHUFFLE4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#define SHUFFLE2(a, b, i, j) __builtin_shufflevector(a, b, i, j)
#else
#define SHUFFLE4(a, b, i, j, k, l) __builtin_shuffle(a, b, (v32){i, j, k, l})
#define SHUFFLE2(a, b, i, j) __builtin_shuffle(a, b, (v64){i, j})
#endif

#define SQUARE4(v) { \
		const __typeof__((v)[0]) low = SHUFFLE4((v)[0], (v)[1], 0, 4, 1, 5), high = SHUFFLE4((v)[0], (v)[1], 2, 6, 3, 7); \
		const __typeof__((v)[0]) low2 = SHUFFLE4((v)[2], (v)[3], 0, 4, 1, 5), high2 = SHUFFLE4((v)[2], (v)[3], 2, 6, 3, 7); \
		(v)[0] = SHUFFLE4(low, low2, 0, 1, 4, 5); \
		(v)[1] = SHUFFLE4(low, low2, 2, 3, 6, 7); \
		(v)[2] = SHUFFLE4(high, high2, 0, 1, 4, 5); \
		(v)[3] = SHUFFLE4(high, high2, 2, 3, 6, 7); \
	}
#define SQUARE2(v) { \
		const __typeof__((v)[0]) first = (v)[0]; \
		(v)[0] = SHUFFLE2(first, (v)[1], 0, 2); \
		(v)[1] = SHUFFLE2(first, (v)[1], 1, 3); \
	}

#define TRANSPOSE(name, V, lanes, SQUARE) \
	static void name(const mr_transpose_frame *f) \
	{ \
		char *d = f->dst; \
		for (mr_i64 at = 0; at < f->k * (MR_DOT_BYTES / lanes); at += MR_DOT_BYTES) { \
			V v[lanes]; \
			_Pragma("GCC unroll 4") for (int l = 0; l < lanes; l++) v[l] = *(const V *)(f->rows[l] + at); \
			SQUARE(v) \
			_Pragma("GCC unroll 4") for (int l = 0; l < lanes; l++, d += f->lddst) *(V *)d = v[l]; \
		} \
	}
TRANSPOSE(transpose4, v32, 4, SQUARE4)
TRANSPOSE(transpose8, v64, 2, SQUARE2)

static void panels(const mr_panels_frame *f, mr_i64 size)
{
	const mr_i64 rest = f->rest * size;
	for (mr_i64 row = 0; row < f->k; row++) {
		const char *src = f->src + row * f->ldsrc;
		char *dst = f->dst + row * 2 * MR_DOT_BYTES;
		for (mr_i64 i = 0; i < f->full; i++, src += 2 * MR_DOT_BYTES, dst += f->panel)
			__builtin_memcpy(dst, src, 2 * MR_DOT_BYTES);
		if (rest > 0) {
			__builtin_memcpy(dst, src, rest);
			__builtin_memset(dst + rest, 0, 2 * MR_DOT_BYTES - rest);
		}
	}
}

/* other reports that, in some row, the vector at this position differs from than in some of bits. */
static int other(const mr_differs_frame *f, mr_i64 vector)
{
	typedef mr_u64 bytes __attribute__((vector_size(MR_DOT_BYTES), aligned(1), may_alias));
	bytes differs = {0};
	for (mr_i64 i = 0; i < f->rows; i++)
		differs |= *(const bytes *)(f->x + i * f->ld + vector * MR_DOT_BYTES) ^ (mr_u64)f->than;
	differs &= (mr_u64)f->bits;
	return (differs[0] | differs[1]) != 0;
}

static void differs(mr_differs_frame *f)
{
	mr_i64 from = 0, to = f->vectors;
	while (from < to && !other(f, from))
		from++;
	while (from < to && !other(f, to - 1))
		to--;
	f->from = from;
	f->to = to;
}

#define T mr_u32
#define INT mr_i32
#define NAME _i32
#define FMA FMA_INT
#define SQUARE SQUARE4
#define STEPS STEP(0) STEP(1) STEP(2) STEP(3)
#include "element.h"

#define T mr_u64
#define INT mr_i64
#define NAME _i64
#define FMA FMA_INT
#define SQUARE SQUARE2
#define STEPS STEP(0) STEP(1)
#include "element.h"

#if MR_DOT_FLOATS
#define T float
#define NAME _f32
#define FMA FMA_F32
#define SQUARE SQUARE4
#define STEPS STEP(0) STEP(1) STEP(2) STEP(3)
#include "element.h"

#define T double
#define NAME _f64
#define FMA FMA_F64
#define SQUARE SQUARE2
#define STEPS STEP(0) STEP(1)
#include "element.h"
#define FLOAT_TILES tile_f32, tile_f64
#else
#define FLOAT_TILES 0, 0 /* emulating fused multiply-add would be as slow as Go's loops */
#endif

static void copies(int element, mr_i64 function, void *f)
{
	const int wide = element == MR_DOT_F64 || element == MR_DOT_I64;
	switch (function) {
	case MR_DOT_TRANSPOSE:
		wide ? transpose8(f) : transpose4(f);
		break;
	case MR_DOT_PANELS:
		panels(f, wide ? 8 : 4);
		break;
	case MR_DOT_DIFFERS:
		differs(f);
		break;
	case MR_DOT_BEYOND:
		wide ? beyond_i64(f) : beyond_i32(f);
	}
}

void mr_dot(int element, mr_i64 function, mr_u64 *frame)
{
	if (function < MR_DOT_TILE) {
		copies(element, function, frame);
		return;
	}
	static void (*const tiles[])(mr_i64, const mr_tile_frame *) = {FLOAT_TILES, tile_i32, tile_i64};
	const mr_fpenv saved = mr_fpenv_set(0);
	tiles[element](function - MR_DOT_TILE, (const mr_tile_frame *)frame);
	mr_fpenv_restore(saved);
}
