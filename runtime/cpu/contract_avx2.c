//go:build cgo

/* Contraction kernels for AVX2 with FMA: 16 registers. */
#include "contract.h"
#include "isa_avx2.h"
#ifdef MR_ISA_AVX2
#define MR_C_LEVEL mr_contract_avx2
#define MR_C_X86 1
#define VB 32
#define MRMAX 6
#include "contract_level.h"
#include "isa_end.h"
#endif
