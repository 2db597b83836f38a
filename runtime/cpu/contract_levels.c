//go:build cgo

#include <stddef.h>

#include "contract.h"

const mr_kernels *mr_contract_level(int level)
{
	if (!mr_t0_level(level))
		return NULL;
	switch (level) {
	case 0:
		return mr_contract_base;
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
	case 1:
		return mr_contract_avx2;
	case 2:
		return mr_contract_avx512;
#endif
	}
	return NULL;
}
