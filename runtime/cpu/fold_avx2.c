//go:build cgo

/* Folds for AVX2 with FMA. */
#include "abi.h"
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define MR_FOLDS_LEVEL mr_folds_avx2
#include "fold_table.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
