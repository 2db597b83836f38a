//go:build cgo

/* Contraction kernels for AVX-512: 32 registers. */
#include "contract.h"
#include "isa_avx512.h"
#ifdef MR_ISA_AVX512
#define MR_C_LEVEL mr_contract_avx512
#define MR_C_X86 1
#define VB 64
#define MRMAX 14
#include "contract_level.h"
#include "isa_end.h"
#endif
