/* The functions of contractions in C. They take the frames of codegen/native/dot.go, which makes
 * machine code for the same functions. */
#ifndef MR_CONTRACT_TILES
#define MR_CONTRACT_TILES
#include "../ccode/abi.h"

/* An int64 with Go's alignment. */
typedef mr_i64 mr_word __attribute__((aligned(sizeof(void *))));

typedef struct {
	const char *x, *y;
	char *c, *acc;
	mr_word ldx, ldy, ldc, ldacc, stepy, stepc, k, panels, tail, flags, near, ldnear;
} mr_tile_frame;

typedef struct {
	mr_tile_frame tile;
	const char *columns[16];
} mr_along_frame;

typedef struct {
	const char *rows[16];
	char *dst;
	mr_word lddst, k;
} mr_transpose_frame;

typedef struct {
	const char *src;
	char *dst;
	mr_word ldsrc, panel, full, rest, k;
} mr_panels_frame;

typedef struct {
	const char *x;
	mr_word ld, rows, vectors, than, bits, from, to;
} mr_differs_frame;

typedef struct {
	const char *x;
	mr_word ld, rows, vectors, bits, limit, beyond;
} mr_beyond_frame;

/* Kinds of elements: signed and unsigned integers of a size are the same here. */
enum { MR_DOT_F32, MR_DOT_F64, MR_DOT_I32, MR_DOT_I64 };

/* Flags of a tile: the work before and after its steps, see native.TileFirst. */
enum { MR_TILE_FIRST = 1, MR_TILE_OPEN = 2, MR_TILE_CLOSE = 4 };

/* Numbers of functions. A tile of rows by vecs vectors is MR_DOT_TILE + 16 * rows + vecs; vecs is
 * 0 for the tile of one vector of columns that are dense along k. */
enum { MR_DOT_TRANSPOSE, MR_DOT_PANELS, MR_DOT_DIFFERS, MR_DOT_BEYOND, MR_DOT_TILE };

/* Bytes of a vector, and the most rows of a tile. The rows' chains, a vector of x for each row and
 * two vectors of y must stay in registers, also if a vector takes a register per element. */
#define MR_DOT_BYTES 16
#if defined __aarch64__
#define MR_DOT_ROWS 8
#elif defined __SSE2__ || defined __ALTIVEC__ || defined __VX__
#define MR_DOT_ROWS 4
#else
#define MR_DOT_ROWS 2
#endif

/* 1 if the processor multiplies and adds with one rounding, according to the compiler, else 0. */
#if defined __FP_FAST_FMAF && defined __FP_FAST_FMA || defined __aarch64__ || defined __FMA__ || \
	defined __riscv_flen && __riscv_flen >= 64 || defined __powerpc64__ || defined __s390x__
#define MR_DOT_FLOATS 1
#else
#define MR_DOT_FLOATS 0
#endif

/* Runs a function. The frame contains Go's addresses. It is passed as words to avoid cgo's pointer
 * checks; the caller keeps the memory alive. */
void mr_dot(int element, mr_i64 function, mr_u64 *frame);

#endif
