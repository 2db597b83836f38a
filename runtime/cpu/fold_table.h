/* The folds of one ISA level: included once per level, with MR_FOLDS_LEVEL the
 * name of its table. */
#include <math.h>

#include "fold.h"

#define PASTE_(a, b, c) a##_##b##_##c
#define PASTE(a, b, c) PASTE_(a, b, c)

/* Columns of a matrix are read in short pieces a row apart, which no processor
 * foresees. So many rows ahead they are asked for. */
#define MR_AHEAD 8
#define MR_PIECE 8192 /* longer ones it does foresee */

/* Bytes of a row of the columns that are folded together where they are of few
 * elements, and of those between two looks ahead. */
#define MR_FEW 8192
#define MR_RUN 512

static inline void ahead(const void *p, mr_i64 bytes)
{
	for (mr_i64 b = 0; b < bytes; b += 64)
		__builtin_prefetch((const char *)p + b);
}

/* Maximum and minimum of floats: NaN wins, and +0 is above -0. Equal floats
 * differ in nothing but the sign of zero, which their bits settle. */
#define EXTREMUM(NAME, F, BITS, ABOVE, JOIN)                       \
	static inline F NAME(F a, F b)                             \
	{                                                          \
		union { F f; BITS u; } x = {a}, y = {b}, z;        \
		z.u = x.u JOIN y.u;                                \
		F r = a ABOVE b ? a : b;                           \
		r = a == b ? z.f : r;                              \
		return a != a ? a : r;                             \
	}
EXTREMUM(larger_f32, float, mr_u32, >, &)
EXTREMUM(larger_f64, double, mr_u64, >, &)
EXTREMUM(smaller_f32, float, mr_u32, <, |)
EXTREMUM(smaller_f64, double, mr_u64, <, |)

/* Images of floats, integers in the order that the extremum above is one of:
 * shifted around so that all NaN are above infinity, or below it. An integer
 * comparison is one instruction. There are none of float64: compiling those for
 * AVX2, GCC 12 loses lanes. */
