/* The end of isa_avx2.h and isa_avx512.h. GCC's pragma lasts to the end of the
 * file. */
#ifdef __clang__
#pragma clang attribute pop
#endif
