/* The functions of tiles.c for one kind of element. It is included with
 *   T         the element's type
 *   INT       for integers: the signed type of the same size
 *   NAME      suffix of the functions
 *   STEPS     STEP for each lane of a vector
 *   SQUARE    transposes a square of vectors: as many vectors as one has lanes
 *   FMA(s, y, x, l)   adds y times lane l of x to s */

typedef T PASTE(scalar, NAME) __attribute__((may_alias));
typedef T PASTE(v, NAME) __attribute__((vector_size(MR_DOT_BYTES), aligned(sizeof(T)), may_alias));
#define S PASTE(scalar, NAME)
#define V PASTE(v, NAME)
#define L ((int)(MR_DOT_BYTES / sizeof(T)))

#define EACH_ROW _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++)
#define EACH_VEC _Pragma("GCC unroll 8") for (int j = 0; j < vecs; j++)

/* One step of k: it uses lane l of the vectors read from the rows of x. */
#define STEP(l) { \
		V b[8] = {square[l]}; \
		if (!columns) { \
			EACH_VEC b[j] = *(const V *)(y + j * MR_DOT_BYTES); \
			y += f->ldy; \
		} \
		EACH_ROW EACH_VEC FMA(s[i][j], b[j], a[i], l); \
	}

/* A tile of one panel; of its last vectors only tail columns are stored in c. If columns is set,
 * the tile is one vector of these columns, which are read in squares, and k is a multiple of the
 * lanes. */
INLINE void PASTE(panel, NAME)(const mr_tile_frame *f, const int rows, const int vecs, const char *y, char *c, char *acc, mr_i64 tail, const char *const *columns)
{
	const char *x[MR_DOT_ROWS];
	V s[MR_DOT_ROWS][8], a[MR_DOT_ROWS], square[L] = {0};
	EACH_ROW x[i] = f->x + i * f->ldx;
	if (f->flags & MR_TILE_OPEN)
		EACH_ROW EACH_VEC s[i][j] = (V){0};
	else
		EACH_ROW EACH_VEC s[i][j] = *(const V *)(acc + i * f->ldacc + j * MR_DOT_BYTES);
	mr_i64 k = f->k;
	for (mr_i64 at = 0; k >= L; k -= L, at += MR_DOT_BYTES) {
		EACH_ROW a[i] = *(const V *)x[i];
		EACH_ROW x[i] += MR_DOT_BYTES;
		if (columns) {
			_Pragma("GCC unroll 4") for (int l = 0; l < L; l++) square[l] = *(const V *)(columns[l] + at);
			SQUARE(square)
		}
		STEPS
	}
	for (; k > 0; k--) {
		EACH_ROW a[i] = (V){*(const S *)x[i]};
		EACH_ROW x[i] += sizeof(T);
		STEP(0)
	}
	const int first = f->flags & MR_TILE_FIRST;
	if (!(f->flags & MR_TILE_CLOSE))
		EACH_ROW EACH_VEC *(V *)(acc + i * f->ldacc + j * MR_DOT_BYTES) = s[i][j];
	else
		/* The first block is added to +0, not copied: a chain may end at -0, by underflow. */
		EACH_ROW EACH_VEC {
			char *to = c + i * f->ldc + j * MR_DOT_BYTES;
			const V sum = s[i][j];
			if (j < vecs - 1 || tail == L)
				*(V *)to = (first ? (V){0} : *(V *)to) + sum;
			else
				for (mr_i64 l = 0; l < tail; l++)
					((S *)to)[l] = (first ? 0 : ((S *)to)[l]) + sum[l];
		}
}

INLINE void PASTE(panels, NAME)(const mr_tile_frame *f, const int rows, const int vecs)
{
	for (mr_i64 i = 0; i < f->panels; i++) {
		const mr_i64 c = i * f->stepc;
		PASTE(panel, NAME)(f, rows, vecs, f->y + i * f->stepy, f->c + c, f->acc + c, i == f->panels - 1 ? f->tail : L, 0);
	}
}

#define TILE(rows, vecs) \
	case 16 * rows + vecs: \
		PASTE(panels, NAME)(f, rows, vecs); \
		break;
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define ALONG(rows) \
	case 16 * rows: \
		PASTE(panel, NAME)(f, rows, 1, 0, f->c, f->acc, f->tail, ((const mr_along_frame *)f)->columns); \
		break;

/* Tiles of few rows are wide: in narrower ones each step would wait for the step before. */
static void PASTE(tile, NAME)(mr_i64 form, const mr_tile_frame *f)
{
	switch (form) {
	TILES(1) TILES(2) ALONG(1) ALONG(2)
#if MR_DOT_ROWS >= 4
	TILES(3) TILES(4) ALONG(3) ALONG(4) TILE(1, 8) TILE(2, 4) TILE(3, 4)
#endif
#if MR_DOT_ROWS >= 8
	TILES(5) TILES(6) TILES(7) TILES(8)
#endif
	}
}

#ifdef INT
static void PASTE(beyond, NAME)(mr_beyond_frame *f)
{
	typedef INT bits __attribute__((vector_size(MR_DOT_BYTES), aligned(sizeof(T)), may_alias));
	bits found = {0};
	for (mr_i64 i = 0; i < f->rows; i++)
		for (mr_i64 v = 0; v < f->vectors; v++)
			found |= (*(const bits *)(f->x + i * f->ld + v * MR_DOT_BYTES) & (INT)f->bits) > (INT)f->limit;
	for (int l = 0; l < L; l++)
		f->beyond |= found[l];
}
#endif

#undef ALONG
#undef TILES
#undef TILE
#undef STEP
#undef EACH_VEC
#undef EACH_ROW
#undef L
#undef V
#undef S
#undef SQUARE
#undef STEPS
#undef FMA
#undef NAME
#undef INT
#undef T
