package apitest

import (
	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// rowForms record the nodes of a class.
var rowForms = map[ir.Class]func(r *Runner, n *ir.Node) *tensor{
	ir.ClassReduce:  (*Runner).reduce,
	ir.ClassScan:    (*Runner).along,
	ir.ClassSort:    (*Runner).along,
	ir.ClassMove:    (*Runner).move,
	ir.ClassGather:  (*Runner).gather,
	ir.ClassScatter: (*Runner).scatter,
}

func (r *Runner) reduce(n *ir.Node) *tensor {
	t, axes := r.Tensors[n.Args[0].ID], n.Attr.Axes
	if n.Op == ir.Dot {
		return r.dot(n, t, r.Tensors[n.Args[1].ID])
	}
	none := len(axes) == 0 && t.Rank() > 0 // a call without axes would mean all axes
	if f := forms[n.Op].Position; f != nil {
		if none {
			return millrace.ZerosOn(r.place, n.DT, n.Shape...)
		}
		return f(t, n.DT, axes...).Reshape(n.Shape...)
	}
	switch {
	case none:
		return t.Reshape(t.Shape()...)
	case n.Attr.Keep:
		return forms[n.Op].Reductions[0].Keep(t, axes...)
	default:
		return forms[n.Op].Reductions[0].Drop(t, axes...)
	}
}

// dot records a contraction of two tensors of one shape. A contraction over no axes becomes one
// over an axis of size 1, because a product could be -0.
func (r *Runner) dot(n *ir.Node, t, u *tensor) *tensor {
	var batch []int
	axes := n.Attr.Axes
	for d, next := 0, 0; d < t.Rank(); d++ {
		if next < len(axes) && axes[next] == d {
			next++
			continue
		}
		batch = append(batch, d)
	}
	if len(axes) == 0 {
		t, u = t.Reshape(t.Len(), 1), u.Reshape(u.Len(), 1)
		batch, axes = []int{0}, []int{1}
	}
	return t.DotGeneral(u, batch, batch, axes, axes).Reshape(n.Shape...)
}

func (r *Runner) along(n *ir.Node) *tensor {
	t, axis := r.Tensors[n.Args[0].ID], n.Attr.Axes[0]
	switch {
	case n.Op == ir.ArgSort:
		return t.ArgSortAs(n.DT, axis, n.Attr.Descending)
	case n.Op == ir.Sort && n.Attr.Descending:
		return t.SortDescending(axis)
	case n.Op == ir.Sort:
		return t.Sort(axis)
	}
	return forms[n.Op].Alongs[0].Call(t, axis)
}

func (r *Runner) move(n *ir.Node) *tensor {
	t := r.Tensors[n.Args[0].ID]
	switch n.Op {
	case ir.Concat:
		return millrace.Concat(n.Attr.Axes[0], t, r.Tensors[n.Args[1].ID])
	case ir.Assign:
		u := r.Tensors[n.Args[1].ID]
		return t.Assign(u, ranges(u.Shape(), n.Attr)...)
	}
	pads := make([]millrace.Padding, t.Rank())
	for d, size := range t.Shape() {
		before, between := n.Attr.Start[d], n.Attr.Step[d]-1
		pads[d] = millrace.Padding{Before: before, After: n.Shape[d] - before - size - max(0, size-1)*between, Between: between}
	}
	v := r.prog.Scalars[n.Args[1].ID]
	if s, ok := Number(v); ok {
		return t.Pad(s, pads...)
	}
	inside := millrace.OnesOn(r.place, millrace.Bool, t.Shape()...).Pad(0, pads...)
	return millrace.Where(inside, t.Pad(0, pads...), r.scalar(v))
}

func (r *Runner) gather(n *ir.Node) *tensor {
	return r.Tensors[n.Args[0].ID].TakeAlong(r.Tensors[n.Args[1].ID], n.Attr.Axes[0], n.Attr.Mode)
}

func (r *Runner) scatter(n *ir.Node) *tensor {
	x, idx, u := r.Tensors[n.Args[0].ID], r.Tensors[n.Args[1].ID], r.Tensors[n.Args[2].ID]
	return x.Scatter(idx, u, n.Attr.Axes[0], n.Attr.Combine, n.Attr.Mode)
}

// window views the node's number of windows among the existing ones.
func window(n *ir.Node, t *tensor) *tensor {
	a := n.Attr.Axes[0]
	size, count := n.Shape[a+1], n.Shape[a]
	if size == 0 || count == 0 { // the API lacks this
		return t.Reshape(t.Shape()...).Slice(nothing(t.Rank())...).Reshape(n.Shape...)
	}
	all := t.Windows(a, millrace.Window{Size: size, Stride: n.Attr.Step[0], Dilation: n.Attr.Step[1]}, 0)
	if all.Dim(a) == count {
		return all
	}
	head := make([]millrace.Range, a+1)
	head[a] = millrace.R(0, count)
	return all.Slice(head...)
}

func nothing(rank int) []millrace.Range {
	rs := make([]millrace.Range, rank)
	for i := range rs {
		rs[i] = millrace.R(0, 0)
	}
	return rs
}

// ranges is the calls' form of the starts and steps of a region.
func ranges(shape []int, attr *ir.Attr) []millrace.Range {
	rs := make([]millrace.Range, len(shape))
	for i, extent := range shape {
		start, step := attr.Start[i], attr.Step[i]
		stop := start + step*extent
		switch {
		case extent == 0:
			start, stop, step = 0, 0, 1
		case stop < 0:
			stop = millrace.End
		}
		rs[i] = millrace.R(start, stop, step)
	}
	return rs
}
