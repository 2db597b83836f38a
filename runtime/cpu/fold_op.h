/* Folding and scanning by one op on one dtype: included by fold_dtype.h with
 *   OP             suffix of the functions
 *   START          the value that changes no element
 *   COMBINE(a, b)  */

static void PASTE(start, D, OP)(void *acc)
{
	T *a = acc;
	for (int j = 0; j < MR_LANES; j++)
		a[j] = START;
}

static void PASTE(add, D, OP)(void *acc, const void *values, mr_i64 r, mr_i64 m, mr_i64 n, mr_i64 ld)
{
	T *restrict to = acc;
	const T *restrict v = values;
	if (n > 1) {
		for (mr_i64 i = 0; i < m; i++, v += ld) {
			const mr_i64 at = (r + i) % MR_BLOCK;
			T *restrict lane = to + at % MR_LANES * n;
			if (ld != n && n * sizeof *v <= MR_PIECE && i + MR_AHEAD < m)
				ahead(v + MR_AHEAD * ld, n * (mr_i64)sizeof *v);
			if (at < MR_LANES)
				for (mr_i64 j = 0; j < n; j++)
					lane[j] = v[j];
			else
				for (mr_i64 j = 0; j < n; j++)
					lane[j] = COMBINE(lane[j], v[j]);
		}
		return;
	}
	mr_i64 i = 0;
	for (; i < m && (r + i) % MR_LANES != 0; i++)
		to[(r + i) % MR_LANES] = COMBINE(to[(r + i) % MR_LANES], v[i * ld]);
	if (ld == 1 && i + MR_LANES <= m) {
		T a[MR_LANES]; /* stays in registers */
		for (int j = 0; j < MR_LANES; j++)
			a[j] = to[j];
		for (; i + MR_LANES <= m; i += MR_LANES)
			for (int j = 0; j < MR_LANES; j++)
				a[j] = COMBINE(a[j], v[i + j]);
		for (int j = 0; j < MR_LANES; j++)
			to[j] = a[j];
	}
	for (; i < m; i++)
		to[(r + i) % MR_LANES] = COMBINE(to[(r + i) % MR_LANES], v[i * ld]);
}

/* Lanes without an element change nothing, so they are left out. */
static void PASTE(finish, D, OP)(void *acc, mr_i64 elements, mr_i64 n)
{
	T *a = acc;
	mr_i64 used = elements < MR_LANES ? elements : MR_LANES;
	for (mr_i64 w = MR_LANES / 2; w > 0; w /= 2) {
		for (mr_i64 j = 0; j < (used - w) * n; j++)
			a[j] = COMBINE(a[j], a[j + w * n]);
		if (used > w)
			used = w;
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

#undef OP
#undef START
#undef COMBINE
