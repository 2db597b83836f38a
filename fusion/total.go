package fusion

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A reduction over all axes of a tensor folds its elements in row-major order. A kernel of rows
// visits them in the same order if its rows are along the last axes. So the kernel can compute such
// a reduction as well, as a total, which it writes at its end. Then the loss and the derivative of
// a softmax are one kernel, although their rows are along different axes.

// totalRows is the smallest number of rows, and totalRow the smallest number of points in a row, of
// a kernel with totals, at explored sizes. Such a kernel does not work on several rows side by
// side, and threads share only whole rows. Tests of small programs set both to 1.
var totalRows, totalRow int64 = 16, 64

// isTotal reports a tensor that may be a total of g: a reduction over all axes of a tensor with g's
// domain.
func (x *explorer) isTotal(g *group, t int32) bool {
	n := x.node(t)
	if n == nil || !x.isRowOp(t) || !codegen.TotalOp(n.Op) || x.class.of[n.Args[0].ID] != g.domain {
		return false
	}
	lively := x.lively(g.domain)
	return axisMask(n.Attr.Axes)&lively == lively
}

// inOrder reports that g has rows and that their points, row after row, are in row-major order.
func (x *explorer) inOrder(g *group) bool {
	lively := x.lively(g.domain)
	axes := axisMask(g.axes) & lively
	kept := lively &^ axes
	return axes != 0 && kept != 0 && kept < axes&-axes
}

// withTotals is g together with the results of another group as totals. The other group's rows must
// be whole tensors of g's domain.
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

// total makes the values that total t folds.
func (b *body) total(t int32) codegen.Reduce {
	n, def := b.x.node(t), b.x.seg.Tensors[t].Def
	b.nodes.add(def)
	b.weight += rowWeights[ir.ClassReduce]
	v := b.value(n.Args[0].ID, b.x.maps.identity(b.g.domain))
	if b.x.caps.Denormals.Flushes(b.code[v].DT) { // no later op flushes the value
		v = b.emit(ir.Flush, b.code[v].DT, 0, v)
	}
	return codegen.Reduce{Op: n.Op, Value: v}
}

func (g *group) hasTotals() bool {
	return slices.ContainsFunc(g.roots, func(r root) bool { return r.total })
}

// totalsAs marks, in the group of a step, the roots that the kernel computes as totals.
func (x *explorer) totalsAs(g *group, s *Step) error {
	for _, t := range s.Kernel.Reduces {
		for i := range g.roots {
			if r := &g.roots[i]; int(r.tensor) == s.Operands[t.Operand].Tensor {
				r.total = true
				if !x.caps.Totals || !x.inOrder(g) || !x.isTotal(g, r.tensor) {
					return fmt.Errorf("operand %d is not a total of its rows", t.Operand)
				}
			}
		}
	}
	return nil
}
