//go:build cgo

/* The evaluator of block programs. */
#include "tier0.h"
#include "tier0_past.h"

/* How an operand's elements follow each other, for the whole call. */
enum { UNIFORM, LINEAR, STRIDED };

/* An instruction to run for every block. */
typedef struct step {
	mr_i32 instr;
	mr_u8 class; /* of its operand */
	mr_u8 copy;  /* a load that must not stay in the operand's memory */
} step;

typedef struct eval {
	const mr_args *a;
	const mr_t0_code *code;
	mr_t0_val *v;
	char *uniforms, *regs;
	mr_i64 begin;            /* first point of the call */
	mr_i64 p, n;             /* points [p, p+n) are the block */
	mr_i64 groups;
	mr_i64 at[MR_MAX_RANK];  /* position of p, where the walk is by rows or gathers */
	int rows;                /* blocks stay inside a row */
} eval;

static int classify(const mr_args *a, const mr_operand *o) {
	if (o->nstages > 0 || o->guard != 0)
		return STRIDED;
	mr_i64 dense = 1;
	int uniform = 1, linear = 1;
	for (mr_i64 d = a->rank - 1; d >= 0; d--) {
		if (a->dims[d] == 1)
			continue;
		uniform &= o->stride[d] == 0;
		linear &= o->stride[d] == dense;
		dense *= a->dims[d];
	}
	return uniform ? UNIFORM : linear ? LINEAR : STRIDED;
}

static void fill(char *p, mr_i64 size, mr_u64 bits) {
	switch (size) {
	case 1:
		__builtin_memset(p, (int)bits, MR_T0_GROUP);
		return;
	case 2:
		for (int i = 0; i < MR_T0_GROUP; i++)
			((mr_u16 *)p)[i] = (mr_u16)bits;
		return;
	case 4:
		for (int i = 0; i < MR_T0_GROUP; i++)
			((mr_u32 *)p)[i] = (mr_u32)bits;
		return;
	default:
		for (int i = 0; i < MR_T0_GROUP; i++)
			((mr_u64 *)p)[i] = bits;
	}
}

static mr_u64 element(const char *p, mr_i64 size) {
	switch (size) {
	case 1: return *(const mr_u8 *)p;
	case 2: return *(const mr_u16 *)p;
	case 4: return *(const mr_u32 *)p;
	default: return *(const mr_u64 *)p;
	}
}

/* Makes value i one group that holds bits everywhere. */
static void uniform(eval *e, mr_i64 i, mr_u64 bits) {
	char *p = e->uniforms + i * MR_T0_UNIFORM;
	fill(p, e->code->instrs[i].size, bits);
	e->v[i] = (mr_t0_val){p, 0};
}

/* Reports an output in the memory of a loaded operand. Both have the same
 * Access then, so only the order inside a block matters. */
static int overwrites(const eval *e, const mr_t0_store *s, const mr_t0_instr *load) {
	return !s->reduce && e->a->ops[s->slot].base == e->a->ops[load->slot].base;
}

/* Reports a loaded value that is stored while another store writes over its
 * memory: it cannot stay there until its turn comes. */
static int copies(const eval *e, const mr_t0_instr *load) {
	const mr_t0_code *c = e->code;
	if (load->last < c->ninstrs)
		return 0;
	for (mr_i64 i = 0; i < c->nstores; i++)
		if (overwrites(e, &c->stores[i], load))
			return 1;
	return 0;
}

/* Reports a store past the caches. */
static int past(const eval *e, const mr_t0_store *s) {
	return PASSES && !s->reduce && e->a->ops[s->slot].stream;
}

/* Reports a store whose value may be computed straight into memory: a block
 * function makes it, no earlier store has it, and no operand in the same
 * memory is read later. What goes past the caches is computed in one first. */
static int direct(const eval *e, mr_i64 k) {
	const mr_t0_code *c = e->code;
	const mr_t0_store *s = &c->stores[k];
	const mr_t0_instr *in = &c->instrs[s->value];
	if (in->fn < MR_T0_FIRST || e->v[s->value].step == 0 || past(e, s))
		return 0;
	for (mr_i64 i = 0; i < k; i++)
		if (c->stores[i].value == s->value)
			return 0;
	for (mr_i64 i = 0; i < c->ninstrs; i++)
		if (c->instrs[i].fn == MR_T0_LOAD && c->instrs[i].last > s->value && overwrites(e, s, &c->instrs[i]))
			return 0;
	return 1;
}

