//go:build cgo

/* Block functions for AVX2 with FMA. */
#include "tier0.h"
#include "isa_avx2.h"
#ifdef MR_ISA_AVX2
#define MR_T0_FNS mr_t0_fns_avx2
#include "z_block.h"
#include "isa_end.h"
#endif
