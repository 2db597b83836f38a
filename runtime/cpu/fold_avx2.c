//go:build cgo

/* Folds for AVX2 with FMA. */
#include "abi.h"
#include "isa_avx2.h"
#ifdef MR_ISA_AVX2
#define MR_FOLDS_LEVEL mr_folds_avx2
#include "fold_table.h"
#include "isa_end.h"
#endif
