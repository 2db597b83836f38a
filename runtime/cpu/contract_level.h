/* The functions of one ISA level, for every element type: the file that
 * includes this one gives the target by a pragma before, and
 *   MR_C_LEVEL  the name of the table
 *   VB          bytes of a vector
 *   MRMAX       most rows of a tile: two vectors for each, two of y and one
 *               of x stay in registers
 *   MR_C_X86    1 where vectors fit one instruction of fused multiply-add of
 *               x86; elsewhere the compiler knows its own
 * GCC and clang differ in their names for vector instructions and no cgo flag
 * may ask for contraction, so the two instructions that matter are spelled. */
#include "contract_walk.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

#if MR_C_X86
#define C_FMA_F32(c, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(x), "v"(y))
#define C_FMA_F64(c, x, y) __asm__("vfmadd231pd %2, %1, %0" : "+v"(c) : "v"(x), "v"(y))
#define C_SPREAD_F32(v, p) __asm__("vbroadcastss %1, %0" : "=v"(v) : "m"(*(p)))
#define C_SPREAD_F64(v, p) __asm__("vbroadcastsd %1, %0" : "=v"(v) : "m"(*(p)))
#define C_FMA1_F32(c, x, y) (c = __builtin_fmaf(x, y, c))
#define C_FMA1_F64(c, x, y) (c = __builtin_fma(x, y, c))
#elif defined __aarch64__ && VB == 16
#define C_FMA_F32(c, x, y) __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(x), "w"(y))
#define C_FMA_F64(c, x, y) __asm__("fmla %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(x), "w"(y))
#define C_SPREAD_F32(v, p) __asm__("ld1r {%0.4s}, %1" : "=w"(v) : "Q"(*(p)))
#define C_SPREAD_F64(v, p) __asm__("ld1r {%0.2d}, %1" : "=w"(v) : "Q"(*(p)))
#define C_FMA1_F32(c, x, y) (c = __builtin_fmaf(x, y, c))
#define C_FMA1_F64(c, x, y) (c = __builtin_fma(x, y, c))
#else
/* The product of two floats is exact in double. The sum must not be rounded a
 * second time where the first rounding ended in the middle of two floats, or
 * where the second one is denormal. */
static inline __attribute__((always_inline)) float soft_fmaf(float x, float y, float c)
{
#ifdef __FP_FAST_FMAF
	return __builtin_fmaf(x, y, c);
#else
	union { double f; mr_u64 u; } s = { (double)x * y };
	s.f += c;
	if (__builtin_expect((s.u & 0x1fffffff) == 0x10000000 || ((s.u << 1) - 1 < (0x381ull << 53) - 1), 0))
		return __builtin_fmaf(x, y, c);
	return (float)s.f;
#endif
}
#define LANEWISE(c, x, y, f) \
	for (unsigned lane = 0; lane < sizeof(c) / sizeof((c)[0]); lane++) \
		(c)[lane] = f((x)[lane], (y)[lane], (c)[lane])
#define C_FMA_F32(c, x, y) LANEWISE(c, x, y, soft_fmaf)
#define C_FMA_F64(c, x, y) LANEWISE(c, x, y, __builtin_fma)
#define C_SPREAD_F32(v, p) (v) = *(p) - (__typeof__(v)){0}
#define C_SPREAD_F64(v, p) (v) = *(p) - (__typeof__(v)){0}
#define C_FMA1_F32(c, x, y) (c = soft_fmaf(x, y, c))
#define C_FMA1_F64(c, x, y) (c = __builtin_fma(x, y, c))
#endif

#define C_FMA_INT(c, x, y) ((c) += (x) * (y))
#define C_SPREAD_INT(v, p) (v) = *(p) + (__typeof__(v)){0}
#define C_FMA1_INT(c, x, y) (c = (__typeof__(c))(c + (mr_u64)(x) * (y)))

/* Squares of 16 by 16 are transposed in vectors of 16 bytes. */
#if defined __clang__ || __GNUC__ >= 12
typedef mr_u32 t32 __attribute__((vector_size(16), aligned(4), may_alias));
typedef mr_u64 t64 __attribute__((vector_size(16), aligned(8), may_alias));