#define FLOAT_IMAGE(SIDE, D, F, S, WIDTH, SHIFT)                                   \
	static inline S SIDE##_##D##_image(F a)                                    \
	{                                                                          \
		union { F f; S i; mr_u##WIDTH u; } x = {a};                        \
		x.u ^= (mr_u##WIDTH)(x.i >> (WIDTH - 1)) >> 1;                     \
		x.u += (mr_u##WIDTH)(SHIFT);                                       \
		return x.i;                                                        \
	}                                                                          \
	static inline F SIDE##_##D##_element(S a)                                  \
	{                                                                          \
		union { S i; mr_u##WIDTH u; F f; } x = {a};                        \
		x.u -= (mr_u##WIDTH)(SHIFT);                                       \
		x.u ^= (mr_u##WIDTH)(x.i >> (WIDTH - 1)) >> 1;                     \
		return x.f;                                                        \
	}
FLOAT_IMAGE(above, f32, float, mr_i32, 32, -0x7fffff)
FLOAT_IMAGE(below, f32, float, mr_i32, 32, 0x7fffff)

/* Negative floats sort by the complement of their bits. */
#define FLOAT_KEY(NAME, F, BITS, SIGNED, WIDTH)                    \
	static inline BITS NAME(F a)                               \
	{                                                          \
		union { F f; BITS u; } x = {a};                    \
		return x.u ^ ((BITS)((SIGNED)x.u >> (WIDTH - 1)) | (BITS)1 << (WIDTH - 1)); \
	}
FLOAT_KEY(key_f32, float, mr_u32, mr_i32, 32)
FLOAT_KEY(key_f64, double, mr_u64, mr_i64, 64)

/* Integers wrap, which unsigned types define. */
#define INT_PLUS(a, b) (T)((U)(a) + (U)(b))
#define INT_TIMES(a, b) (T)((U)(a) * (U)(b))
#define INT_LARGER(a, b) ((a) > (b) ? (a) : (b))
#define INT_SMALLER(a, b) ((a) < (b) ? (a) : (b))
#define INT_LAST(x) 0
#define UNSIGNED_KEY(x) (x)
#define SIGNED_KEY(x) ((U)(x) ^ (U)1 << (sizeof(U) * 8 - 1))

#define FLOAT_PLUS(a, b) ((a) + (b))
#define FLOAT_TIMES(a, b) ((a) * (b))
#define FLOAT_LAST(x) ((x) != (x))

#define D u8
#define T mr_u8
#define U mr_u8
#define LEAST 0
#define GREATEST 255
#define ZERO 0
#define PLUS INT_PLUS
#define TIMES INT_TIMES
#define LARGER INT_LARGER
#define SMALLER INT_SMALLER
#define SORT_KEY UNSIGNED_KEY
#define LAST INT_LAST
#include "fold_dtype.h"

#define D i32
#define T mr_i32
#define U mr_u32
#define LEAST (-2147483647 - 1)
#define GREATEST 2147483647
#define ZERO 0
#define PLUS INT_PLUS
#define TIMES INT_TIMES
#define LARGER INT_LARGER
#define SMALLER INT_SMALLER
#define SORT_KEY SIGNED_KEY
#define LAST INT_LAST
#include "fold_dtype.h"

#define D i64
#define T mr_i64
#define U mr_u64
#define LEAST (-9223372036854775807ll - 1)
#define GREATEST 9223372036854775807ll
#define ZERO 0
#define PLUS INT_PLUS
#define TIMES INT_TIMES
#define LARGER INT_LARGER
#define SMALLER INT_SMALLER
#define SORT_KEY SIGNED_KEY
#define LAST INT_LAST
#include "fold_dtype.h"

#define D u32
#define T mr_u32
#define U mr_u32
#define LEAST 0
#define GREATEST 4294967295u
#define ZERO 0
#define PLUS INT_PLUS
#define TIMES INT_TIMES
#define LARGER INT_LARGER
#define SMALLER INT_SMALLER
#define SORT_KEY UNSIGNED_KEY
#define LAST INT_LAST
#include "fold_dtype.h"

#define D u64
#define T mr_u64
#define U mr_u64
#define LEAST 0
#define GREATEST 18446744073709551615ull
#define ZERO 0
#define PLUS INT_PLUS
#define TIMES INT_TIMES
#define LARGER INT_LARGER
#define SMALLER INT_SMALLER
#define SORT_KEY UNSIGNED_KEY
#define LAST INT_LAST
#include "fold_dtype.h"

#define D f32
#define T float
#define U mr_u32
#define S mr_i32
#define LEAST (-(float)INFINITY)
#define GREATEST ((float)INFINITY)
#define ZERO (-0.0f)
#define PLUS FLOAT_PLUS
#define TIMES FLOAT_TIMES
#define LARGER larger_f32
#define SMALLER smaller_f32
#define SORT_KEY key_f32
#define LAST FLOAT_LAST
#include "fold_dtype.h"

#define D f64
#define T double
#define U mr_u64
#define LEAST (-(double)INFINITY)
#define GREATEST ((double)INFINITY)
#define ZERO (-0.0)
#define PLUS FLOAT_PLUS
#define TIMES FLOAT_TIMES
#define LARGER larger_f64
#define SMALLER smaller_f64
#define SORT_KEY key_f64
#define LAST FLOAT_LAST
#include "fold_dtype.h"

/* Storage dtypes. */
static inline float half_to_float(mr_u16 h)
{
	union { mr_u32 u; float f; } x, magic = {0x38800000}; /* 2^-14 */
	const mr_u32 abs = h & 0x7fff;
	x.u = (abs << 13) + 0x38000000;
	x.u += abs >= 0x7c00 ? 0x38000000 : 0;
	if (abs < 0x400) { /* denormal: the leading one that is not there goes */
		x.u = (abs << 13) + 0x38800000;
		x.f -= magic.f;
	}
	x.u |= (mr_u32)(h & 0x8000) << 16;
	return x.f;
}

static inline mr_u16 float_to_half(float f)
{
	union { float f; mr_u32 u; } x = {f}, d;
	const mr_u32 sign = x.u >> 16 & 0x8000, abs = x.u & 0x7fffffff;
	const mr_u32 normal = (abs - 0x38000000 + 0xfff + (abs >> 13 & 1)) >> 13;
	d.u = abs;
	d.f += 0.5f; /* the sum's last bit is worth 2^-24 */
	const mr_u32 small = d.u - 0x3f000000;
	mr_u32 r = abs < 0x38800000 ? small : normal;
	r = abs >= 0x477ff000 ? 0x7c00 : r;
	r = abs > 0x7f800000 ? 0x7e00 : r;
	return (mr_u16)(sign | r);
}

static inline float bfloat_to_float(mr_u16 h)
{
	union { mr_u32 u; float f; } x = {(mr_u32)h << 16};
	return x.f;
}

static inline mr_u16 float_to_bfloat(float f)
{
	union { float f; mr_u32 u; } x = {f};
	return f != f ? 0x7fc0 : (mr_u16)((x.u + 0x7fff + (x.u >> 16 & 1)) >> 16);
}

#define CONVERSIONS(NAME, S, T, WIDEN, NARROW)                            \
	static void widen_##NAME(void *to, const void *from, mr_i64 n)    \
	{                                                                 \
		const S *restrict x = from;                               \
		T *restrict y = to;                                       \
		for (mr_i64 i = 0; i < n; i++)                            \
			y[i] = WIDEN(x[i]);                               \
	}                                                                 \
	static void narrow_##NAME(void *to, const void *from, mr_i64 n)   \
	{                                                                 \
		const T *restrict x = from;                               \
		S *restrict y = to;                                       \
		for (mr_i64 i = 0; i < n; i++)                            \
			y[i] = (S)NARROW(x[i]);                           \
	}
CONVERSIONS(i8, mr_i8, mr_i32, , )
CONVERSIONS(i16, mr_i16, mr_i32, , )
CONVERSIONS(u16, mr_u16, mr_i32, , )
CONVERSIONS(f16, mr_u16, float, half_to_float, float_to_half)
CONVERSIONS(bf16, mr_u16, float, bfloat_to_float, float_to_bfloat)

#define FOLD(T, D, OP) {sizeof(T), MR_LANES, start_##D##_##OP, add_##D##_##OP, finish_##D##_##OP, combine_##D##_##OP, result_##D##_number, scan_##D##_##OP, few_##D##_##OP, into_##D##_##OP}
#define ARG(T, D, OP) {16, 1, start_##D##_##OP, add_##D##_##OP, finish_##D##_##OP, combine_##D##_##OP, result_##D##_##OP, 0, 0}
#define FOLDS(OP) {                                                                                       \
	[MR_BOOL] = FOLD(mr_u8, u8, OP), [MR_U8] = FOLD(mr_u8, u8, OP), [MR_I32] = FOLD(mr_i32, i32, OP), \
	[MR_I64] = FOLD(mr_i64, i64, OP), [MR_U32] = FOLD(mr_u32, u32, OP),                               \
	[MR_U64] = FOLD(mr_u64, u64, OP), [MR_F32] = FOLD(float, f32, OP), [MR_F64] = FOLD(double, f64, OP)}
#define ARGS(OP) {                                                                                        \
	[MR_BOOL] = ARG(mr_u8, u8, OP), [MR_U8] = ARG(mr_u8, u8, OP), [MR_I32] = ARG(mr_i32, i32, OP),    \
	[MR_I64] = ARG(mr_i64, i64, OP), [MR_U32] = ARG(mr_u32, u32, OP),                                 \
	[MR_U64] = ARG(mr_u64, u64, OP), [MR_F32] = ARG(float, f32, OP), [MR_F64] = ARG(double, f64, OP)}

const mr_folds MR_FOLDS_LEVEL = {
	.fold = {[MR_SUM] = FOLDS(sum), [MR_PROD] = FOLDS(prod), [MR_MAX] = FOLDS(max), [MR_MIN] = FOLDS(min),
		 [MR_ARGMAX] = ARGS(argmax), [MR_ARGMIN] = ARGS(argmin)},
	.dtype = {
		[MR_BOOL] = {1, MR_BOOL}, [MR_U8] = {1, MR_U8}, [MR_I32] = {4, MR_I32}, [MR_I64] = {8, MR_I64},
		[MR_U32] = {4, MR_U32}, [MR_U64] = {8, MR_U64}, [MR_F32] = {4, MR_F32}, [MR_F64] = {8, MR_F64},
		[MR_I8] = {1, MR_I32, widen_i8, narrow_i8}, [MR_I16] = {2, MR_I32, widen_i16, narrow_i16},
		[MR_U16] = {2, MR_I32, widen_u16, narrow_u16}, [MR_F16] = {2, MR_F32, widen_f16, narrow_f16},
		[MR_BF16] = {2, MR_F32, widen_bf16, narrow_bf16},
	},
};
