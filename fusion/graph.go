package fusion

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// graph is a segment's data flow. It holds facts that do not change while groups form: which
// tensors must be in memory, and which are only views of those.
type graph struct {
	seg    *segment.Segment
	class  *classes
	maps   *mapSet
	needed []bool // tensors that some written tensor depends on, and the written tensors
	roots  []int32
	// alias holds, for a written tensor that is only a view, the tensor that it views; -1 for the
	// others.
	alias []int32
	look  []bool // see looked

	denormals ir.Denormals
}

func newGraph(seg *segment.Segment, d *dimSet, denormals ir.Denormals) *graph {
	c := newClasses(seg, d)
	g := &graph{
		denormals: denormals,
		seg:       seg,
		class:     c,
		maps:      newMapSet(seg, c),
		needed:    make([]bool, len(seg.Tensors)),
		alias:     make([]int32, len(seg.Tensors)),
	}
	for t := range seg.Tensors {
		g.alias[t] = -1
		if seg.Tensors[t].Life == segment.LifeWrite {
			g.need(int32(t))
		}
	}
	return g
}

func (g *graph) need(t int32) {
	if g.needed[t] {
		return
	}
	g.needed[t] = true
	if n := g.node(t); n != nil {
		for _, a := range n.Args[:n.NArgs] {
			if !a.Scalar {
				g.need(a.ID)
			}
		}
	}
}

// node is the node that computes t; nil for an input.
func (g *graph) node(t int32) *ir.Node {
	if d := g.seg.Tensors[t].Def; d >= 0 {
		return &g.seg.Nodes[d]
	}
	return nil
}

// eachArg visits the tensor operands of a node.
func (g *graph) eachArg(n int32, visit func(a int32)) {
	node := &g.seg.Nodes[n]
	for _, a := range node.Args[:node.NArgs] {
		if !a.Scalar {
			visit(a.ID)
		}
	}
}

func (g *graph) isView(t int32) bool {
	n := g.node(t)
	return n != nil && n.Op.Class() == ir.ClassView
}

// isRowOp reports the result of a row op. A fold over no axes is no row op: its result is its
// operand, unless the result is a position or a product.
func (g *graph) isRowOp(t int32) bool {
	n := g.node(t)
	return n != nil && n.Op.Info().RowOp && !g.folds1(n)
}

// folds1 reports a reduction whose result is its operand. A reduction that flushes denormals is
// none.
func (g *graph) folds1(n *ir.Node) bool {
	info := n.Op.Info()
	return info.Class == ir.ClassReduce && len(n.Attr.Axes) == 0 && info.Arity == 1 && !info.Position &&
		!(g.denormals.Computes(n.Op) && g.denormals.Flushes(n.DT))
}

// isCostly reports a result that is too costly to compute twice.
func (g *graph) isCostly(t int32) bool {
	return g.isRowOp(t)
}

// base is the tensor that t is a view of, through all views; t itself where it is no view.
func (g *graph) base(t int32) int32 {
	for g.isView(t) {
		t = g.node(t).Args[0].ID
	}
	return t
}

func (g *graph) elems(t int32) int64 { return int64(g.seg.Tensors[t].Shape.Elems()) }

// memory is the number of elements that t has in memory: fewer than its shape has for an input
// with broadcast dims.
func (g *graph) memory(t int32) int64 {
	if n := g.seg.Tensors[t].Memory; n > 0 {
		return n
	}
	return g.elems(t)
}

// chooseRoots decides which tensors the steps write. A written tensor that is a view of an input,
// or of another stored tensor, becomes an alias. A view of a tensor that need not be written is
// stored itself, unless storing its base costs no more and serves several views (or a broadcast).
func (g *graph) chooseRoots(stored []bool) {
	n := len(g.seg.Tensors)
	views := make([]int64, n) // elements of the written views of each tensor
	count := make([]int, n)
	for t := range g.seg.Tensors {
		if g.seg.Tensors[t].Life != segment.LifeWrite {
			continue
		}
		if !g.isView(int32(t)) {
			stored[t] = true
			continue
		}
		b := g.base(int32(t))
		views[b] += g.elems(int32(t))
		count[b]++
	}
	for t := range g.seg.Tensors {
		if g.needed[t] && g.isCostly(int32(t)) {
			stored[t] = true
		}
		if count[t] > 0 && (views[t] > g.elems(int32(t)) || count[t] > 1 && views[t] == g.elems(int32(t))) {
			stored[t] = true
		}
	}
	g.look = g.looked()
	for t, must := range g.look {
		stored[t] = stored[t] || must
	}
	for t := range g.seg.Tensors {
		if g.seg.Tensors[t].Life != segment.LifeWrite || !g.isView(int32(t)) || stored[t] {
			continue
		}
		if b := g.base(int32(t)); g.node(b) == nil || stored[b] {
			g.alias[t] = b
		} else {
			stored[t] = true
		}
	}
	for t := range stored {
		if stored[t] && g.node(int32(t)) != nil {
			g.roots = append(g.roots, int32(t))
		}
	}
}

// aliases lists the written tensors that need no kernel: they are views.
func (g *graph) aliases() []Alias {
	var as []Alias
	for t, b := range g.alias {
		if b < 0 {
			continue
		}
		m := g.maps.identity(g.class.of[t])
		for v := int32(t); v != b; v = g.node(v).Args[0].ID {
			m = g.maps.through(m, edge{node: g.seg.Tensors[v].Def})
		}
		as = append(as, Alias{Tensor: t, Of: int(b), Path: m.path()})
	}
	return as
}

// empty reports a segment that has a tensor without elements.
func (g *graph) empty() bool {
	for t := range g.seg.Tensors {
		if g.elems(int32(t)) == 0 {
			return true
		}
	}
	return false
}

// check reports the first reason why the segment can have no plan.
func (g *graph) check() error {
	for i := range g.seg.Nodes {
		n := &g.seg.Nodes[i]
		switch n.Op.Class() {
		case ir.ClassCreate, ir.ClassElementwise, ir.ClassView, ir.ClassReduce, ir.ClassScan, ir.ClassSort,
			ir.ClassMove, ir.ClassGather, ir.ClassScatter, ir.ClassMark:
		default:
			return fmt.Errorf("node %d: %s is not an op on tensors", i, n.Op)
		}
	}
	for t := range g.seg.Tensors {
		if g.seg.Tensors[t].Life == segment.LifeWrite && g.seg.Tensors[t].Def < 0 {
			return fmt.Errorf("no node makes tensor %d, which must be written", t)
		}
	}
	return nil
}
