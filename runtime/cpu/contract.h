/* The contraction engine: c[b,i,j] = sum over p of x[b,i,p] * y[b,p,j].
 *
 * For each output the k range is cut into blocks of MR_CK; a block is a chain
 * c = fma(x, y, c) in ascending p that starts at +0, and the block results are
 * added in order to a total that starts at +0. Integers multiply and add,
 * wrapping. How m, n and the batch are cut into tiles and shared out among
 * threads does not enter: an output has the same bits whatever surrounds it. */
#ifndef MR_CONTRACT_H
#define MR_CONTRACT_H

#include "run.h"
#include "tier0.h"

#define MR_CK 256

/* Numbers up to 2^40 are small; a chain of MR_CK products of such, rounding
 * included, stays below 2^89. */
#define MR_C_SMALL 0x1p40f
#define MR_C_SMALL_SUM 0x1p89f

/* Element types. Signed and unsigned integers have the same results. */
enum { MR_C_F32 = 0, MR_C_F64, MR_C_I8, MR_C_I16, MR_C_I32, MR_C_I64, MR_C_TYPES };

/* What an element of a mask is that hides a result: -inf, in the type of the
 * results, or a byte. */
enum { MR_MASK_INF = 0, MR_MASK_TRUE, MR_MASK_FALSE };

/* Where the elements of a side are. Side x is indexed by rows i in [0, m),
 * side y by columns i in [0, n); both by p in [0, k). */
enum {
	/* In memory: element (i, p) of a batch is at base + (batch's offset +
	 * i*stride + p*kstride) elements. */
	MR_SIDE_MEM = 0,
	/* From fill, which writes runs along k: element (i, p) of the block goes to
	 * dst[(i-i0)*ld + (p-p0)]. */
	MR_SIDE_FILL_K,
	/* From fill, which writes runs along i: element (i, p) of the block goes to
	 * dst[(p-p0)*ld + (i-i0)]. */
	MR_SIDE_FILL_I
};

/* Computes elements i in [i0, i1), p in [p0, p1) of a batch. Called by any
 * thread of the pool, who being its number, for blocks in any order and for
 * some of them more than once; p0 is a multiple of 8, and a block holds at most
 * MR_C_FILL elements. */
typedef void (*mr_fill)(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 ld);
#define MR_C_FILL 8192

/* The same for side y, as panels of nr columns: element (i, p) goes to
 * dst[(i-i0)/nr*panel + (p-p0)*nr + (i-i0)%nr], and zeros where there are no more
 * columns. A block has at most MR_C_PANELS_COLUMNS columns. */
typedef void (*mr_fill_panels)(void *ctx, int who, mr_i64 batch, mr_i64 i0, mr_i64 i1, mr_i64 p0, mr_i64 p1, void *dst, mr_i64 panel);
#define MR_C_PANELS_COLUMNS 256

typedef struct mr_side {
	mr_i64 kind;
	const void *base;
	mr_i64 stride, kstride;          /* in elements */
	mr_i64 batch[MR_MAX_RANK];       /* stride of each batch dim, in elements; MR_SIDE_MEM only */
	mr_fill fill;
	mr_fill_panels panels;           /* MR_SIDE_FILL_I only; NULL: none */
	void *ctx;
} mr_side;

/* A group of dims, at least one, the last one innermost: position i of it is at
 * the sum of strides, in elements, of its places in the dims. */
typedef struct mr_walk {
	mr_i64 rank;
	mr_i64 dims[MR_MAX_RANK];
	mr_i64 stride[MR_MAX_RANK];
} mr_walk;

/* The most positions of the inner group that walk and unwalk take at once. */
#define MR_C_WALK 1024

/* Takes a finished tile: element (i, j) of rows [row0, row0+rows), columns
 * [col0, col0+cols) is at tile[(i-row0)*ld + (j-col0)]. Called once for every
 * output, by the thread that computed the tile, which is in its cache. The tile
 * may be written to. */
typedef void (*mr_drain)(void *ctx, int who, mr_i64 batch, mr_i64 row0, mr_i64 rows, mr_i64 col0, mr_i64 cols, void *tile, mr_i64 ld);

/* Where y stays packed from one run to the next: tiles of one product have it
 * in common. The memory is the engine's. */
typedef struct mr_packed {
	mr_i64 same;  /* y is what it was in the run before with this; set by the caller */
	mr_i64 full;  /* p holds that run's y */
	mr_i64 size;  /* of p */
	void *p;
} mr_packed;

void mr_packed_free(mr_packed *k);

typedef struct mr_contract {
	mr_i64 m, n, k;
	mr_i64 type;
	mr_i64 rank;                     /* of the batch */
	mr_i64 dims[MR_MAX_RANK];        /* of the batch; batches are numbered row-major */
	mr_i64 threads;                  /* at most so many; 0: all of the pool */
	mr_i64 wide, high;               /* powers of two by which tiles are wider or higher than chosen here: -1, 0 or 1 */
	mr_i64 work;                     /* what one fill or drain of an element costs, in multiplications; 0 where nothing is known */
	mr_side x, y;
	mr_packed *stays;                 /* NULL where the next run has another y */
	/* Element (i, j) is at mask + i*maskrow + j, for contractions without
	 * batches: where it says so, nobody sees whether the result is what it is or
	 * +0. With masksmall that holds of results that are no more than
	 * MR_C_SMALL_SUM, else of any. NULL where all results matter. */
	const void *mask;
	mr_i64 maskrow, maskkind, masksmall;
	/* Where not NULL, tails[i] is lowered from n to the column from which on all
	 * results of row i are such zeros, on one thread. */
	mr_i64 *tails;
	mr_i64 *hidden;                  /* where not NULL, the number of such zeros is added to it, on one thread */
	/* The sink: drain, or where it is NULL memory: element (i, j) of a batch is
	 * at out + (batch's offset + i*outrow + j) elements. */
	mr_drain drain;
	void *ctx;
	void *out;
	mr_i64 outrow;
	mr_i64 outbatch[MR_MAX_RANK];
} mr_contract;