static inline __attribute__((always_inline)) void square32(void *dst, mr_i64 ldd, const void *src, mr_i64 lds)
{
	mr_u32 *d = dst;
	const mr_u32 *s = src;
	/* unrolled, it would need more addresses than there are registers */
#pragma GCC unroll 1
	for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 1
		for (int j = 0; j < 16; j += 4) {
			const t32 a = *(const t32 *)(s + i * lds + j), b = *(const t32 *)(s + (i + 1) * lds + j);
			const t32 c = *(const t32 *)(s + (i + 2) * lds + j), e = *(const t32 *)(s + (i + 3) * lds + j);
			const t32 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
			const t32 ce = __builtin_shufflevector(c, e, 0, 4, 1, 5), CE = __builtin_shufflevector(c, e, 2, 6, 3, 7);
			*(t32 *)(d + j * ldd + i) = __builtin_shufflevector(ab, ce, 0, 1, 4, 5);
			*(t32 *)(d + (j + 1) * ldd + i) = __builtin_shufflevector(ab, ce, 2, 3, 6, 7);
			*(t32 *)(d + (j + 2) * ldd + i) = __builtin_shufflevector(AB, CE, 0, 1, 4, 5);
			*(t32 *)(d + (j + 3) * ldd + i) = __builtin_shufflevector(AB, CE, 2, 3, 6, 7);
		}
}

static inline __attribute__((always_inline)) void square64(void *dst, mr_i64 ldd, const void *src, mr_i64 lds)
{
	mr_u64 *d = dst;
	const mr_u64 *s = src;
#pragma GCC unroll 1
	for (int i = 0; i < 16; i += 2)
#pragma GCC unroll 1
		for (int j = 0; j < 16; j += 2) {
			const t64 a = *(const t64 *)(s + i * lds + j), b = *(const t64 *)(s + (i + 1) * lds + j);
			*(t64 *)(d + j * ldd + i) = __builtin_shufflevector(a, b, 0, 2);
			*(t64 *)(d + (j + 1) * ldd + i) = __builtin_shufflevector(a, b, 1, 3);
		}
}
#define MR_C_SQUARES 1
#endif

#define T float
#define NAME _f32
#define FMA C_FMA_F32
#define FMA1 C_FMA1_F32
#define SPREAD C_SPREAD_F32
#define FINITE
#if MR_C_SQUARES
#define SQUARE square32
#endif
#include "contract_kernel.h"

#define T double
#define NAME _f64
#define FMA C_FMA_F64
#define FMA1 C_FMA1_F64
#define SPREAD C_SPREAD_F64
#define FINITE
#if MR_C_SQUARES
#define SQUARE square64
#endif
#include "contract_kernel.h"

#define T mr_u8
#define NAME _i8
#define FMA C_FMA_INT
#define FMA1 C_FMA1_INT
#define SPREAD C_SPREAD_INT
#include "contract_kernel.h"

#define T mr_u16
#define NAME _i16
#define FMA C_FMA_INT
#define FMA1 C_FMA1_INT
#define SPREAD C_SPREAD_INT
#include "contract_kernel.h"

#define T mr_u32
#define NAME _i32
#define FMA C_FMA_INT
#define FMA1 C_FMA1_INT
#define SPREAD C_SPREAD_INT
#if MR_C_SQUARES
#define SQUARE square32
#endif
#include "contract_kernel.h"

#define T mr_u64
#define NAME _i64
#define FMA C_FMA_INT
#define FMA1 C_FMA1_INT
#define SPREAD C_SPREAD_INT
#if MR_C_SQUARES
#define SQUARE square64
#endif
#include "contract_kernel.h"

#if MR_C_X86 && MR_C_SQUARES
#include "contract_along.h"
#else
#define ALONG 0
#endif

#define KERNELS(T, name, finite, unmasked, small_all, along) { sizeof(T), VB / sizeof(T), 2 * VB / sizeof(T), MRMAX, tile##name, transpose##name, gather##name, walk##name, walk_panels##name, unwalk##name, extent##name, finite, unmasked, small_all, small##name, along }

const mr_kernels MR_C_LEVEL[MR_C_TYPES] = {
	[MR_C_F32] = KERNELS(float, _f32, finite_f32, unmasked_f32, small_all_f32, ALONG), [MR_C_F64] = KERNELS(double, _f64, finite_f64, unmasked_f64, small_all_f64, 0),
	[MR_C_I8] = KERNELS(mr_u8, _i8, 0, 0, 0, 0),   [MR_C_I16] = KERNELS(mr_u16, _i16, 0, 0, 0, 0),
	[MR_C_I32] = KERNELS(mr_u32, _i32, 0, 0, 0, 0), [MR_C_I64] = KERNELS(mr_u64, _i64, 0, 0, 0, 0),
};
