/* Folds and scans: what a walker does with the values of a row. The order is
 * the one of docs/numerics.md: 64 lanes by index modulo 64, blocks of 4096,
 * one fixed fold, blocks combined in order; scans in blocks of 256. Functions
 * exist for the dtypes that compute, at each ISA level. */
#ifndef MR_FOLD_H
#define MR_FOLD_H

#include "abi.h"

enum { MR_BOOL = 1, MR_U8, MR_I32, MR_I64, MR_U32, MR_U64, MR_F32, MR_F64, MR_I8, MR_I16, MR_U16, MR_F16, MR_BF16, MR_DTYPES }; /* as ir.DType */

enum { MR_SUM, MR_PROD, MR_MAX, MR_MIN, MR_ARGMAX, MR_ARGMIN, MR_FOLDS, MR_SORT = MR_FOLDS, MR_ARGSORT };

#define MR_LANES 64
#define MR_BLOCK 4096
#define MR_SCAN 256

/* One op on one dtype. Columns are rows that lie side by side: element i of
 * column j is values[i*ld + j]. Accumulators are lanes of n columns each. */
typedef struct mr_folder {
	mr_i64 size;  /* bytes of an accumulator of one column */
	mr_i64 lanes; /* accumulators of a column */
	/* Makes the lanes of one column ready. Those of several begin with their
	 * first element. */
	void (*start)(void *acc);
	/* Takes elements r, r+1, … r+m-1 of n columns, all of one block. */
	void (*add)(void *acc, const void *values, mr_i64 r, mr_i64 m, mr_i64 n, mr_i64 ld);
	/* The fixed fold, once so many elements of a block were added: n
	 * accumulators are left in front. */
	void (*finish)(void *acc, mr_i64 elements, mr_i64 n);
	/* Takes the next block into the total. */
	void (*combine)(void *total, const void *block, mr_i64 n);
	/* The results of n columns as numbers; size is of positions. */
	void (*result)(void *out, mr_i64 size, const void *total, mr_i64 n);
	/* Scans elements r to r+m-1 of n columns that lie densely. run and offset
	 * hold a value per column between calls. */
	void (*scan)(void *out, const void *values, void *run, void *offset, mr_i64 r, mr_i64 m, mr_i64 n);
	/* Folds n columns of at most as many elements as there are lanes, m, at
	 * once: each lane is an element, so there is nothing to accumulate. NULL
	 * where accumulators are no numbers. */
	void (*few)(void *out, const void *values, mr_i64 m, mr_i64 n, mr_i64 ld);
	/* Joins n values to elements of base: value k to the one at[k] + k*step from
	 * it, to none where at[k] is negative. */
	void (*into)(void *base, const mr_i64 *at, mr_i64 step, const void *values, mr_i64 n);
} mr_folder;

/* A dtype: what computes it, and how it gets there and back; NULL where it
 * computes itself. */
typedef struct mr_dtype {
	mr_i64 size;
	mr_i64 compute;
	void (*widen)(void *to, const void *from, mr_i64 n);
	void (*narrow)(void *to, const void *from, mr_i64 n);
} mr_dtype;

/* An ISA level. */
typedef struct mr_folds {
	mr_folder fold[MR_FOLDS][MR_DTYPES];
	mr_dtype dtype[MR_DTYPES];
} mr_folds;

extern const mr_folds mr_folds_base, mr_folds_avx2, mr_folds_avx512;

/* The level in use, and its choice: before the first launch, and only once. */
extern const mr_folds *mr_folds_used;
void mr_folds_use(int level);

/* Sorts n elements of a dtype in the total order of docs/numerics.md. Position
 * i gets the element's value, or, where size is above 0, its index as an
 * integer of that size. work is of mr_sort_work(n) bytes. */
void mr_sort(void *out, const void *values, mr_i64 n, int dt, int descending, mr_i64 size, void *work);
mr_i64 mr_sort_work(mr_i64 n);

#endif
