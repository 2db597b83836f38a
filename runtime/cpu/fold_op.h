/* Folding and scanning by one op on one dtype: included by fold_dtype.h with
 *   OP             suffix of the functions
 *   START          the value that changes no element
 *   COMBINE(a, b)
 * and, where images of elements combine faster than elements do,
 *   L, IMAGE(x)    their type, and an element's
 *   JOIN(a, b)     of two images
 *   ELEMENT(a)     the way back */

#ifndef L
#define L T
#define IMAGE(x) (x)
#define JOIN COMBINE
#define ELEMENT(a) (a)
#endif

static void PASTE(start, D, OP)(void *acc)
{
	L *a = acc;
	for (int j = 0; j < MR_LANES; j++)
		a[j] = IMAGE((T)START);
}

static void PASTE(add, D, OP)(void *acc, const void *values, mr_i64 r, mr_i64 m, mr_i64 n, mr_i64 ld)
{
	L *restrict to = acc;
	const T *restrict v = values;
	if (n > 1) {
		for (mr_i64 i = 0; i < m; i++, v += ld) {
			const mr_i64 at = (r + i) % MR_BLOCK;
			L *restrict lane = to + at % MR_LANES * n;
			if (ld != n && n * sizeof *v <= MR_PIECE && i + MR_AHEAD < m)
				ahead(v + MR_AHEAD * ld, n * (mr_i64)sizeof *v);
			if (at < MR_LANES)
				for (mr_i64 j = 0; j < n; j++)
					lane[j] = IMAGE(v[j]);
			else
				for (mr_i64 j = 0; j < n; j++)
					lane[j] = JOIN(lane[j], IMAGE(v[j]));
		}
		return;
	}
	mr_i64 i = 0;
	for (; i < m && (r + i) % MR_LANES != 0; i++)
		to[(r + i) % MR_LANES] = JOIN(to[(r + i) % MR_LANES], IMAGE(v[i * ld]));
	if (ld == 1 && i + MR_LANES <= m) {
		L a[MR_LANES]; /* stays in registers */
		for (int j = 0; j < MR_LANES; j++)
			a[j] = to[j];
		for (; i + MR_LANES <= m; i += MR_LANES)
			for (int j = 0; j < MR_LANES; j++)
				a[j] = JOIN(a[j], IMAGE(v[i + j]));
		for (int j = 0; j < MR_LANES; j++)
			to[j] = a[j];
	}
	for (; i < m; i++)
		to[(r + i) % MR_LANES] = JOIN(to[(r + i) % MR_LANES], IMAGE(v[i * ld]));
}

#define HALVE(W)                                         \
	for (int j = 0; j < (W); j++)                    \
		a[j] = JOIN(a[j], a[j + (W)]);

/* Lanes without an element change nothing, so they are left out. */
static void PASTE(finish, D, OP)(void *acc, mr_i64 elements, mr_i64 n)
{
	L *a = acc;
	mr_i64 used = elements < MR_LANES ? elements : MR_LANES;
	if (n == 1 && used == MR_LANES) { /* lengths that are known: a few vectors */
		HALVE(32) HALVE(16) HALVE(8) HALVE(4) HALVE(2) HALVE(1)
		used = 1;
	}
	for (mr_i64 w = MR_LANES / 2; w > 0 && used > 1; w /= 2) {
		for (mr_i64 j = 0; j < (used - w) * n; j++)
			a[j] = JOIN(a[j], a[j + w * n]);
		if (used > w)
			used = w;
	}
	T *t = acc;
	for (mr_i64 j = 0; j < n; j++)
		t[j] = ELEMENT(a[j]);
}

/* The eight lanes of a leaf, in the order of the fold. */
static inline L PASTE(leaf, D, OP)(const T *const *v, mr_i64 j)
{
	const L a = JOIN(JOIN(IMAGE(v[0][j]), IMAGE(v[4][j])), JOIN(IMAGE(v[2][j]), IMAGE(v[6][j])));
	const L b = JOIN(JOIN(IMAGE(v[1][j]), IMAGE(v[5][j])), JOIN(IMAGE(v[3][j]), IMAGE(v[7][j])));
	return JOIN(a, b);
}

/* Where the rows of the leaf of a lane are; none stands for rows there are
 * not. */
static inline void PASTE(find, D, OP)(const T **v, const T *first, mr_i64 lane, mr_i64 m, mr_i64 ld, const T *none)
{
	for (mr_i64 i = 0; i < 8; i++)
		v[i] = lane + 8 * i < m ? first + (lane + 8 * i) * ld : none;
}

