/* Tier 0: block programs, and the functions they call. The structs are the
 * ones of tier0.go, where they are explained. */
#ifndef MR_TIER0_H
#define MR_TIER0_H

#include "abi.h"

enum { MR_T0_GROUP = 64, MR_T0_UNIFORM = MR_T0_GROUP * 8 };
/* Rows of this length and above are walked one by one; shorter ones are
 * gathered, several into a block. */
enum { MR_T0_ROW = 512 };
enum { MR_T0_CONST, MR_T0_SCALAR, MR_T0_LOAD, MR_T0_INDEXLO, MR_T0_INDEXHI, MR_T0_LOADIF, MR_T0_LOADAT, MR_T0_FIRST };
enum { MR_T0_ERROR, MR_T0_CLAMP, MR_T0_DROP }; /* as ir.IndexMode */

typedef struct mr_t0_instr {
	mr_i32 fn;
	mr_i32 dst;
	mr_i32 src[4];
	mr_i32 slot;
	mr_i32 size;
	mr_i32 reg;
	mr_i32 last;
	mr_u64 imm;
} mr_t0_instr;

typedef struct mr_t0_store {
	mr_i32 value;
	mr_i32 slot;
	mr_i32 reduce;
	mr_i32 pad;
} mr_t0_store;

typedef struct mr_t0_val {
	char *p;
	mr_i64 step;
} mr_t0_val;

/* Computes value in->dst from values in->src, groups times 64 elements. */
typedef void (*mr_t0_fn)(const mr_t0_instr *in, const mr_t0_val *v, mr_i64 groups);

/* A block program. Offsets count bytes of the scratch memory. */
typedef struct mr_t0_code {
	const mr_t0_instr *instrs;
	const mr_t0_store *stores;
	const mr_t0_fn *fns;
	mr_i64 ninstrs, nstores, nops;
	mr_i64 block;
	mr_i64 list, flags, uniforms, regs;
} mr_t0_code;

/* The block functions of an ISA level, NULL where this processor or build does
 * not have it. Level 0 always exists. */
const mr_t0_fn *mr_t0_level(int level);
/* Calls one function of a level that exists. */
void mr_t0_call(int level, const mr_t0_instr *in, const mr_t0_val *v, mr_i64 groups);

extern const mr_t0_fn mr_t0_fns_base[], mr_t0_fns_avx2[], mr_t0_fns_avx512[];

/* Where elements are. Copies elements of points [begin, begin+n) between an
 * operand and a dense buffer. at holds the position of point begin in every
 * dim. */
enum { MR_T0_GATHER, MR_T0_SCATTER, MR_T0_POSLO, MR_T0_POSHI };
void mr_t0_move(const mr_args *a, const mr_operand *o, int how, int size, const mr_i64 *at, mr_i64 n, char *buf);

/* Runs a load that looks at every lane: n of them, the first at point at, into
 * a dense buffer. */
void mr_t0_lanes(const mr_args *a, const mr_t0_instr *in, const mr_t0_val *v, const mr_i64 *at, mr_i64 n, char *buf);

#endif
