//go:build cgo

/* Gathers and scatters: operands that are neither dense nor constant.
 *
 * A block is taken apart into rows (points that differ in the last dim only).
 * Along a row an operand's position advances by a fixed step, through every
 * stage of its view as long as no dim of the stage overflows, so all work is
 * done in runs: a first position, a step, a length. */
#include "tier0.h"

#define COPY(T) do { \
	const T *s = (const T *)(o->base) + pos; \
	T *d = (T *)buf + to; \
	for (mr_i64 i = 0; i < n; i++) \
		d[i] = s[i * step]; \
} while (0)

#define PLACE(T) do { \
	T *d = (T *)(o->base) + pos; \
	const T *s = (const T *)buf + to; \
	for (mr_i64 i = 0; i < n; i++) \
		d[i * step] = s[i]; \
} while (0)

typedef struct move {
	const mr_operand *o;
	char *buf;
	int how, size;
} move;

static void copy_run(const move *m, mr_i64 pos, mr_i64 step, mr_i64 n, mr_i64 to) {
	const mr_operand *o = m->o;
	char *buf = m->buf;
	mr_u32 *u = (mr_u32 *)buf + to;
	switch (m->how) {
	case MR_T0_GATHER:
		if (step == 1) {
			__builtin_memcpy(buf + to * m->size, o->base + pos * m->size, n * m->size);
			return;
		}
		switch (m->size) {
		case 1: COPY(mr_u8); return;
		case 2: COPY(mr_u16); return;
		case 4: COPY(mr_u32); return;
		default: COPY(mr_u64); return;
		}
	case MR_T0_SCATTER:
		if (step == 1) {
			__builtin_memcpy(o->base + pos * m->size, buf + to * m->size, n * m->size);
			return;
		}
		switch (m->size) {
		case 1: PLACE(mr_u8); return;
		case 2: PLACE(mr_u16); return;
		case 4: PLACE(mr_u32); return;
		default: PLACE(mr_u64); return;
		}
	case MR_T0_POSLO:
		for (mr_i64 i = 0; i < n; i++)
			u[i] = (mr_u32)((mr_u64)pos + (mr_u64)step * (mr_u64)i);
		return;
	default:
		for (mr_i64 i = 0; i < n; i++)
			u[i] = (mr_u32)(((mr_u64)pos + (mr_u64)step * (mr_u64)i) >> 32);
	}
}

/* Splits a run at the overflows of a stage's dims. */
static void staged_run(const move *m, mr_i32 stage, mr_i64 pos, mr_i64 step, mr_i64 n, mr_i64 to) {
	if (stage == m->o->nstages) {
		copy_run(m, pos, step, n, to);
		return;
	}
	const mr_stage *s = &m->o->stages[stage];
	/* The innermost dim that moves, and by how much. */
	mr_i64 dim = s->rank - 1, move = step;
	while (dim > 0 && move % s->dims[dim] == 0)
		move /= s->dims[dim--];
	while (n > 0) {
		mr_i64 left = pos, out = s->offset, run = n, by = 0;
		for (mr_i64 d = s->rank - 1; d >= 0; d--) {
			mr_i64 i = d > 0 ? left % s->dims[d] : left;
			left = d > 0 ? left / s->dims[d] : 0;
			out += i * s->stride[d];
			if (d != dim || move == 0)
				continue;
			run = move > 0 ? (s->dims[d] - 1 - i) / move + 1 : i / -move + 1;
			by = move * s->stride[d];
		}
		if (run > n)
			run = n;
		if (pos < 0 || run < 1)
			run = 1; /* outside of the stage, as behind a guard: no run there is straight */
		staged_run(m, stage + 1, out, by, run, to);
		pos += run * step;
		to += run;
		n -= run;
	}
}

void mr_t0_move(const mr_args *a, const mr_operand *o, int how, int size, const mr_i64 *at, mr_i64 n, char *buf) {
	move m = {o, buf, how, size};
	mr_i64 last = a->rank - 1;
	if (last < 0) {
		staged_run(&m, 0, o->offset, 0, n, 0);
		return;
	}
	mr_i64 idx[MR_MAX_RANK], row = o->offset;
	for (mr_i64 d = 0; d < last; d++) {
		idx[d] = at[d];
		row += at[d] * o->stride[d];
	}
	mr_u32 outer = o->guard & ~(1u << last), inner = o->guard >> last & 1;
	mr_i64 col = at[last], step = o->stride[last];
	for (mr_i64 to = 0; to < n;) {
		mr_i64 len = a->dims[last] - col;
		if (len > n - to)
			len = n - to;
		int skip = 0;
		for (mr_i64 d = 0; outer >> d; d++)
			skip |= (outer >> d & 1) && idx[d] > 0;
		if (!skip && !inner)
			staged_run(&m, 0, row + col * step, step, len, to);
		else if (!skip && col == 0)
			staged_run(&m, 0, row, 0, 1, to);
		to += len;
		col = 0;
		for (mr_i64 d = last - 1; d >= 0; d--) {
			row += o->stride[d];
			if (++idx[d] < a->dims[d])
				break;
			row -= idx[d] * o->stride[d];
			idx[d] = 0;
		}
	}
}
