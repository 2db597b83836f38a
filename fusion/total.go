package fusion

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A reduction over all axes of a tensor goes over its elements in row-major
// order. A kernel of rows meets them in that order, too, where its rows lie along
// the last axes: so it can fold them on its way, as a total, which is written when
// it ends. The loss and the derivative of a softmax are one kernel then, though
// their rows lie along different axes.

// totalRows and totalRow are how many rows, and of how many points, a kernel with
// totals has at least, at explored sizes. Its rows are not worked on side by side,
// and threads share them out as whole ones. Tests of small programs set both to 1.
var totalRows, totalRow int64 = 16, 64

// isTotal reports a tensor that is a reduction over all axes of what g's domain is
// of, and so may be a total of it.
func (x *explorer) isTotal(g *group, t int32) bool {
	n := x.node(t)
	if n == nil || !x.isRowOp(t) || !codegen.TotalOp(n.Op) || x.class.of[n.Args[0].ID] != g.domain {
		return false
	}
	lively := x.lively(g.domain)
	return axisMask(n.Attr.Axes)&lively == lively
}

// inOrder reports that the points of g's rows, row after row, are in row-major
// order, and that there are rows.
func (x *explorer) inOrder(g *group) bool {
	lively := x.lively(g.domain)
	axes := axisMask(g.axes) & lively
	kept := lively &^ axes
	return axes != 0 && kept != 0 && kept < axes&-axes
}

// withTotals is g with what another group, whose rows are whole tensors, makes of
// the points of g's domain.
func (x *explorer) withTotals(g, other *group) ([]*group, string) {
	if !x.caps.Totals || !x.inOrder(g) {
		return nil, reasonAxes
	}
	lively := x.lively(g.domain)
	if axisMask(other.axes)&lively != lively {
		return nil, reasonAxes
	}
	if row := x.rowLength(g); row < totalRow || x.maps.elems(g.domain)/row < totalRows {
		return nil, reasonFewRows
	}
	points := *other
	points.cost, points.roots = nil, nil
	for _, r := range other.roots {
		r.total = r.total || x.isTotal(g, r.tensor)
		points.roots = append(points.roots, r)
	}
	return x.growAlong(g, &points, []*indexMap{x.maps.identity(g.domain)})
}

// total has a body fold what t is the fold of.
func (b *body) total(t int32) codegen.Reduce {
	n, def := b.x.node(t), b.x.seg.Tensors[t].Def
	b.nodes.add(def)
	b.weight += rowWeights[ir.ClassReduce]
	v := b.value(n.Args[0].ID, b.x.maps.identity(b.g.domain))
	if b.x.caps.Denormals.Flushes(b.code[v].DT) { // nothing comes behind it
		v = b.emit(ir.Flush, b.code[v].DT, 0, v)
	}
	return codegen.Reduce{Op: n.Op, Value: v}
}

func (g *group) hasTotals() bool {
	return slices.ContainsFunc(g.roots, func(r root) bool { return r.total })
}

// totalsAs has the group that a step was made of hold the totals of its kernel.
func (x *explorer) totalsAs(g *group, s *Step) error {
	for _, t := range s.Kernel.Reduces {
		for i := range g.roots {
			if r := &g.roots[i]; int(r.tensor) == s.Operands[t.Operand].Tensor {
				r.total = true
				if !x.caps.Totals || !x.inOrder(g) || !x.isTotal(g, r.tensor) {
					return fmt.Errorf("operand %d is no total of its rows", t.Operand)
				}
			}
		}
	}
	return nil
}
