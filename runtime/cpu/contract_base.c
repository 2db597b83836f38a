//go:build cgo

/* Contraction kernels for any processor of the architecture. */
#include "contract.h"
#include "tier0_loop.h"
#define MR_C_LEVEL mr_contract_base
#define MR_C_X86 0
#define VB 16
#ifdef __aarch64__
#define MRMAX 12 /* 32 registers */
#else
#define MRMAX 4
#endif
#include "contract_level.h"