/* Runs a contraction with the functions of an ISA level that mr_contract_level
 * has. One call at a time per pool, under the floating-point environment of
 * fpenv.h. Uses mr_scratch of every thread and of the job, so a fill or drain
 * needs memory of its own. Returns 0, or -1 where scratch memory is refused. */
int mr_contract_run(mr_pool *p, const mr_contract *c, int level);

/* The functions of one level and element type. Matrices passed to them have
 * elements of that type; strides count elements. */
typedef struct mr_kernels {
	mr_i32 size;  /* bytes of an element */
	mr_i32 lanes; /* of a vector */
	mr_i32 nr;    /* columns of a panel of y: two vectors */
	mr_i32 mr;    /* most rows of tile */

	/* Adds rows times vecs vectors of outputs: x is rows by k with row stride
	 * ldx, y is k by columns with row stride ldy. flags say where the chains
	 * begin and end. vecs is 1 or 2; for one row also 8, for two also 4. */
	void (*tile)(mr_i64 rows, mr_i64 vecs, const void *x, mr_i64 ldx, const void *y, mr_i64 ldy, mr_i64 k, void *acc, void *c, mr_i64 ldc, int flags);
	/* dst[j*ldd + i] = src[i*lds + j] for i < rows, j < cols. */
	void (*transpose)(void *dst, mr_i64 ldd, const void *src, mr_i64 lds, mr_i64 rows, mr_i64 cols);
	/* dst[i*ldd + j] = src[i*rs + j*cs]. */
	void (*gather)(void *dst, mr_i64 ldd, const void *src, mr_i64 rs, mr_i64 cs, mr_i64 rows, mr_i64 cols);
	/* dst[(o-o0)*ldd + (i-i0)] = src[o of outer + i of inner]. */
	void (*walk)(void *dst, mr_i64 ldd, const void *src, const mr_walk *outer, mr_i64 o0, mr_i64 o1, const mr_walk *inner, mr_i64 i0, mr_i64 i1);
	/* The same as mr_fill_panels, o being a row of the panels. */
	void (*walk_panels)(void *dst, mr_i64 panel, const void *src, const mr_walk *outer, mr_i64 o0, mr_i64 o1, const mr_walk *inner, mr_i64 i0, mr_i64 i1);
	/* dst[o of outer + i of inner] = src[(o-o0)*lds + (i-i0)]. */
	void (*unwalk)(void *dst, const void *src, mr_i64 lds, const mr_walk *outer, mr_i64 o0, mr_i64 o1, const mr_walk *inner, mr_i64 i0, mr_i64 i1);
	/* [*from, *to) holds all p in [0, k) where x, rows by k with row stride
	 * ldx, has anything but zeros. */
	void (*extent)(const void *x, mr_i64 ldx, mr_i64 rows, mr_i64 k, mr_i64 *from, mr_i64 *to);
	/* Whether n elements, a multiple of nr, are finite: NULL where all are. */
	int (*finite)(const void *y, mr_i64 n);
	/* [*from, *to) holds all columns of m, rows by n with row stride ldm, that
	 * have anything but -inf; NULL where there is no -inf. */
	void (*unmasked)(const void *m, mr_i64 ldm, mr_i64 rows, mr_i64 n, mr_i64 *from, mr_i64 *to);
	/* Whether all of x, rows by k with row stride ldx, is small; NULL with
	 * unmasked. */
	int (*small_all)(const void *x, mr_i64 ldx, mr_i64 rows, mr_i64 k);
	/* A whole small contraction without panels; in vectors where yj is 1. */
	void (*small)(mr_i64 m, mr_i64 n, mr_i64 k, const void *x, mr_i64 xi, mr_i64 xk, const void *y, mr_i64 yj, mr_i64 yk, void *c, mr_i64 ldc);
	/* tile of one vector of columns, from a y whose columns lie along k, ldy apart;
	 * k is at least lanes, and the chains begin and end here. NULL where tile on
	 * what transpose makes takes no longer. */
	void (*along)(mr_i64 rows, const void *x, mr_i64 ldx, const void *y, mr_i64 ldy, mr_i64 k, void *c, mr_i64 ldc, int flags);
} mr_kernels;

enum {
	MR_C_FIRST = 1, /* c is +0 so far and not read */
	MR_C_OPEN = 2,  /* the chains begin here; else they go on from acc */
	MR_C_CLOSE = 4  /* the chains end here and are added to c; else they are kept in acc */
};

/* unmasked of a mask of bytes, which are 0 and 1: [*from, *to) holds all columns
 * that have another byte than hides. */
void mr_unmasked_bytes(const char *m, mr_i64 ldm, mr_i64 rows, mr_i64 n, int hides, mr_i64 *from, mr_i64 *to);

/* MR_C_TYPES of them, or NULL where this processor or build does not have the
 * level. Levels are those of mr_t0_level; level 0 always exists. */
const mr_kernels *mr_contract_level(int level);

extern const mr_kernels mr_contract_base[], mr_contract_avx2[], mr_contract_avx512[];

#endif
