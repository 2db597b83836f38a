package progen

import "github.com/millrace-go/millrace/ir"

func (g *generator) fits(s ir.Shape) bool {
	return len(s) <= ir.MaxRank && s.Check() == nil && s.Elems() <= g.MaxElems
}

// shape makes a shape of any rank: mostly a few small dims, sometimes one longer than a reduction
// block, rarely an empty one.
func (g *generator) shape() ir.Shape {
	if chance(g.source, 10) && g.MaxElems > ir.FoldBlock {
		n := ir.FoldBlock + 1 + g.intn(g.MaxElems-ir.FoldBlock)
		return pick(g.source, []ir.Shape{{n}, {1, n}, {n, 1}, {n / 7, 7}, {2, n / 2}})
	}
	rank := pick(g.source, []int{2, 1, 3, 2, 1, 3, 2, 4, 0, 5, 6, 7, 8})
	s := ir.Shape{}
	for range rank {
		d := pick(g.source, []int{3, 2, 4, 1, 5, 7, 8, 16, 17, 33, 64})
		if rank > 4 {
			d = 1 + d%3
		}
		if chance(g.source, 1) {
			d = 0
		}
		if !g.fits(append(s[:len(s):len(s)], d)) {
			d = 1
		}
		s = append(s, d)
	}
	return s
}

// related makes a shape that broadcasts with s: leading dims dropped, some dims of size 1, rarely
// more dims in front.
func (g *generator) related(s ir.Shape) ir.Shape {
	if chance(g.source, 30) {
		return s
	}
	r := append(ir.Shape{}, s[g.intn(len(s)+1):]...)
	for d := range r {
		if chance(g.source, 30) {
			r[d] = 1
		}
	}
	if len(s) < ir.MaxRank && chance(g.source, 10) {
		r = append(ir.Shape{1}, r...)
	}
	return r
}

// view picks a tensor and a view of it.
func (g *generator) view(op ir.Op, chain int) bool {
	info := op.Info()
	x := g.operand(chain, func(t *tensor) bool { return info.In.Has(t.typ.DT) })
	if x < 0 {
		return false
	}
	t := g.live[x]
	s := t.typ.Shape
	n := ir.Node{Op: op, NArgs: 1, Args: [3]ir.Arg{ir.T(t.id)}}
	switch op {
	case ir.Reshape:
		n.Shape = g.reshaped(s)
	case ir.Expand:
		n.Shape = g.expanded(s)
	case ir.Permute:
		n.Attr = &ir.Attr{Axes: g.order(len(s))}
	case ir.Slice:
		n.Shape, n.Attr = g.sliced(s)
	}
	return g.append(n, []ir.Operand{{DT: t.typ.DT, Shape: s}}, chain, x)
}

// order is a random permutation.
func (g *generator) order(n int) []int {
	p := make([]int, n)
	for i := range p {
		j := g.intn(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}

// reshaped distributes the prime factors of the element count over new dims.
func (g *generator) reshaped(s ir.Shape) ir.Shape {
	n := s.Elems()
	if n == 0 {
		return pick(g.source, []ir.Shape{{0}, {3, 0}, {0, 2}})
	}
	rank := g.intn(ir.MaxRank + 1)
	if n > 1 {
		rank = max(rank, 1)
	}
	if rank > 4 && chance(g.source, 70) {
		rank = 2
	}
	r := make(ir.Shape, rank)
	for d := range r {
		r[d] = 1
	}
	for f := 2; n > 1; {
		if n%f != 0 {
			f++
			continue
		}
		r[g.intn(rank)] *= f
		n /= f
	}
	return r
}

// expanded grows dims of size 1 and puts new ones in front.
func (g *generator) expanded(s ir.Shape) ir.Shape {
	r := append(ir.Shape{}, s...)
	for d := range r {
		if r[d] == 1 {
			was := r[d]
			if r[d] = 1 + g.intn(4); !g.fits(r) {
				r[d] = was
			}
		}
	}
	if len(r) < ir.MaxRank && chance(g.source, 40) {
		if more := append(ir.Shape{1 + g.intn(3)}, r...); g.fits(more) {
			r = more
		}
	}
	return r
}

func (g *generator) sliced(s ir.Shape) (ir.Shape, *ir.Attr) {
	r := make(ir.Shape, len(s))
	attr := &ir.Attr{Start: make([]int, len(s)), Step: make([]int, len(s))}
	for d, n := range s {
		attr.Step[d] = 1
		if n == 0 || chance(g.source, 2) {
			continue // an empty dim
		}
		r[d] = n
		if chance(g.source, 40) {
			continue // the whole dim
		}
		first, last := g.intn(n), g.intn(n)
		step := 1 + g.intn(3)
		attr.Start[d], attr.Step[d], r[d] = first, step, (last-first)/step+1
		if last < first {
			attr.Step[d], r[d] = -step, (first-last)/step+1
		}
	}
	return r, attr
}
