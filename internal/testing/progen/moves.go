package progen

import "github.com/millrace-go/millrace/ir"

// move appends a Pad, a Concat or an Assign.
func (g *generator) move(op ir.Op, chain int) bool {
	x := g.operand(chain, func(t *tensor) bool { return op != ir.Concat || len(t.typ.Shape) > 0 })
	if x < 0 {
		return false
	}
	switch t := g.live[x].typ; op {
	case ir.Pad:
		return g.pad(x, t, chain)
	case ir.Concat:
		a := g.intn(len(t.Shape))
		y := g.operand(chain, func(u *tensor) bool { return u.typ.DT == t.DT && equalBut(a, t.Shape, u.typ.Shape) })
		if chance(g.source, 50) {
			x, y = y, x
		}
		return g.node(ir.Node{Op: op, Attr: &ir.Attr{Axes: []int{a}}}, chain, nil, x, y) >= 0
	}
	return g.assign(x, chain)
}

func (g *generator) pad(x int, t ir.TensorType, chain int) bool {
	shape := make(ir.Shape, len(t.Shape))
	attr := &ir.Attr{Start: make([]int, len(shape)), Step: make([]int, len(shape))}
	for d, n := range t.Shape {
		attr.Step[d], shape[d] = 1, n
		if chance(g.source, 40) {
			continue
		}
		attr.Start[d] = g.intn(3)
		if chance(g.source, 25) {
			attr.Step[d] = 2 + g.intn(2)
		}
		shape[d] = attr.Start[d] + max(0, (n-1)*attr.Step[d]+1) + g.intn(3)
		if n == 0 {
			shape[d] = attr.Start[d] + g.intn(3)
		}
	}
	fill := g.random(t.DT)
	return g.node(ir.Node{Op: ir.Pad, Shape: shape, Attr: attr}, chain, []ir.ScalarValue{fill}, x) >= 0
}

// assign replaces a region of x by a tensor that fits into it; if there is none, it makes one.
func (g *generator) assign(x, chain int) bool {
	t := g.live[x].typ
	u := -1
	if chance(g.source, 50) {
		u = g.operand(chain, func(u *tensor) bool {
			return u.typ.DT == t.DT && !u.typ.Shape.Equal(t.Shape) && within(u.typ.Shape, t.Shape)
		})
	}
	shape, attr := g.sliced(t.Shape)
	if u < 0 {
		if u = g.node(ir.Node{Op: ir.Full, DT: t.DT, Shape: shape}, chain, []ir.ScalarValue{g.random(t.DT)}); u < 0 {
			return false
		}
	} else {
		for d, n := range g.live[u].typ.Shape {
			attr.Start[d], attr.Step[d] = g.intn(t.Shape[d]-n+1), 1
			if chance(g.source, 20) {
				attr.Start[d], attr.Step[d] = attr.Start[d]+max(n-1, 0), -1
			}
		}
	}
	return g.node(ir.Node{Op: ir.Assign, Attr: attr}, chain, nil, x, u) >= 0
}

// within reports whether s fits into t, dim by dim.
func within(s, t ir.Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for d := range s {
		if s[d] > t[d] {
			return false
		}
	}
	return true
}

// equalBut reports whether s and t differ in dim a at most.
func equalBut(a int, s, t ir.Shape) bool {
	return len(s) == len(t) && without(s, a).Equal(without(t, a))
}

func (g *generator) gather(op ir.Op, chain int) bool {
	x := g.operand(chain, func(t *tensor) bool { return len(t.typ.Shape) > 0 })
	if x < 0 {
		return false
	}
	s := g.live[x].typ.Shape
	attr := &ir.Attr{Axes: []int{g.intn(len(s))}}
	shape := append(ir.Shape{}, s...)
	shape[attr.Axes[0]] = g.intn(2 * (s[attr.Axes[0]] + 2))
	for d, n := range s {
		switch {
		case d == attr.Axes[0]:
		case n == 1 && chance(g.source, 30):
			shape[d] = 1 + g.intn(3)
		case chance(g.source, 40):
			shape[d] = 1
		}
	}
	idx := g.index(attr, shape, s[attr.Axes[0]], chain, func(t ir.Shape) bool {
		if len(t) != len(s) {
			return false
		}
		for d, n := range t {
			if d != attr.Axes[0] && n != s[d] && n != 1 && s[d] != 1 {
				return false
			}
		}
		return true
	})
	return idx >= 0 && g.node(ir.Node{Op: op, Attr: attr}, chain, nil, x, idx) >= 0
}

func (g *generator) scatter(op ir.Op, chain int) bool {
	x := g.operand(chain, func(t *tensor) bool { return len(t.typ.Shape) > 0 })
	if x < 0 {
		return false
	}
	t := g.live[x].typ
	a := g.intn(len(t.Shape))
	attr := &ir.Attr{Axes: []int{a}}
	if ir.Numbers.Has(t.DT) {
		attr.Combine = ir.Combine(g.intn(int(ir.NumCombines)))
	}
	u := g.operand(chain, func(u *tensor) bool { return u.typ.DT == t.DT && equalBut(a, t.Shape, u.typ.Shape) })
	shape := g.live[u].typ.Shape
	idx := g.index(attr, shape, t.Shape[a], chain, shape.Equal)
	return idx >= 0 && g.node(ir.Node{Op: op, Attr: attr}, chain, nil, x, idx, u) >= 0
}

// index picks a mode and finds a tensor of indices for an axis of n elements, one of a shape that
// fits allows, or else makes one of the given shape. If an index out of range is a fault, a
// remainder keeps the indices in range.
func (g *generator) index(attr *ir.Attr, shape ir.Shape, n, chain int, fits func(ir.Shape) bool) int {
	attr.Mode = ir.IndexMode(g.intn(int(ir.NumIndexModes)))
	if n == 0 {
		attr.Mode = ir.IndexDrop
	}
	idx := -1
	if chance(g.source, 60) {
		idx = g.operand(chain, func(t *tensor) bool { return ir.IndexDTypes.Has(t.typ.DT) && fits(t.typ.Shape) })
	}
	if idx < 0 {
		dt, ok := g.dtype(ir.IndexDTypes)
		if !ok || !g.fits(shape) {
			return -1
		}
		start, step := uint64(g.intn(n+2)), uint64(1+g.intn(5))
		scalars := []ir.ScalarValue{{DT: dt, Bits: start}, {DT: dt, Bits: step}}
		if idx = g.node(ir.Node{Op: ir.Iota, DT: dt, Shape: shape}, chain, scalars); idx < 0 {
			return -1
		}
	}
	divisor := n
	if attr.Mode != ir.IndexError {
		if chance(g.source, 30) {
			return idx
		}
		divisor += 2 // some are out of range
	}
	scalars := []ir.ScalarValue{{DT: g.live[idx].typ.DT, Bits: uint64(divisor)}}
	return g.node(ir.Node{Op: ir.Rem}, chain, scalars, idx)
}
