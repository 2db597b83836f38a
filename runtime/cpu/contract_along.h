/* Rows of x by columns of y that lie along k, in floats: squares of y are transposed in
 * registers on the way to the chains, and written nowhere. Included by contract_level.h
 * for levels with fused multiply-add of x86. */
#define AL (VB / 4)

typedef float PASTE(along_v, VB) __attribute__((vector_size(VB), aligned(4), may_alias));
#define AV PASTE(along_v, VB)

#if VB == 64
#define LOW4(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH4(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW8(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH8(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
#define EVEN16(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD16(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#else
#define LOW4(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH4(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW8(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH8(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define EVEN16(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define ODD16(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#endif

/* o[p] = the vector of y[j*ldy + p] by j, for as many steps and columns as a vector has
 * lanes. */
static inline __attribute__((always_inline)) void along_square(AV *o, const float *y, mr_i64 ldy)
{
	AV u[AL];
#pragma GCC unroll 4
	for (int g = 0; g < AL; g += 4) {
		const AV a = *(const AV *)(y + g * ldy), b = *(const AV *)(y + (g + 1) * ldy);
		const AV c = *(const AV *)(y + (g + 2) * ldy), e = *(const AV *)(y + (g + 3) * ldy);
		const AV ab = LOW4(a, b), AB = HIGH4(a, b), ce = LOW4(c, e), CE = HIGH4(c, e);
		u[g] = LOW8(ab, ce); /* of 16 bytes number q: step 4q of columns g to g + 3 */
		u[g + 1] = HIGH8(ab, ce);
		u[g + 2] = LOW8(AB, CE);
		u[g + 3] = HIGH8(AB, CE);
	}
#pragma GCC unroll 4
	for (int s = 0; s < 4; s++) {
		const AV even = EVEN16(u[s], u[4 + s]), odd = ODD16(u[s], u[4 + s]);
#if VB == 64
		const AV even2 = EVEN16(u[8 + s], u[12 + s]), odd2 = ODD16(u[8 + s], u[12 + s]);
		o[s] = EVEN16(even, even2);
		o[4 + s] = EVEN16(odd, odd2);
		o[8 + s] = ODD16(even, even2);
		o[12 + s] = ODD16(odd, odd2);
#else
		o[s] = even;
		o[4 + s] = odd;
#endif
	}
}

static inline __attribute__((always_inline)) void along_rows(const int rows, const float *x, mr_i64 ldx, const float *y, mr_i64 ldy, mr_i64 k, float *c, mr_i64 ldc, int first)
{
	AV s[8], o[AL];
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		s[i] = (AV){0};
	mr_i64 p = 0;
	for (; p + AL <= k; p += AL) {
		along_square(o, y + p, ldy);
#pragma GCC unroll 16
		for (int q = 0; q < AL; q++)
#pragma GCC unroll 8
			for (int i = 0; i < rows; i++) {
				AV a;
				C_SPREAD_F32(a, x + i * ldx + p + q);
				C_FMA_F32(s[i], a, o[q]);
			}
	}
	if (p < k) { /* what is left is the end of the last whole square */
		along_square(o, y + k - AL, ldy);
		for (; p < k; p++)
#pragma GCC unroll 8
			for (int i = 0; i < rows; i++) {
				AV a;
				C_SPREAD_F32(a, x + i * ldx + p);
				C_FMA_F32(s[i], a, o[p - (k - AL)]);
			}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++) {
		AV *to = (AV *)(c + i * ldc);
		*to = first ? s[i] + (AV){0} : *to + s[i];
	}
}

static void along_f32(mr_i64 rows, const void *x0, mr_i64 ldx, const void *y, mr_i64 ldy, mr_i64 k, void *c0, mr_i64 ldc, int flags)
{
	const float *x = x0;
	float *c = c0;
	for (mr_i64 some; rows > 0; rows -= some, x += some * ldx, c += some * ldc) {
		if (rows >= 4)
			along_rows(some = 4, x, ldx, y, ldy, k, c, ldc, flags & MR_C_FIRST);
		else if (rows >= 2)
			along_rows(some = 2, x, ldx, y, ldy, k, c, ldc, flags & MR_C_FIRST);
		else
			along_rows(some = 1, x, ldx, y, ldy, k, c, ldc, flags & MR_C_FIRST);
	}
}
#define ALONG along_f32
#undef AL
#undef AV
#undef LOW4
#undef HIGH4
#undef LOW8
#undef HIGH8
#undef EVEN16
#undef ODD16
