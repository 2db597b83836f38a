/* The floating-point environment that numerics rest on: round to nearest, no
 * flush to zero. A host may have set another one on any of its threads. */
#ifndef MR_FPENV_H
#define MR_FPENV_H

#if defined __SSE2__
typedef unsigned mr_fpenv;
static inline mr_fpenv mr_fpenv_set(void)
{
	mr_fpenv saved = __builtin_ia32_stmxcsr();
	__builtin_ia32_ldmxcsr(0x1f80);
	return saved;
}
static inline void mr_fpenv_restore(mr_fpenv saved) { __builtin_ia32_ldmxcsr(saved); }
#elif defined __aarch64__
typedef unsigned long mr_fpenv;
static inline mr_fpenv mr_fpenv_set(void)
{
	mr_fpenv saved;
	__asm__ volatile("mrs %0, fpcr" : "=r"(saved));
	__asm__ volatile("msr fpcr, %0" : : "r"(0UL));
	return saved;
}
static inline void mr_fpenv_restore(mr_fpenv saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }
#else
#include <fenv.h>
typedef fenv_t mr_fpenv;
static inline mr_fpenv mr_fpenv_set(void)
{
	mr_fpenv saved;
	fegetenv(&saved);
	fesetenv(FE_DFL_ENV);
	return saved;
}
static inline void mr_fpenv_restore(mr_fpenv saved) { fesetenv(&saved); }
#endif

#endif
