//go:build cgo

/* Block functions for AVX2 with FMA. */
#include "tier0.h"
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define MR_T0_FNS mr_t0_fns_avx2
#include "z_block.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