/* The lanes below 8 stand for leaves, and are joined by fours, twos and ones;
 * taken in this order each waits for few others. Rows are far apart: those of
 * the next leaf are asked for while one is folded. */
static void PASTE(few, D, OP)(void *out, const void *values, mr_i64 m, mr_i64 n, mr_i64 ld)
{
	static const mr_i64 order[9] = {0, 4, 2, 6, 1, 5, 3, 7, MR_LANES};
	enum { PIECE = MR_FEW / sizeof(T), RUN = MR_RUN / sizeof(T), LINE = 64 / sizeof(T) };
	T none[PIECE];
	L part[4][PIECE];
	mr_i64 lane[4];
	for (mr_i64 j = 0; j < PIECE; j++)
		none[j] = START;
	for (mr_i64 begin = 0; begin < n; begin += PIECE) {
		const mr_i64 len = n - begin < PIECE ? n - begin : PIECE;
		const T *first = (const T *)values + begin;
		int top = 0;
		for (int k = 0; k < 8; k++, top++) {
			const T *v[8], *next[8];
			lane[top] = order[k];
			PASTE(find, D, OP)(v, first, order[k], m, ld, none);
			PASTE(find, D, OP)(next, first, order[k + 1], m, ld, none);
			if (order[k + 1] >= m && begin + PIECE < n)
				PASTE(find, D, OP)(next, first + PIECE, 0, m, ld, none);
			for (mr_i64 b = 0; b < len && order[k] < m; b += RUN) {
				const mr_i64 end = len - b < RUN ? len : b + RUN;
				for (int i = 0; i < 8 && next[i] != none; i++)
					for (mr_i64 j = b; j < end; j += LINE)
						__builtin_prefetch(next[i] + j, 0, 2);
				MR_T0_LOOP for (mr_i64 j = b; j < end; j++)
					part[top][j] = PASTE(leaf, D, OP)(v, j);
			}
			for (int pairs = k + 1; pairs % 2 == 0; pairs /= 2, top--) {
				L *restrict left = part[top - 1];
				const L *restrict right = part[top];
				const mr_i64 some = lane[top] < m ? len : 0;
				for (mr_i64 j = 0; j < some; j++)
					left[j] = JOIN(left[j], right[j]);
			}
		}
		T *restrict to = (T *)out + begin;
		for (mr_i64 j = 0; j < len; j++)
			to[j] = ELEMENT(part[0][j]);
	}
}

static void PASTE(combine, D, OP)(void *total, const void *block, mr_i64 n)
{
	T *restrict t = total;
	const T *restrict b = block;
	for (mr_i64 j = 0; j < n; j++)
		t[j] = COMBINE(t[j], b[j]);
}

static void PASTE(scan, D, OP)(void *out, const void *values, void *run, void *offset, mr_i64 r, mr_i64 m, mr_i64 n)
{
	T *restrict to = out;
	const T *restrict v = values;
	T *restrict x = run, *restrict off = offset;
	for (mr_i64 i = r; i < r + m; i++, v += n, to += n) {
		if (i % MR_SCAN == 0 && i > 0)
			for (mr_i64 j = 0; j < n; j++)
				off[j] = i == MR_SCAN ? x[j] : COMBINE(off[j], x[j]);
		if (i % MR_SCAN == 0)
			for (mr_i64 j = 0; j < n; j++)
				x[j] = v[j];
		else
			for (mr_i64 j = 0; j < n; j++)
				x[j] = COMBINE(x[j], v[j]);
		if (i < MR_SCAN)
			for (mr_i64 j = 0; j < n; j++)
				to[j] = x[j];
		else
			for (mr_i64 j = 0; j < n; j++)
				to[j] = COMBINE(off[j], x[j]);
	}
}

/* In order: two values may join the same element. */
static void PASTE(into, D, OP)(void *base, const mr_i64 *at, mr_i64 step, const void *values, mr_i64 n)
{
	T *to = base;
	const T *v = values;
	for (mr_i64 k = 0; k < n; k++, to += step)
		if (at[k] >= 0)
			to[at[k]] = COMBINE(to[at[k]], v[k]);
}

#undef HALVE
#undef OP
#undef START
#undef COMBINE
#undef L
#undef IMAGE
#undef JOIN
#undef ELEMENT
