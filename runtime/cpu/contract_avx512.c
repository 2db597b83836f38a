//go:build cgo

/* Contraction kernels for AVX-512: 32 registers. */
#include "contract.h"
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#include "tier0_loop.h"
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#endif
#define MR_C_LEVEL mr_contract_avx512
#define MR_C_X86 1
#define VB 64
#define MRMAX 14
#include "contract_level.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
