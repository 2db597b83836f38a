/* The functions of mr_kernels for one element type: included by
 * contract_level.h once for each, with
 *   T        the type of an element
 *   NAME     suffix of the functions
 *   FMA(c, x, y)     c = x*y + c of vectors, rounded once
 *   FMA1(c, x, y)    the same of elements
 *   SPREAD(v, p)     v = a vector of *p
 *   FINITE           defined where some elements are not
 * and from the level VB, the bytes of a vector, and MRMAX. */

typedef T PASTE(v, NAME) __attribute__((vector_size(VB), aligned(sizeof(T)), may_alias));
#define V PASTE(v, NAME)
#define L ((mr_i64)(VB / sizeof(T)))

static inline __attribute__((always_inline)) void PASTE(tile_rows, NAME)(
	const int rows, const int vecs, const T *x, mr_i64 ldx, const T *y, mr_i64 ldy, mr_i64 k, T *acc, T *c, mr_i64 ldc, int flags)
{
	/* Every third row has an address of its own; those between are one and two
	 * strides on, which an instruction adds. */
	const T *xs[(MRMAX + 2) / 3];
#pragma GCC unroll 5
	for (int i = 0; i < (rows + 2) / 3; i++)
		xs[i] = x + 3 * i * ldx;
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
			SPREAD(a, xs[i / 3] + i % 3 * ldx);
#pragma GCC unroll 8
			for (int j = 0; j < vecs; j++)
				FMA(s[i][j], a, b[j]);
		}
#pragma GCC unroll 5
		for (int i = 0; i < (rows + 2) / 3; i++)
			xs[i]++;
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
			PASTE(tile_rows, NAME)(r, r <= 2 ? 8 / r : 1, x, ldx, y, ldy, k, acc, c, ldc, flags); \
		else if (vecs == 2) \
			PASTE(tile_rows, NAME)(r, 2, x, ldx, y, ldy, k, acc, c, ldc, flags); \
		else \
			PASTE(tile_rows, NAME)(r, 1, x, ldx, y, ldy, k, acc, c, ldc, flags); \
		rows -= r; \
		x += r * ldx; \
		acc += r * ldc; \
		c += r * ldc; \
		continue; \
	}

static void PASTE(tile, NAME)(mr_i64 rows, mr_i64 vecs, const void *x0, mr_i64 ldx, const void *y0, mr_i64 ldy, mr_i64 k, void *acc0, void *c0, mr_i64 ldc, int flags)
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

#if VB > 32
typedef T PASTE(half, NAME) __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
#endif
#if VB > 16
typedef T PASTE(quarter, NAME) __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
#endif

/* n elements, at most two vectors of them, by a first and a last one. */
#define ENDS(VT) \
	if (n >= (mr_i64)(sizeof(VT) / sizeof(T))) { \
		const VT last = *(const VT *)(s + n - sizeof(VT) / sizeof(T)); \
		*(VT *)d = *(const VT *)s; \
		*(VT *)(d + n - sizeof(VT) / sizeof(T)) = last; \
		return; \
	}

/* A stretch: what is left of whole vectors is the last one, moved back. */
static inline __attribute__((always_inline)) void PASTE(line, NAME)(T *d, const T *s, mr_i64 step, mr_i64 n)
{
	mr_i64 j = 0;
	if (step == 1 && n >= L) {
		for (; j + L <= n; j += L)
			*(V *)(d + j) = *(const V *)(s + j);
		if (j < n)
			*(V *)(d + n - L) = *(const V *)(s + n - L);
		return;
	}
	if (step == 1) {
#if VB > 32
		ENDS(PASTE(half, NAME))
#endif
#if VB > 16
		ENDS(PASTE(quarter, NAME))
#endif
	}
#pragma GCC unroll 4
	for (; j < n; j++)
		d[j] = s[j * step];
}

static void PASTE(walk, NAME)(void *dst, mr_i64 ldd, const void *src, const mr_walk *outer, mr_i64 o0, mr_i64 o1, const mr_walk *inner, mr_i64 i0, mr_i64 i1)
{
	mr_stretch all[MR_C_WALK];
	const mr_i64 count = mr_stretches(all, inner, i0, i1 - i0), step = inner->stride[inner->rank - 1];
	mr_walker r;
	mr_walk_to(&r, outer, o0);
	for (T *row = dst; o0 < o1; o0++, row += ldd) {
		const T *s = (const T *)src + r.offset;
		T *d = row;
		for (mr_i64 q = 0; q < count; d += all[q++].n)
			PASTE(line, NAME)(d, s + all[q].offset, step, all[q].n);
		mr_walk_on(&r, 1);
	}
}

