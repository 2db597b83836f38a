//go:build cgo

/* Block functions for any processor of the architecture. */
#include "tier0.h"
#include "tier0_loop.h"
#define MR_T0_FNS mr_t0_fns_base
#include "z_block.h"
