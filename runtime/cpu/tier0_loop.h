/* How every level compiles z_block.h. GCC vectorises a loop around sqrt or
 * floor only where no errno and no trap can be asked for, and cgo refuses the
 * flags that say so; the pragma may. Contraction is off twice: by -std=c11 and
 * here, or by the standard pragma, which clang heeds. */
#if defined __clang__
#pragma STDC FP_CONTRACT OFF
#define MR_T0_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#pragma GCC optimize("no-trapping-math", "no-math-errno", "fp-contract=off")
#define MR_T0_LOOP _Pragma("GCC ivdep")
#endif
