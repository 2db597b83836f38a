package fusion

import "github.com/millrace-go/millrace/ir"

// reach says what happens to the axis that indices select along, on the way from a Gather's data
// down to the tensors in memory that the data is made from.
type reach uint8

const (
	reachNone   reach = iota // the axis is dropped: no element depends on the index
	reachMemory              // a tensor in memory is read at the index
	reachBroken              // the index cannot be followed
)

// looked is the set of tensors that are read at indices and cannot be computed at an index: they
// must be in memory.
func (g *graph) looked() []bool {
	must := make([]bool, len(g.seg.Tensors))
	for i := range g.seg.Nodes {
		n := &g.seg.Nodes[i]
		if n.Op != ir.Gather && n.Op != ir.Scatter || !g.needed[g.seg.Out[i]] {
			continue
		}
		data := n.Args[0].ID
		// IndexDrop gives 0 for an index out of range, whatever ops are applied to the data, so
		// only views may be crossed. The tensor that is scattered into is changed in memory.
		plain := n.Op == ir.Scatter || n.Attr.Mode == ir.IndexDrop
		if g.reach(data, n.Attr.Axes[0], plain) != reachMemory {
			must[data] = g.node(data) != nil
		}
	}
	return must
}

// reach follows the axis from t. If plain, it crosses only views and reductions over no axes.
func (g *graph) reach(t int32, axis int, plain bool) reach {
	n := g.node(t)
	if n == nil || g.isRowOp(t) {
		return reachMemory
	}
	switch n.Op.Class() {
	case ir.ClassView:
		return g.reachView(n, axis, plain)
	case ir.ClassReduce:
		return g.reach(n.Args[0].ID, axis, plain)
	case ir.ClassCreate:
		if n.Op == ir.Full && !plain {
			return reachNone
		}
	case ir.ClassElementwise:
		if plain {
			break
		}
		all := reachNone
		for _, a := range n.Args[:n.NArgs] {
			if !a.Scalar {
				all = max(all, g.reachBroadcast(a.ID, n.Shape, axis, plain))
			}
		}
		return all
	}
	return reachBroken
}

// reachBroadcast follows the axis to an operand that is broadcast to a shape.
func (g *graph) reachBroadcast(t int32, to ir.Shape, axis int, plain bool) reach {
	s := g.seg.Tensors[t].Shape
	if axis -= len(to) - len(s); axis < 0 || g.class.dims[g.class.of[t]][axis] == one {
		return reachNone
	}
	return g.reach(t, axis, plain)
}

func (g *graph) reachView(n *ir.Node, axis int, plain bool) reach {
	x := n.Args[0].ID
	switch n.Op {
	case ir.Expand:
		return g.reachBroadcast(x, n.Shape, axis, plain)
	case ir.Permute:
		return g.reach(x, n.Attr.Axes[axis], plain)
	case ir.Slice:
		return g.reach(x, axis, plain)
	}
	return reachBroken
}
