//go:build cgo

/* Masks of bytes, as bools are in memory, 0 and 1: eight are looked at together. */
#include <string.h>

#include "contract.h"

/* Whether eight bytes of a row have anything but than. */
static int other_bytes(const char *m, mr_i64 ldm, mr_i64 rows, mr_u64 than)
{
	mr_u64 differs = 0;
	for (mr_i64 i = 0; i < rows; i++) {
		mr_u64 w;
		memcpy(&w, m + i * ldm, 8);
		differs |= w ^ than;
	}
	return differs != 0;
}

void mr_unmasked_bytes(const char *m, mr_i64 ldm, mr_i64 rows, mr_i64 n, int hides, mr_i64 *from, mr_i64 *to)
{
	const mr_u64 than = hides ? 0x0101010101010101 : 0;
	mr_i64 lo = 0, hi = n - n % 8;
	for (mr_i64 i = 0; i < rows && hi < n; i++) /* what fills no word */
		for (mr_i64 p = n - n % 8; p < n; p++)
			if (m[i * ldm + p] != hides)
				hi = n;
	while (lo + 8 <= hi && !other_bytes(m + lo, ldm, rows, than))
		lo += 8;
	while (lo + 8 <= hi && !other_bytes(m + hi - 8, ldm, rows, than))
		hi -= 8;
	*from = lo;
	*to = hi;
}