/* Evaluates what is the same at every point, and lists the rest. */
static mr_i64 prepare(eval *e, const mr_u8 *class, step *list) {
	const mr_t0_code *c = e->code;
	mr_i64 n = 0;
	for (mr_i64 i = 0; i < c->ninstrs; i++) {
		const mr_t0_instr *in = &c->instrs[i];
		const mr_operand *o = &e->a->ops[in->slot];
		char *own = e->uniforms + i * MR_T0_UNIFORM;
		int same = 1;
		switch (in->fn) {
		case MR_T0_CONST:
			uniform(e, i, in->imm);
			continue;
		case MR_T0_SCALAR:
			uniform(e, i, e->a->scalars[in->slot]);
			continue;
		case MR_T0_LOAD:
			same = class[in->slot] == UNIFORM;
			if (same) {
				uniform(e, i, element(o->base + o->offset * in->size, in->size));
				continue;
			}
			break;
		case MR_T0_INDEXLO:
		case MR_T0_INDEXHI:
			same = class[in->slot] == UNIFORM;
			if (same) {
				uniform(e, i, in->fn == MR_T0_INDEXLO ? (mr_u32)o->offset : (mr_u32)((mr_u64)o->offset >> 32));
				continue;
			}
			break;
		case MR_T0_LOADIF:
		case MR_T0_LOADAT:
			break;
		default:
			for (int k = 0; k < 4 && in->src[k] >= 0; k++)
				same &= e->v[in->src[k]].step == 0;
			if (same) {
				e->v[i] = (mr_t0_val){own, 0};
				c->fns[in->fn - MR_T0_FIRST](in, e->v, 1);
				continue;
			}
		}
		e->v[i] = (mr_t0_val){e->regs + in->reg * c->block, in->size * MR_T0_GROUP};
		list[n++] = (step){(mr_i32)i, in->fn < MR_T0_FIRST ? class[in->slot] : 0, in->fn == MR_T0_LOAD && copies(e, in)};
	}
	return n;
}

/* Fills the lanes behind the end of the block, up to the end of its group. */
static void pad(char *reg, mr_i64 n, mr_i64 groups, mr_i64 size) {
	__builtin_memset(reg + n * size, 0, (groups * MR_T0_GROUP - n) * size);
}

static void load(eval *e, const mr_t0_instr *in, int class, int copy) {
	const mr_operand *o = &e->a->ops[in->slot];
	mr_i64 size = in->size, last = e->a->rank - 1;
	mr_t0_val *v = &e->v[in->dst];
	char *reg = e->regs + in->reg * e->code->block;
	char *src = 0;
	if (class == LINEAR) {
		src = o->base + (o->offset + e->p) * size;
	} else if (e->rows && o->nstages == 0 && (o->stride[last] == 1 || o->stride[last] == 0)) {
		mr_i64 pos = o->offset;
		for (mr_i64 d = 0; d <= last; d++)
			pos += e->at[d] * o->stride[d];
		src = o->base + pos * size;
		if (o->stride[last] == 0) {
			uniform(e, in->dst, element(src, size));
			return;
		}
	}
	if (src && !copy && e->n % MR_T0_GROUP == 0) {
		v->p = src;
		return;
	}
	v->p = reg;
	if (src)
		__builtin_memcpy(reg, src, e->n * size);
	else
		mr_t0_move(e->a, o, MR_T0_GATHER, (int)size, e->at, e->n, reg);
	pad(reg, e->n, e->groups, size);
}

static void look(eval *e, const mr_t0_instr *in) {
	char *reg = e->regs + in->reg * e->code->block;
	mr_t0_lanes(e->a, in, e->v, e->at, e->n, reg);
	pad(reg, e->n, e->groups, in->size);
}

static void position(eval *e, const mr_t0_instr *in, int class) {
	const mr_operand *o = &e->a->ops[in->slot];
	char *reg = e->regs + in->reg * e->code->block;
	if (class == LINEAR) {
		mr_u64 pos = (mr_u64)(o->offset + e->p);
		mr_i64 n = e->groups * MR_T0_GROUP;
		int shift = in->fn == MR_T0_INDEXHI ? 32 : 0;
		for (mr_i64 i = 0; i < n; i++)
			((mr_u32 *)reg)[i] = (mr_u32)((pos + (mr_u64)i) >> shift);
		return;
	}
	mr_t0_move(e->a, o, in->fn == MR_T0_INDEXHI ? MR_T0_POSHI : MR_T0_POSLO, 4, e->at, e->n, reg);
	pad(reg, e->n, e->groups, 4);
}

/* Where a store's elements are if the block is dense there, else NULL. */
static char *target(const eval *e, const mr_t0_store *s, const mr_u8 *class) {
	mr_i64 size = e->code->instrs[s->value].size;
	if (s->reduce)
		return (char *)e->a->bufs[s->slot] + (e->p - e->begin) * size;
	const mr_operand *o = &e->a->ops[s->slot];
	if (class[s->slot] != STRIDED) /* UNIFORM: a domain of one point */
		return o->base + (o->offset + e->p) * size;
	mr_i64 last = e->a->rank - 1, pos = o->offset;
	if (!e->rows || o->nstages > 0 || o->guard != 0 || o->stride[last] != 1)
		return 0;
	for (mr_i64 d = 0; d <= last; d++)
		pos += e->at[d] * o->stride[d];
	return o->base + pos * size;
}

