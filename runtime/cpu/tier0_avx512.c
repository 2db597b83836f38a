//go:build cgo

/* Block functions for AVX-512 as servers have had it since Skylake. */
#include "tier0.h"
#include "isa_avx512.h"
#ifdef MR_ISA_AVX512
#define MR_T0_FNS mr_t0_fns_avx512
#include "z_block.h"
#include "isa_end.h"
#endif
