//go:build cgo

/* Stable sorts of rows. Elements become unsigned keys in the total order;
 * short rows are inserted, long ones go through a radix sort, byte by byte,
 * leaving out bytes that all keys share. */
#include <string.h>

#include "fold.h"

/* Rows up to this length are sorted by insertion. */
#define INSERTION 32

/* What order an element has: unsigned as it is, signed, or float with its
 * exponent mask. */
typedef struct {
	int size, sign;
	mr_u64 infinity; /* bits above are NaN, 0 for integers */
} order;

static const order orders[MR_DTYPES] = {
	[MR_BOOL] = {1}, [MR_U8] = {1}, [MR_U16] = {2}, [MR_U32] = {4}, [MR_U64] = {8},
	[MR_I8] = {1, 1}, [MR_I16] = {2, 1}, [MR_I32] = {4, 1}, [MR_I64] = {8, 1},
	[MR_F16] = {2, 1, 0x7c00}, [MR_BF16] = {2, 1, 0x7f80},
	[MR_F32] = {4, 1, 0x7f800000}, [MR_F64] = {8, 1, 0x7ff0000000000000},
};

static mr_u64 element(const void *values, mr_i64 i, int size)
{
	switch (size) {
	case 1: return ((const mr_u8 *)values)[i];
	case 2: return ((const mr_u16 *)values)[i];
	case 4: return ((const mr_u32 *)values)[i];
	}
	return ((const mr_u64 *)values)[i];
}

static void put(void *values, mr_i64 i, int size, mr_u64 bits)
{
	switch (size) {
	case 1: ((mr_u8 *)values)[i] = (mr_u8)bits; return;
	case 2: ((mr_u16 *)values)[i] = (mr_u16)bits; return;
	case 4: ((mr_u32 *)values)[i] = (mr_u32)bits; return;
	default: ((mr_u64 *)values)[i] = bits;
	}
}

static mr_u64 key_of(const order *o, mr_u64 bits, int descending)
{
	const mr_u64 top = (mr_u64)1 << (o->size * 8 - 1), mask = top | (top - 1);
	if (o->infinity && (bits & ~top) > o->infinity)
		return mask;
	if (o->infinity && bits & top)
		bits = ~bits;
	else if (o->sign)
		bits ^= top;
	return (descending ? ~bits : bits) & mask;
}

/* The element of a key; any NaN stands for any other. */
static mr_u64 element_of(const order *o, mr_u64 key, int descending)
{
	const mr_u64 top = (mr_u64)1 << (o->size * 8 - 1), mask = top | (top - 1);
	if (o->infinity && key == mask)
		return o->infinity | o->infinity >> 1;
	if (descending)
		key = ~key & mask;
	if (o->infinity && !(key & top))
		return ~key & mask;
	return o->sign ? key ^ top : key;
}

typedef struct {
	mr_u64 key;
	mr_i64 at;
} item;

static void insertion(item *x, mr_i64 n)
{
	for (mr_i64 i = 1; i < n; i++) {
		const item it = x[i];
		mr_i64 j = i;
		for (; j > 0 && x[j - 1].key > it.key; j--)
			x[j] = x[j - 1];
		x[j] = it;
	}
}

/* Leaves the items in order in x or y, and returns which. */
static item *radix(item *x, item *y, mr_i64 n, int size)
{
	mr_i64 count[8][256];
	memset(count, 0, (size_t)size * sizeof *count);
	for (mr_i64 i = 0; i < n; i++)
		for (int b = 0; b < size; b++)
			count[b][x[i].key >> 8 * b & 255]++;
	for (int b = 0; b < size; b++) {
		mr_i64 *c = count[b], sum = 0;
		if (c[x[0].key >> 8 * b & 255] == n)
			continue;
		for (int v = 0; v < 256; v++) {
			const mr_i64 here = c[v];
			c[v] = sum;
			sum += here;
		}
		for (mr_i64 i = 0; i < n; i++)
			y[c[x[i].key >> 8 * b & 255]++] = x[i];
		item *swap = x;
		x = y;
		y = swap;
	}
	return x;
}

mr_i64 mr_sort_work(mr_i64 n) { return 2 * n * (mr_i64)sizeof(item); }

void mr_sort(void *out, const void *values, mr_i64 n, int dt, int descending, mr_i64 size, void *work)
{
	const order *o = &orders[dt];
	item *x = work;
	for (mr_i64 i = 0; i < n; i++)
		x[i] = (item){key_of(o, element(values, i, o->size), descending), i};
	if (n <= INSERTION)
		insertion(x, n);
	else
		x = radix(x, x + n, n, o->size);
	for (mr_i64 i = 0; i < n; i++) {
		if (size > 0)
			put(out, i, (int)size, (mr_u64)x[i].at);
		else
			put(out, i, o->size, element_of(o, x[i].key, descending));
	}
}
