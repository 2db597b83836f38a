/* Folding for one dtype and op: included by reduce.c once for each, with
 *   T      the type of an element
 *   NAME   suffix of the functions
 *   START  the value every lane begins with
 *   COMBINE(a, b) */

/* The fixed fold of 64 lanes; every lane is a row of n values. */
static void PASTE(lanes, NAME)(void *acc, mr_i64 n)
{
	T *a = acc;
	for (mr_i64 w = MR_LANES / 2; w > 0; w /= 2)
		for (mr_i64 j = 0; j < w * n; j++)
			a[j] = COMBINE(a[j], a[j + w * n]);
}

static void PASTE(start, NAME)(void *acc, mr_i64 n)
{
	T *a = acc;
	for (mr_i64 j = 0; j < MR_LANES * n; j++)
		a[j] = START;
}

/* Adds m values of n columns each, the first having index r. */
static void PASTE(add, NAME)(void *acc, const void *values, mr_i64 r, mr_i64 m, mr_i64 n)
{
	T *a = acc;
	const T *v = values;
	mr_i64 i = 0;
	while (i < m) {
		const mr_i64 lane = (r + i) % MR_LANES;
		mr_i64 k = MR_LANES - lane < m - i ? MR_LANES - lane : m - i;
		T *to = a + lane * n;
		const T *from = v + i * n;
		if (k * n == MR_LANES) { /* the common case has a fixed length */
			for (int j = 0; j < MR_LANES; j++)
				to[j] = COMBINE(to[j], from[j]);
		} else {
			for (mr_i64 j = 0; j < k * n; j++)
				to[j] = COMBINE(to[j], from[j]);
		}
		i += k;
	}
}

static void PASTE(combine, NAME)(void *total, const void *block, mr_i64 n)
{
	T *t = total;
	const T *b = block;
	for (mr_i64 j = 0; j < n; j++)
		t[j] = COMBINE(t[j], b[j]);
}

#undef T
#undef NAME
#undef START
#undef COMBINE
