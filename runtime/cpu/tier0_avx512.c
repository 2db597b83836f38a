//go:build cgo

/* Block functions for AVX-512 as servers have had it since Skylake. */
#include "tier0.h"
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#endif
#define MR_T0_FNS mr_t0_fns_avx512
#include "z_block.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
