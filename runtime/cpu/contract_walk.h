/* Memory that several dims of a contraction's side or result walk over, as
 * windows of images do: stretches along the innermost one, which are copied.
 * Included by contract_level.h before the functions of each element type. */

/* Where a walk is: left positions of the innermost dim are before it moves
 * along another one. */
typedef struct {
	const mr_walk *w;
	mr_i64 at[MR_MAX_RANK];
	mr_i64 offset, left;
} mr_walker;

static inline void mr_walk_to(mr_walker *r, const mr_walk *w, mr_i64 i)
{
	r->w = w;
	r->offset = 0;
	for (mr_i64 d = w->rank - 1; d > 0; d--) {
		r->at[d] = i % w->dims[d];
		i /= w->dims[d];
		r->offset += r->at[d] * w->stride[d];
	}
	r->at[0] = i;
	r->offset += i * w->stride[0];
	r->left = w->dims[w->rank - 1] - r->at[w->rank - 1];
}

/* Goes n positions on, at most those that are left. */
static inline void mr_walk_on(mr_walker *r, mr_i64 n)
{
	const mr_walk *w = r->w;
	mr_i64 d = w->rank - 1;
	r->offset += n * w->stride[d];
	r->left -= n;
	if (r->left > 0)
		return;
	r->left = w->dims[d];
	r->offset -= r->left * w->stride[d];
	while (--d >= 0) {
		r->offset += w->stride[d];
		if (++r->at[d] < w->dims[d])
			return;
		r->offset -= w->dims[d] * w->stride[d];
		r->at[d] = 0;
	}
}

/* The stretches of positions [i, i+n): where each begins, and how long it is. */
typedef struct { mr_i64 offset, n; } mr_stretch;

static inline mr_i64 mr_stretches(mr_stretch *s, const mr_walk *w, mr_i64 i, mr_i64 n)
{
	mr_walker r;
	mr_walk_to(&r, w, i);
	mr_i64 count = 0;
	while (n > 0) {
		const mr_i64 some = n < r.left ? n : r.left;
		s[count++] = (mr_stretch){ r.offset, some };
		n -= some;
		mr_walk_on(&r, some);
	}
	return count;
}

/* The same taken apart where rows of panels end, width positions long and panel apart:
 * to is where in the panels a piece goes. */
typedef struct { mr_i64 to, offset, n; } mr_piece;

static inline mr_i64 mr_pieces(mr_piece *s, const mr_walk *w, mr_i64 i, mr_i64 n, mr_i64 width, mr_i64 panel)
{
	mr_walker r;
	mr_walk_to(&r, w, i);
	mr_i64 count = 0, at = 0;
	while (n > 0) {
		mr_i64 some = n < r.left ? n : r.left;
		if (some > width - at % width)
			some = width - at % width;
		s[count++] = (mr_piece){ at / width * panel + at % width, r.offset, some };
		n -= some;
		at += some;
		mr_walk_on(&r, some);
	}
	return count;
}
