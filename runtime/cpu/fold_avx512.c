//go:build cgo

/* Folds for AVX-512 as servers have had it since Skylake. */
#include "abi.h"
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#endif
#define MR_FOLDS_LEVEL mr_folds_avx512
#include "fold_table.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
