/* The floating-point environment that all results depend on: round to nearest,
 * and denormals kept or, if flush is set, x86's flush-to-zero and
 * denormals-are-zero. A host program may have set another one on any of its
 * threads. No other processor flushes by the same rule (see ir.Denormals): there
 * flush is never set, and no kernel that flushes runs in C. */
#ifndef MR_FPENV_H
#define MR_FPENV_H

#if defined __SSE2__
typedef unsigned mr_fpenv;
static inline mr_fpenv mr_fpenv_set(int flush)
{
	mr_fpenv saved = __builtin_ia32_stmxcsr();
	__builtin_ia32_ldmxcsr(flush ? 0x9fc0 : 0x1f80);
	return saved;
}
static inline void mr_fpenv_restore(mr_fpenv saved) { __builtin_ia32_ldmxcsr(saved); }
#elif defined __aarch64__
typedef unsigned long mr_fpenv;
static inline mr_fpenv mr_fpenv_set(int flush)
{
	mr_fpenv saved;
	(void)flush;
	__asm__ volatile("mrs %0, fpcr" : "=r"(saved));
	__asm__ volatile("msr fpcr, %0" : : "r"(0UL));
	return saved;
}
static inline void mr_fpenv_restore(mr_fpenv saved) { __asm__ volatile("msr fpcr, %0" : : "r"(saved)); }
#else
#include <fenv.h>
typedef fenv_t mr_fpenv;
static inline mr_fpenv mr_fpenv_set(int flush)
{
	mr_fpenv saved;
	(void)flush;
	fegetenv(&saved);
	fesetenv(FE_DFL_ENV);
	return saved;
}
static inline void mr_fpenv_restore(mr_fpenv saved) { fesetenv(&saved); }
#endif

#endif
