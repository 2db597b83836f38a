/* What follows is compiled for AVX-512 as servers have had it since Skylake,
 * where this compiler can: MR_ISA_AVX512 is defined then. isa_end.h ends it. */
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#define MR_ISA_AVX512 1
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#endif
#endif
