/* What follows is compiled for AVX2 with FMA, where this compiler can:
 * MR_ISA_AVX2 is defined then. isa_end.h ends it. */
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#define MR_ISA_AVX2 1
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#endif
