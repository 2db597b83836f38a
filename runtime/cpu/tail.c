//go:build cgo

/* Rows that end in points which are all alike, as scores do that a mask hides:
 * what a phase makes of one of them it makes of all. */
#include <string.h>

#include "rows.h"

/* A tail is worth it from this many points on. */
#define TAIL (2 * MR_LANES)

/* Whether folding a value a second time changes nothing. */
static int again(const mr_reduce *r, const char *value)
{
	if (r->op != MR_SUM)
		return 1; /* the greatest or the least */
	if (mr_folds_used->dtype[r->dt].size == 4) {
		float f;
		memcpy(&f, value, sizeof f);
		return f == 0 || !(f - f == 0);
	}
	double f;
	memcpy(&f, value, sizeof f);
	return f == 0 || !(f - f == 0);
}

/* Stores in points [n, reduced) of a row what is stored in the one before. */
static void repeat(const rowtile *t, const mr_phase *ph, mr_i64 row, mr_i64 n)
{
	const mr_launch *l = t->x->l;
	for (mr_i64 i = 0; i < ph->stores; i++) {
		const mr_operand *o = t->ops + ph->stored[i].operand;
		const mr_i64 size = ph->stored[i].size;
		mr_i64 at = o->offset + n;
		for (mr_i64 d = l->kept - 1, r = row; d >= 0; d--) {
			at += r % l->args.dims[d] * o->stride[d];
			r /= l->args.dims[d];
		}
		char *p = o->base + at * size, *end = p + (l->reduced - n) * size;
		/* as many as there are lanes are there already; then twice as many */
		for (mr_i64 some = MR_LANES * size; p < end; p += some, some *= 2) {
			if (some > end - p)
				some = end - p;
			memcpy(p, p - some, (size_t)some);
		}
	}
}

static void points(rowtile *t, const mr_phase *ph, mr_i64 strip, mr_i64 from, mr_i64 to)
{
	const mr_i64 base = (t->first + strip) * t->x->l->reduced;
	for (mr_i64 r = from; r < to; r += MR_CHUNK) {
		const mr_i64 m = to - r < MR_CHUNK ? to - r : MR_CHUNK;
		ph->eval(&t->points, base + r, base + r + m);
		for (mr_i64 k = 0; k < ph->nreduce; k++)
			mr_take(t, ph, k, strip, t->bufs[k], 1, r, m);
	}
}

void mr_even_phase(rowtile *t, const mr_phase *ph)
{
	const mr_launch *l = t->x->l;
	for (mr_i64 s = 0; s < t->strips; s++) {
		/* one of the tail's points for every lane is evaluated */
		mr_i64 n = (l->tails[t->first + s] + MR_LANES - 1) / MR_LANES * MR_LANES + MR_LANES;
		if (n + TAIL > l->reduced)
			n = l->reduced;
		mr_start_block(t, ph);
		points(t, ph, s, 0, n);
		int same = n < l->reduced;
		for (mr_i64 k = 0; k < ph->nreduce && same; k++)
			same = again(ph->reduces + k, (char *)t->bufs[k] + (n - 1) % MR_CHUNK * mr_folds_used->dtype[ph->reduces[k].dt].size);
		if (same)
			repeat(t, ph, t->first + s, n);
		else
			points(t, ph, s, n, l->reduced);
		if (ph->nreduce > 0)
			mr_end_block(t, ph, s, 0, l->reduced);
	}
}