/* The same where rows of dst are those of panels, whose width divides ldd: see
 * mr_fill_panels. */
static void PASTE(walk_panels, NAME)(void *dst, mr_i64 panel, const void *src, const mr_walk *outer, mr_i64 o0, mr_i64 o1, const mr_walk *inner, mr_i64 i0, mr_i64 i1)
{
	mr_piece all[2 * MR_C_PANELS_COLUMNS];
	const mr_i64 count = mr_pieces(all, inner, i0, i1 - i0, 2 * L, panel), step = inner->stride[inner->rank - 1];
	const mr_i64 rest = (i1 - i0) % (2 * L), end = (i1 - i0) / (2 * L) * panel + rest;
	mr_walker r;
	mr_walk_to(&r, outer, o0);
	for (T *row = dst; o0 < o1; o0++, row += 2 * L) {
		const T *s = (const T *)src + r.offset;
		for (mr_i64 q = 0; q < count; q++)
			PASTE(line, NAME)(row + all[q].to, s + all[q].offset, step, all[q].n);
		for (mr_i64 j = rest; rest > 0 && j < 2 * L; j++)
			row[end - rest + j] = 0;
		mr_walk_on(&r, 1);
	}
}

static void PASTE(unwalk, NAME)(void *dst, const void *src, mr_i64 lds, const mr_walk *outer, mr_i64 o0, mr_i64 o1, const mr_walk *inner, mr_i64 i0, mr_i64 i1)
{
	mr_stretch all[MR_C_WALK];
	const mr_i64 count = mr_stretches(all, inner, i0, i1 - i0), step = inner->stride[inner->rank - 1];
	mr_walker r;
	mr_walk_to(&r, outer, o0);
	for (const T *row = src; o0 < o1; o0++, row += lds) {
		T *d = (T *)dst + r.offset;
		const T *s = row;
		for (mr_i64 q = 0; q < count; s += all[q++].n) {
			if (step == 1)
				PASTE(line, NAME)(d + all[q].offset, s, 1, all[q].n);
			else
				for (mr_i64 j = 0; j < all[q].n; j++)
					d[all[q].offset + j * step] = s[j];
		}
		mr_walk_on(&r, 1);
	}
}

/* Whether a vector of any row is other than that one. */
static inline __attribute__((always_inline)) int PASTE(other, NAME)(const T *x, mr_i64 ldx, mr_i64 rows, V than)
{
	union { __typeof__((V){0} != (V){0}) v; mr_u64 w[VB / 8]; } differs = { *(const V *)x != than };
	for (mr_i64 i = 1; i < rows; i++)
		differs.v |= *(const V *)(x + i * ldx) != than;
	mr_u64 any = 0;
	for (unsigned w = 0; w < VB / 8; w++)
		any |= differs.w[w];
	return any != 0;
}

/* [*from, *to) holds all p in [0, k) where a row is other than that. */
static inline __attribute__((always_inline)) void PASTE(range, NAME)(const T *x, mr_i64 ldx, mr_i64 rows, mr_i64 k, V than, mr_i64 *from, mr_i64 *to)
{
	mr_i64 lo = 0, hi = k - k % L;
	for (mr_i64 i = 0; i < rows && hi < k; i++) /* what fills no vector */
		for (mr_i64 p = k - k % L; p < k; p++)
			if (x[i * ldx + p] != than[0])
				hi = k;
	while (lo + L <= hi && !PASTE(other, NAME)(x + lo, ldx, rows, than))
		lo += L;
	while (lo + L <= hi && !PASTE(other, NAME)(x + hi - L, ldx, rows, than))
		hi -= L;
	*from = lo;
	*to = hi;
}

static void PASTE(extent, NAME)(const void *x, mr_i64 ldx, mr_i64 rows, mr_i64 k, mr_i64 *from, mr_i64 *to)
{
	PASTE(range, NAME)(x, ldx, rows, k, (V){0}, from, to);
}

#ifdef FINITE
/* What is not finite gives NaN when it is taken from itself. */
static int PASTE(finite, NAME)(const void *y0, mr_i64 n)
{
	const T *y = y0;
	V s[2] = {{0}};
	for (mr_i64 i = 0; i < n; i += 2 * L)
		for (int j = 0; j < 2; j++) {
			const V v = *(const V *)(y + i + j * L);
			s[j] += v - v;
		}
	s[0] += s[1];
	return !PASTE(other, NAME)((const T *)s, L, 1, (V){0});
}