static void store(eval *e, const mr_t0_store *s, const mr_u8 *class) {
	mr_i64 size = e->code->instrs[s->value].size, n = e->n;
	const mr_t0_val *v = &e->v[s->value];
	char *dst = target(e, s, class);
	if (dst == v->p)
		return;
	const char *src = v->p;
	if (dst) {
		mr_i64 piece = v->step == 0 ? MR_T0_GROUP : n; /* one group is all there is of a uniform */
		for (mr_i64 i = 0; i < n; i += piece) {
			mr_i64 bytes = (n - i < piece ? n - i : piece) * size;
			if (past(e, s))
				copy_past(dst + i * size, src, bytes);
			else
				__builtin_memcpy(dst + i * size, src, bytes);
		}
		return;
	}
	if (v->step == 0) {
		/* Scattered piecewise: one group is all there is of the value. */
		const mr_operand *o = &e->a->ops[s->slot];
		mr_i64 at[MR_MAX_RANK], last = e->a->rank - 1;
		__builtin_memcpy(at, e->at, sizeof at);
		for (mr_i64 i = 0; i < n; i += MR_T0_GROUP) {
			mr_i64 len = n - i < MR_T0_GROUP ? n - i : MR_T0_GROUP;
			mr_t0_move(e->a, o, MR_T0_SCATTER, (int)size, at, len, (char *)src);
			for (mr_i64 d = last; d >= 0; d--) {
				at[d] += len;
				len = at[d] / e->a->dims[d];
				at[d] -= len * e->a->dims[d];
			}
		}
		return;
	}
	mr_t0_move(e->a, &e->a->ops[s->slot], MR_T0_SCATTER, (int)size, e->at, n, (char *)src);
}

static void run_block(eval *e, const step *list, mr_i64 n) {
	const mr_t0_code *c = e->code;
	for (mr_i64 k = 0; k < n; k++) {
		const mr_t0_instr *in = &c->instrs[list[k].instr];
		if (in->fn >= MR_T0_FIRST)
			c->fns[in->fn - MR_T0_FIRST](in, e->v, e->groups);
		else if (in->fn == MR_T0_LOAD)
			load(e, in, list[k].class, list[k].copy);
		else if (in->fn == MR_T0_LOADIF || in->fn == MR_T0_LOADAT)
			look(e, in);
		else
			position(e, in, list[k].class);
	}
}

/* Moves the position from p to the point n later. */
static void advance(eval *e, mr_i64 n) {
	for (mr_i64 d = e->a->rank - 1; d >= 0 && n > 0; d--) {
		mr_i64 i = e->at[d] + n;
		n = i / e->a->dims[d];
		e->at[d] = i - n * e->a->dims[d];
	}
}

void mr_tier0_eval(const mr_args *a, mr_i64 begin, mr_i64 end) {
	const mr_t0_code *c = a->code;
	char *scratch = a->scratch;
	eval e = {.a = a, .code = c, .v = a->scratch, .uniforms = scratch + c->uniforms, .regs = scratch + c->regs, .begin = begin, .p = begin};
	step *list = (step *)(scratch + c->list);
	mr_u8 *class = (mr_u8 *)(scratch + c->flags), *straight = class + c->nops;
	int linear = 1;
	for (mr_i64 i = 0; i < c->ninstrs; i++) {
		const mr_t0_instr *in = &c->instrs[i];
		if (in->fn == MR_T0_LOAD || in->fn == MR_T0_INDEXLO || in->fn == MR_T0_INDEXHI)
			linear &= (class[in->slot] = (mr_u8)classify(a, &a->ops[in->slot])) != STRIDED;
	}
	for (mr_i64 i = 0; i < c->nstores; i++) {
		const mr_t0_store *s = &c->stores[i];
		if (!s->reduce)
			linear &= (class[s->slot] = (mr_u8)classify(a, &a->ops[s->slot])) != STRIDED;
	}
	for (mr_i64 i = 0; i < c->ninstrs; i++)
		if (c->instrs[i].fn == MR_T0_LOADIF || c->instrs[i].fn == MR_T0_LOADAT)
			linear = 0; /* they need the position */
	mr_i64 n = prepare(&e, class, list);
	for (mr_i64 i = 0; i < c->nstores; i++)
		straight[i] = (mr_u8)direct(&e, i);

	mr_i64 last = a->rank - 1;
	e.rows = !linear && last >= 0 && a->dims[last] >= MR_T0_ROW;
	if (!linear)
		advance(&e, begin);
	for (; e.p < end; e.p += e.n) {
		e.n = end - e.p < c->block ? end - e.p : c->block;
		if (e.rows && e.n > a->dims[last] - e.at[last])
			e.n = a->dims[last] - e.at[last];
		e.groups = (e.n + MR_T0_GROUP - 1) / MR_T0_GROUP;
		for (mr_i64 i = 0; i < c->nstores; i++) {
			const mr_t0_store *s = &c->stores[i];
			if (!straight[i])
				continue;
			char *dst = e.n % MR_T0_GROUP == 0 ? target(&e, s, class) : 0;
			e.v[s->value].p = dst ? dst : e.regs + c->instrs[s->value].reg * c->block;
		}
		run_block(&e, list, n);
		for (mr_i64 i = 0; i < c->nstores; i++)
			store(&e, &c->stores[i], class);
		if (!linear)
			advance(&e, e.n);
	}
}
