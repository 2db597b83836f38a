package fusion

import "github.com/millrace-go/millrace/ir"

// layouter computes the layout of one step. It has a domain, whose dims reshapes may split, and a
// tracer per operand.
type layouter struct {
	domain  space
	tracers []tracer
	frozen  bool // the domain's dims must not be split
}

// reshape goes to another shape with as many elements. It treats each run of dims with equal
// products alone. Merging dims is always affine. Splitting dims needs their indices as digits, and
// for that a domain dim may have to be split too. If strides cannot express the reshape, it opens a
// stage.
func (l *layouter) reshape(t *tracer, to ir.Shape) error {
	var next [ir.MaxRank]affine
	i, j := 0, 0
	if to.Elems() == 0 {
		i, j = t.rank, len(to) // there is no element, so there is no index
	}
	for {
		for i < t.rank && t.shape[i] == 1 {
			i++
		}
		for j < len(to) && to[j] == 1 {
			j++
		}
		if i == t.rank && j == len(to) {
			break
		}
		i0, j0 := i, j
		p, q := int64(1), int64(1)
		for p == 1 || p != q {
			switch {
			case p <= q && i < t.rank:
				p *= t.shape[i]
				i++
			case p > q && j < len(to):
				q *= int64(to[j])
				j++
			default:
				return errPath
			}
		}
		if !l.regroup(t, &next, i0, i, to, j0, j) {
			return t.restart(to)
		}
	}
	t.rank = len(to)
	for d, n := range to {
		t.shape[d], t.at[d] = int64(n), next[d]
	}
	return nil
}

// regroup expresses dims j0 to j1 of the target by dims i0 to i1 of the current shape. Both runs
// have the same product.
func (l *layouter) regroup(t *tracer, next *[ir.MaxRank]affine, i0, i1 int, to ir.Shape, j0, j1 int) bool {
	if i1-i0 == 1 && j1-j0 == 1 {
		next[j0] = t.at[i0]
		return true
	}
	var whole affine
	rank := t.space().rank
	n := int64(1)
	for d := i1 - 1; d >= i0; d-- {
		whole.addScaled(&t.at[d], n, rank)
		n *= t.shape[d]
	}
	for d := j1 - 1; d > j0; d-- {
		if to[d] == 1 {
			continue
		}
		n /= int64(to[d])
		if n == 1 { // all dims that remain have size 1
			break
		}
		if !l.split(t, next, &whole, &next[d], int64(to[d])) {
			return false
		}
	}
	first := j0
	for to[first] == 1 {
		first++
	}
	next[first] = whole
	return true
}

// split divides f by q: low becomes f mod q, and f becomes the quotient. It is possible if every
// coefficient is either a multiple of q or small, and the small terms together stay below q. A dim
// that fits neither case is split in two.
func (l *layouter) split(t *tracer, next *[ir.MaxRank]affine, f, low *affine, q int64) bool {
	s := t.space()
	if f.idx != 0 {
		return false
	}
	for d := 0; d < s.rank; d++ {
		c := f.c[d]
		if c <= 0 || c%q == 0 || s.dims[d]*c <= q {
			continue
		}
		if q%c != 0 || s.dims[d]%(q/c) != 0 || !l.refine(t, next, f, d, q/c) {
			return false
		}
	}
	var quo, rem affine
	quo.off, rem.off = f.off/q, f.off%q
	most := rem.off
	for d := range s.rank {
		switch c := f.c[d]; {
		case c == 0 || s.dims[d] == 1:
		case c < 0 || f.off < 0:
			return false
		case c%q == 0:
			quo.c[d] = c / q
		default:
			rem.c[d] = c
			most += c * (s.dims[d] - 1)
		}
	}
	if most >= q {
		return false
	}
	*f, *low = quo, rem
	return true
}

// refine splits dim d of the current space in two, the inner one of size n, in all indices that use
// the space. It reports false if the space has no room or its dims must not be split.
func (l *layouter) refine(t *tracer, next *[ir.MaxRank]affine, f *affine, d int, n int64) bool {
	s := t.space()
	if s.rank == len(s.dims) || t.digits == nil && l.frozen {
		return false
	}
	copy(s.dims[d+1:], s.dims[d:s.rank])
	copy(s.reduced[d+1:], s.reduced[d:s.rank])
	s.rank++
	s.dims[d] /= n
	s.dims[d+1] = n
	f.refine(d, n)
	for i := range next {
		next[i].refine(d, n)
	}
	for i := range t.rank {
		t.at[i].refine(d, n)
	}
	if t.digits == nil {
		for i := range l.tracers {
			if o := &l.tracers[i]; o != t {
				o.entry.refine(d, n)
			}
		}
	}
	return true
}

func (a *affine) refine(d int, n int64) {
	copy(a.c[d+1:], a.c[d:len(a.c)-1])
	a.c[d] = a.c[d+1] * n
}
