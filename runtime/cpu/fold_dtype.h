/* All folds of one dtype: included by fold_table.h with
 *   D                   suffix of the functions
 *   T, U                type of an element, unsigned integer of its size
 *   LEAST, GREATEST     that no element is below or above
 *   ZERO                that a sum starts with
 *   PLUS, TIMES, LARGER, SMALLER (a, b)
 *   S                   type of the images that compare as integers, where there are any
 *   SORT_KEY(x)         unsigned, in the order of sorts
 *   LAST(x)             elements that come last either way */

static void PASTE(result, D, number)(void *out, mr_i64 size, const void *total, mr_i64 n)
{
	(void)size;
	__builtin_memcpy(out, total, (mr_u64)n * sizeof(T));
}

#define OP sum
#define START ZERO
#define COMBINE PLUS
#include "fold_op.h"
#define OP prod
#define START 1
#define COMBINE TIMES
#include "fold_op.h"
#define OP max
#define START LEAST
#define COMBINE LARGER
#ifdef S
#define L S
#define IMAGE(x) PASTE(above, D, image)(x)
#define JOIN INT_LARGER
#define ELEMENT(a) PASTE(above, D, element)(a)
#endif
#include "fold_op.h"
#define OP min
#define START GREATEST
#define COMBINE SMALLER
#ifdef S
#define L S
#define IMAGE(x) PASTE(below, D, image)(x)
#define JOIN INT_SMALLER
#define ELEMENT(a) PASTE(below, D, element)(a)
#endif
#include "fold_op.h"
#define OP argmax
#define KEY(x) (LAST(x) ? (U)~(U)0 : SORT_KEY(x))
#include "fold_arg.h"
#define OP argmin
#define KEY(x) (LAST(x) ? (U)~(U)0 : (U)~SORT_KEY(x))
#include "fold_arg.h"

#undef D
#undef T
#undef U
#undef S
#undef LEAST
#undef GREATEST
#undef ZERO
#undef PLUS
#undef TIMES
#undef LARGER
#undef SMALLER
#undef SORT_KEY
#undef LAST
