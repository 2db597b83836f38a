package progen

import "github.com/millrace-go/millrace/ir"

// positions picks the dtype of a result that is a position; for other ops the operand determines
// it.
func (g *generator) positions(op ir.Op) (ir.DType, bool) {
	if !op.Info().Position {
		return ir.Invalid, true
	}
	return g.dtype(ir.IndexDTypes)
}

func (g *generator) reduce(op ir.Op, chain int) bool {
	info := op.Info()
	x := g.operand(chain, func(t *tensor) bool { return info.In.Has(t.typ.DT) })
	dt, ok := g.positions(op)
	if x < 0 || !ok {
		return false
	}
	return g.node(ir.Node{Op: op, DT: dt, Attr: g.axes(len(g.live[x].typ.Shape))}, chain, nil, x) >= 0
}

// axes picks the axes of a reduction.
func (g *generator) axes(rank int) *ir.Attr {
	attr := &ir.Attr{Axes: []int{}, Keep: chance(g.source, 40)}
	all := chance(g.source, 30)
	for d := range rank {
		if all || chance(g.source, 50) {
			attr.Axes = append(attr.Axes, d)
		}
	}
	return attr
}

// along appends a scan or a sort.
func (g *generator) along(op ir.Op, chain int) bool {
	info := op.Info()
	x := g.operand(chain, func(t *tensor) bool { return info.In.Has(t.typ.DT) && len(t.typ.Shape) > 0 })
	dt, ok := g.positions(op)
	if x < 0 || !ok {
		return false
	}
	attr := &ir.Attr{Axes: []int{g.intn(len(g.live[x].typ.Shape))}}
	if info.Attrs.Has(ir.AttrDescending) {
		attr.Descending = chance(g.source, 40)
	}
	return g.node(ir.Node{Op: op, DT: dt, Attr: attr}, chain, nil, x) >= 0
}

// contraction multiplies two tensors that share a dim, like a product of matrices: both get the
// common shape (batch, m, n, k), and the last dim is contracted. Rarely it takes two tensors of one
// shape unchanged.
func (g *generator) contraction(op ir.Op, chain int) bool {
	info := op.Info()
	x := g.operand(chain, func(t *tensor) bool { return info.In.Has(t.typ.DT) && len(t.typ.Shape) > 0 })
	if x < 0 {
		return false
	}
	tx := g.live[x].typ
	if chance(g.source, 20) {
		y := g.operand(chain, func(t *tensor) bool { return t.typ.DT == tx.DT && t.typ.Shape.Equal(tx.Shape) })
		return g.node(ir.Node{Op: op, Attr: g.axes(len(tx.Shape))}, chain, nil, x, y) >= 0
	}
	kx := g.intn(len(tx.Shape))
	k := tx.Shape[kx]
	y := g.operand(chain, func(t *tensor) bool { return t.typ.DT == tx.DT && dimOf(t.typ.Shape, k) >= 0 })
	ty := g.live[y].typ
	ky := dimOf(ty.Shape, k)
	m, n := without(tx.Shape, kx), without(ty.Shape, ky)
	batch := 0
	if len(m) > 0 && len(n) > 0 && m[0] == n[0] && chance(g.source, 40) {
		batch = 1
	}
	shape := append(append(m[:len(m):len(m)], n[batch:]...), k)
	if !g.fits(shape) {
		return false
	}
	// x lacks the dims of n, y those of m.
	x = g.seenAs(x, kx, shape, batch+len(m[batch:]), len(n)-batch, chain)
	y = g.seenAs(y, ky, shape, batch, len(m)-batch, chain)
	if x < 0 || y < 0 {
		return false
	}
	attr := &ir.Attr{Axes: []int{len(shape) - 1}, Keep: chance(g.source, 20)}
	return g.node(ir.Node{Op: op, Attr: attr}, chain, nil, x, y) >= 0
}

// seenAs views a tensor in a shape: its dim k last, and missing dims from position at on. A tensor
// that already has the shape is unchanged.
func (g *generator) seenAs(x, k int, shape ir.Shape, at, missing, chain int) int {
	rank := len(g.live[x].typ.Shape)
	order := make([]int, 0, rank)
	for d := range rank {
		if d != k {
			order = append(order, d)
		}
	}
	if order = append(order, k); k != rank-1 {
		x = g.node(ir.Node{Op: ir.Permute, Attr: &ir.Attr{Axes: order}}, chain, nil, x)
	}
	if x < 0 || missing == 0 {
		return x
	}
	s := g.live[x].typ.Shape
	with := append(ir.Shape{}, s[:at]...)
	for range missing {
		with = append(with, 1)
	}
	with = append(with, s[at:]...)
	if x = g.node(ir.Node{Op: ir.Reshape, Shape: with}, chain, nil, x); x < 0 {
		return x
	}
	return g.node(ir.Node{Op: ir.Expand, Shape: shape}, chain, nil, x)
}

// dimOf is the last dim of size n, or -1.
func dimOf(s ir.Shape, n int) int {
	for d := len(s) - 1; d >= 0; d-- {
		if s[d] == n {
			return d
		}
	}
	return -1
}

// without removes dim d.
func without(s ir.Shape, d int) ir.Shape {
	return append(append(ir.Shape{}, s[:d]...), s[d+1:]...)
}

// window views an axis through windows that may overlap.
func (g *generator) window(op ir.Op, chain int) bool {
	x := g.operand(chain, func(t *tensor) bool { return len(t.typ.Shape) > 0 && len(t.typ.Shape) < ir.MaxRank })
	if x < 0 {
		return false
	}
	s := g.live[x].typ.Shape
	a := g.intn(len(s))
	stride, dilation, k := 1+g.intn(3), 1+g.intn(2), 1+g.intn(4)
	out := 0
	if span := (k-1)*dilation + 1; span <= s[a] {
		out = (s[a]-span)/stride + 1
	}
	shape := append(append(ir.Shape{}, s[:a]...), out, k)
	shape = append(shape, s[a+1:]...)
	return g.node(ir.Node{Op: op, Shape: shape, Attr: &ir.Attr{Axes: []int{a}, Step: []int{stride, dilation}}}, chain, nil, x) >= 0
}