static void PASTE(unmasked, NAME)(const void *m, mr_i64 ldm, mr_i64 rows, mr_i64 n, mr_i64 *from, mr_i64 *to)
{
	PASTE(range, NAME)(m, ldm, rows, n, (V){0} - (T)__builtin_inf(), from, to);
}

static int PASTE(small_all, NAME)(const void *x0, mr_i64 ldx, mr_i64 rows, mr_i64 k)
{
	const T *x = x0;
	const V most = (T)MR_C_SMALL - (V){0};
	union { __typeof__((V){0} != (V){0}) v; mr_u64 w[VB / 8]; } large = { (V){0} != (V){0} };
	int all = 1;
	for (mr_i64 i = 0; i < rows; i++, x += ldx) {
		mr_i64 p = 0;
		for (; p + L <= k; p += L) {
			const V v = *(const V *)(x + p);
			large.v |= ~((v <= most) & (v >= -most)); /* a NaN is neither */
		}
		for (; p < k; p++)
			all &= x[p] <= (T)MR_C_SMALL && x[p] >= -(T)MR_C_SMALL;
	}
	mr_u64 any = 0;
	for (unsigned w = 0; w < VB / 8; w++)
		any |= large.w[w];
	return all && !any;
}
#endif

/* One row alone takes four vectors of columns at a time, or each step of k
 * would wait for the one before. */
static inline mr_i64 PASTE(small_row, NAME)(mr_i64 n, mr_i64 k, const T *x, mr_i64 xk, const T *y, mr_i64 yk, T *c)
{
	mr_i64 j = 0;
	for (; j + 4 * L <= n; j += 4 * L) {
		V total[4] = {{0}};
		for (mr_i64 p = 0; p < k;) {
			const mr_i64 end = k - p > MR_CK ? p + MR_CK : k;
			V s[4] = {{0}};
			for (; p < end; p++) {
				const V a = x[p * xk] - (V){0};
#pragma GCC unroll 4
				for (int v = 0; v < 4; v++)
					FMA(s[v], a, *(const V *)(y + p * yk + j + v * L));
			}
#pragma GCC unroll 4
			for (int v = 0; v < 4; v++)
				total[v] += s[v];
		}
#pragma GCC unroll 4
		for (int v = 0; v < 4; v++)
			*(V *)(c + j + v * L) = total[v];
	}
	return j;
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

#define SMALL_SINGLE(cols) \
	for (mr_i64 i = 0; i < m; i++) { \
		T total[cols] = {0}; \
		for (mr_i64 p = 0; p < k;) { \
			const mr_i64 end = k - p > MR_CK ? p + MR_CK : k; \
			T s[cols] = {0}; \
			for (; p < end; p++) { \
				const T a = x[i * xi + p * xk]; \
				for (int q = 0; q < cols; q++) \
					FMA1(s[q], a, y[p * yk + (j + q) * yj]); \
			} \
			for (int q = 0; q < cols; q++) \
				total[q] += s[q]; \
		} \
		for (int q = 0; q < cols; q++) \
			c[i * ldc + j + q] = total[q]; \
	}

static void PASTE(small, NAME)(mr_i64 m, mr_i64 n, mr_i64 k, const void *x0, mr_i64 xi, mr_i64 xk, const void *y0, mr_i64 yj, mr_i64 yk, void *c0, mr_i64 ldc)
{
	const T *x = x0, *y = y0;
	T *c = c0;
	mr_i64 j = 0;
	if (yj == 1) {
		if (m == 1)
			j = PASTE(small_row, NAME)(n, k, x, xk, y, yk, c);
		SMALL_COLUMNS(V)
#if VB > 32
		SMALL_COLUMNS(PASTE(half, NAME))
#endif
#if VB > 16
		SMALL_COLUMNS(PASTE(quarter, NAME))
#endif
	}
	/* One by one; four columns at a time, or each step of k would wait for the one
	 * before. */
	for (; j + 4 <= n; j += 4)
		SMALL_SINGLE(4)
	for (; j < n; j++)
		SMALL_SINGLE(1)
}
#undef SMALL_COLUMNS
#undef SMALL_ROWS
#undef SMALL_SINGLE
#undef ENDS

#undef V
#undef L
#undef T
#undef NAME
#undef FMA
#undef FMA1
#undef SPREAD
#undef SQUARE
#undef FINITE
