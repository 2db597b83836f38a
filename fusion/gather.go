package fusion

import "github.com/millrace-go/millrace/ir"

// reach is what becomes of the axis that indices point along on the way from a
// Gather's data down to what that is made of.
type reach uint8

const (
	reachNone   reach = iota // the axis is left out: no element depends on the index
	reachMemory              // something in memory is read at the index
	reachBroken              // an index cannot go this way
)

// looked is the set of tensors that are read at indices and that must be in
// memory as they are: computed at an index they cannot be.
func (g *graph) looked() []bool {
	must := make([]bool, len(g.seg.Tensors))
	for i := range g.seg.Nodes {
		n := &g.seg.Nodes[i]
		if n.Op != ir.Gather && n.Op != ir.Scatter || !g.needed[g.seg.Out[i]] {
			continue
		}
		data := n.Args[0].ID
		// Where the index is out of range the data's elements must be asked, and
		// a dropped one is 0 itself, whatever would have been made of it. What is
		// scattered into is changed in memory.
		plain := n.Op == ir.Scatter || n.Attr.Mode == ir.IndexDrop
		if g.reach(data, n.Attr.Axes[0], plain) != reachMemory {
			must[data] = g.node(data) != nil
		}
	}
	return must
}

// reach follows the axis. With plain only views are crossed.
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

// reachBroadcast goes on to an operand that broadcasts to a shape.
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
