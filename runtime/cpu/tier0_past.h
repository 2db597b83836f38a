/* Copies that go past the caches. Whoever tells other threads of them waits for
 * such stores: mr_streamed of run.h. */
#ifndef MR_TIER0_PAST_H
#define MR_TIER0_PAST_H

#include "abi.h"

#if defined __clang__ || defined __SSE2__
typedef long long past_vec __attribute__((vector_size(16), may_alias));
enum { PASSES = 1 };

static inline void store_past(past_vec *p, past_vec x) {
#if defined __clang__
	__builtin_nontemporal_store(x, p);
#else
	__builtin_ia32_movntdq(p, x);
#endif
}

/* Whole lines go past them, where dst is at the beginning of one. */
static inline void copy_past(char *dst, const char *src, mr_i64 bytes) {
	mr_i64 i = 0;
	if (((__UINTPTR_TYPE__)dst & 63) == 0)
		for (; i + 64 <= bytes; i += 64)
			for (int k = 0; k < 64; k += 16) {
				past_vec x;
				__builtin_memcpy(&x, src + i + k, sizeof x);
				store_past((past_vec *)(dst + i + k), x);
			}
	__builtin_memcpy(dst + i, src + i, bytes - i);
}
#else /* nothing says so there: stores are as they are */
enum { PASSES = 0 };

static inline void copy_past(char *dst, const char *src, mr_i64 bytes) {
	__builtin_memcpy(dst, src, bytes);
}
#endif

#endif
