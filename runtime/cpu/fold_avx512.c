//go:build cgo

/* Folds for AVX-512 as servers have had it since Skylake. */
#include "abi.h"
#include "isa_avx512.h"
#ifdef MR_ISA_AVX512
#define MR_FOLDS_LEVEL mr_folds_avx512
#include "fold_table.h"
#include "isa_end.h"
#endif
