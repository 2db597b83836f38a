//go:build cgo

/* Folds for any processor of the architecture, and the choice of a level. */
#include "tier0_loop.h"
#define MR_FOLDS_LEVEL mr_folds_base
#include "fold_table.h"

const mr_folds *mr_folds_used = &mr_folds_base;

void mr_folds_use(int level)
{
	const mr_folds *used = &mr_folds_base;
#if (defined __x86_64__ || defined __i386__) && defined __GNUC__
	if (level == 1)
		used = &mr_folds_avx2;
	if (level == 2)
		used = &mr_folds_avx512;
#endif
	mr_folds_used = used;
}
