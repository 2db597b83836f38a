//go:build cgo

/* Which ISA levels of the block functions this build and processor have. */
#include "tier0.h"

#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
#define X86 1
#endif

const mr_t0_fn *mr_t0_level(int level) {
	switch (level) {
	case 0:
		return mr_t0_fns_base;
#ifdef X86
	case 1:
		__builtin_cpu_init();
		if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
			return mr_t0_fns_avx2;
		return 0;
	case 2:
		__builtin_cpu_init();
		if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
		    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
			return mr_t0_fns_avx512;
		return 0;
#endif
	}
	return 0;
}

void mr_t0_call(int level, const mr_t0_instr *in, const mr_t0_val *v, mr_i64 groups) {
	mr_t0_level(level)[in->fn - MR_T0_FIRST](in, v, groups);
}
