/* The functions of mr_kernels for one element type: included by
 * contract_level.h once for each, with
 *   T        the type of an element
 *   NAME     suffix of the functions
 *   FMA(c, x, y)     c = x*y + c of vectors, rounded once
 *   FMA1(c, x, y)    the same of elements
 *   SPREAD(v, p)     v = a vector of *p
 * and from the level VB, the bytes of a vector, and MRMAX. */

typedef T PASTE(v, NAME) __attribute__((vector_size(VB), aligned(sizeof(T)), may_alias));
#define V PASTE(v, NAME)
#define L ((mr_i64)(VB / sizeof(T)))

static inline __attribute__((always_inline)) void PASTE(tile_rows, NAME)(
	const int rows, const int vecs, const T *x, const T *y, mr_i64 ldy, mr_i64 k, T *acc, T *c, mr_i64 ldc, int flags)
{
	V s[MRMAX][8];
	if (flags & MR_C_OPEN) {
#pragma GCC unroll 16
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
			for (int j = 0; j < vecs; j++)
				s[i][j] = (V){0};
	} else {
#pragma GCC unroll 16
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
			for (int j = 0; j < vecs; j++)
				s[i][j] = *(const V *)(acc + i * ldc + j * L);
	}
#pragma GCC unroll 4
	for (mr_i64 p = 0; p < k; p++) {
		V b[8];
#pragma GCC unroll 8
		for (int j = 0; j < vecs; j++)
			b[j] = *(const V *)(y + j * L);
#pragma GCC unroll 16
		for (int i = 0; i < rows; i++) {
			V a;
			SPREAD(a, x + i * MR_CK);
#pragma GCC unroll 8
			for (int j = 0; j < vecs; j++)
				FMA(s[i][j], a, b[j]);
		}
		x++;
		y += ldy;
	}
	if (!(flags & MR_C_CLOSE)) {
#pragma GCC unroll 16
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
			for (int j = 0; j < vecs; j++)
				*(V *)(acc + i * ldc + j * L) = s[i][j];
	} else if (flags & MR_C_FIRST) {
		/* +0 is added all the same: a chain may end at -0, by underflow. */
#pragma GCC unroll 16
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
			for (int j = 0; j < vecs; j++)
				*(V *)(c + i * ldc + j * L) = s[i][j] + (V){0};
	} else {
#pragma GCC unroll 16
		for (int i = 0; i < rows; i++)
#pragma GCC unroll 8
			for (int j = 0; j < vecs; j++)
				*(V *)(c + i * ldc + j * L) += s[i][j];
	}
}

/* One or two rows alone need more columns, or each step of k would wait for
 * the one before. */
#define ROWS(r) \
	if (rows >= r && r <= MRMAX) { \
		if (r <= 2 && vecs == 8 / r) \
			PASTE(tile_rows, NAME)(r, r <= 2 ? 8 / r : 1, x, y, ldy, k, acc, c, ldc, flags); \
		else if (vecs == 2) \
			PASTE(tile_rows, NAME)(r, 2, x, y, ldy, k, acc, c, ldc, flags); \
		else \
			PASTE(tile_rows, NAME)(r, 1, x, y, ldy, k, acc, c, ldc, flags); \
		rows -= r; \
		x += r * MR_CK; \
		acc += r * ldc; \
		c += r * ldc; \
		continue; \
	}

static void PASTE(tile, NAME)(mr_i64 rows, mr_i64 vecs, const void *x0, const void *y0, mr_i64 ldy, mr_i64 k, void *acc0, void *c0, mr_i64 ldc, int flags)
{
	const T *x = x0, *y = y0;
	T *acc = acc0, *c = c0;
	while (rows > 0) {
#if MRMAX > 8
		ROWS(MRMAX)
		ROWS(8)
#endif
#if MRMAX > 4
		ROWS(6)
#endif
		ROWS(4)
		ROWS(2)
		ROWS(1)
	}
}
#undef ROWS

