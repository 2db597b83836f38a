/* Where the greatest sort key of a row is: included by fold_dtype.h with
 *   OP      suffix of the functions
 *   KEY(x)  the sort key, a U
 * An accumulator of n columns is their keys, then their positions. Ties go to
 * the lowest position, so the order of joining does not matter. */

static inline mr_i64 *PASTE(places, D, OP)(void *acc, mr_i64 n)
{
	return (mr_i64 *)((char *)acc + (n * (mr_i64)sizeof(U) + 7) / 8 * 8);
}

static void PASTE(start, D, OP)(void *acc) { (void)acc; }

/* The first element of a block takes the place without a fight. */
static void PASTE(add, D, OP)(void *acc, const void *values, mr_i64 r, mr_i64 m, mr_i64 n, mr_i64 ld)
{
	U *restrict key = acc;
	mr_i64 *restrict place = PASTE(places, D, OP)(acc, n);
	const T *restrict v = values;
	if (n > 1 || ld != 1) { /* ld below 0: a row that is read backwards */
		for (mr_i64 i = r; i < r + m; i++, v += ld) {
			const int first = i % MR_BLOCK == 0;
			for (mr_i64 j = 0; j < n; j++) {
				const U k = KEY(v[j]);
				const int better = first | (k > key[j]);
				key[j] = better ? k : key[j];
				place[j] = better ? i : place[j];
			}
		}
		return;
	}
	U best = 0;
	for (mr_i64 i = 0; i < m; i++) {
		const U k = KEY(v[i]);
		best = k > best ? k : best;
	}
	if (r % MR_BLOCK != 0 && best <= key[0])
		return;
	mr_i64 i = 0;
	while (KEY(v[i]) != best)
		i++;
	key[0] = best;
	place[0] = r + i;
}

static void PASTE(finish, D, OP)(void *acc, mr_i64 elements, mr_i64 n)
{
	(void)acc, (void)elements, (void)n;
}

static void PASTE(combine, D, OP)(void *total, const void *block, mr_i64 n)
{
	U *key = total;
	const U *other = block;
	mr_i64 *place = PASTE(places, D, OP)(total, n);
	const mr_i64 *theirs = PASTE(places, D, OP)((void *)block, n);
	for (mr_i64 j = 0; j < n; j++)
		if (other[j] > key[j]) {
			key[j] = other[j];
			place[j] = theirs[j];
		}
}

static void PASTE(result, D, OP)(void *out, mr_i64 size, const void *total, mr_i64 n)
{
	const mr_i64 *place = PASTE(places, D, OP)((void *)total, n);
	for (mr_i64 j = 0; j < n; j++)
		if (size == 4)
			((mr_i32 *)out)[j] = (mr_i32)place[j];
		else
			((mr_i64 *)out)[j] = place[j];
}

#undef OP
#undef KEY
