//go:build cgo

/* Contraction kernels for AVX2 with FMA: 16 registers. */
#include "contract.h"
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define MR_C_LEVEL mr_contract_avx2
#define MR_C_X86 1
#define VB 32
#define MRMAX 6
#include "contract_level.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