/* Blocks of 16 by 16 keep both sides in cache. */
static void PASTE(transpose, NAME)(void *dst, mr_i64 ldd, const void *src, mr_i64 lds, mr_i64 rows, mr_i64 cols)
{
	T *d = dst;
	const T *s = src;
	mr_i64 i0 = 0;
	for (; i0 < rows; i0 += 16) {
		const mr_i64 ni = rows - i0 < 16 ? rows - i0 : 16;
		mr_i64 j0 = 0;
#ifdef SQUARE
		if (ni == 16)
			for (; j0 + 16 <= cols; j0 += 16)
				SQUARE(d + j0 * ldd + i0, ldd, s + i0 * lds + j0, lds);
#endif
		for (; j0 < cols; j0 += 16) {
			const mr_i64 nj = cols - j0 < 16 ? cols - j0 : 16;
			for (mr_i64 j = j0; j < j0 + nj; j++)
				for (mr_i64 i = i0; i < i0 + ni; i++)
					d[j * ldd + i] = s[i * lds + j];
		}
	}
}

static void PASTE(gather, NAME)(void *dst, mr_i64 ldd, const void *src, mr_i64 rs, mr_i64 cs, mr_i64 rows, mr_i64 cols)
{
	T *d = dst;
	const T *s = src;
	for (mr_i64 i = 0; i < rows; i++)
		for (mr_i64 j = 0; j < cols; j++)
			d[i * ldd + j] = s[i * rs + j * cs];
}

/* Columns from j on in vectors of type VT, four rows at a time. */
#define SMALL_COLUMNS(VT) \
	for (; j + (mr_i64)(sizeof(VT) / sizeof(T)) <= n; j += sizeof(VT) / sizeof(T)) { \
		mr_i64 i = 0; \
		for (; i + 4 <= m; i += 4) \
			SMALL_ROWS(VT, 4) \
		for (; i < m; i++) \
			SMALL_ROWS(VT, 1) \
	}

#define SMALL_ROWS(VT, rows) { \
		VT total[rows] = {{0}}; \
		for (mr_i64 p = 0; p < k;) { \
			const mr_i64 end = k - p > MR_CK ? p + MR_CK : k; \
			VT s[rows] = {{0}}; \
			for (; p < end; p++) { \
				const VT b = *(const VT *)(y + p * yk + j); \
				for (int r = 0; r < rows; r++) { \
					const VT a = x[(i + r) * xi + p * xk] - (VT){0}; \
					FMA(s[r], a, b); \
				} \
			} \
			for (int r = 0; r < rows; r++) \
				total[r] += s[r]; \
		} \
		for (int r = 0; r < rows; r++) \
			*(VT *)(c + (i + r) * ldc + j) = total[r]; \
	}

#if VB > 32
typedef T PASTE(half, NAME) __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
#endif
#if VB > 16
typedef T PASTE(quarter, NAME) __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
#endif

static void PASTE(small, NAME)(mr_i64 m, mr_i64 n, mr_i64 k, const void *x0, mr_i64 xi, mr_i64 xk, const void *y0, mr_i64 yj, mr_i64 yk, void *c0, mr_i64 ldc)
{
	const T *x = x0, *y = y0;
	T *c = c0;
	mr_i64 j = 0;
	if (yj == 1) {
		SMALL_COLUMNS(V)
#if VB > 32
		SMALL_COLUMNS(PASTE(half, NAME))
#endif
#if VB > 16
		SMALL_COLUMNS(PASTE(quarter, NAME))
#endif
	}
	for (; j < n; j++)
		for (mr_i64 i = 0; i < m; i++) {
			T total = 0;
			for (mr_i64 p = 0; p < k;) {
				const mr_i64 end = k - p > MR_CK ? p + MR_CK : k;
				T s = 0;
				for (; p < end; p++)
					FMA1(s, x[i * xi + p * xk], y[p * yk + j * yj]);
				total += s;
			}
			c[i * ldc + j] = total;
		}
}
#undef SMALL_COLUMNS
#undef SMALL_ROWS

#undef V
#undef L
#undef T
#undef NAME
#undef FMA
#undef FMA1
#undef SPREAD
#undef SQUARE
