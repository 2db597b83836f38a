package fusion

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// alias computes the view that a result is. First it lets reshapes split the result's dims and
// joins the dims again at the end. If strides alone cannot express the view, it starts again with
// the dims unsplit, and uses stages.
func (l *layouter) alias(a *Alias, seg *segment.Segment, in []View, out *View) error {
	if a.Tensor >= len(seg.Tensors) || a.Of >= len(seg.Tensors) {
		return errPath
	}
	shape := seg.Tensors[a.Tensor].Shape
	for _, frozen := range [2]bool{false, true} {
		if err := l.trace(a, seg, in, shape, frozen); err != nil {
			return err
		}
		t := &l.tracers[0]
		if stride, ok := l.unrefined(&t.entry, shape); ok {
			*out = View{Offset: t.entry.off, Stride: stride, Stages: t.stages}
			return nil
		}
	}
	return fmt.Errorf("%w: no view", errPath)
}

// trace follows the path of an alias from the result's own dims.
func (l *layouter) trace(a *Alias, seg *segment.Segment, in []View, shape ir.Shape, frozen bool) error {
	l.open(shape, nil, frozen)
	l.tracers = append(l.tracers[:0], tracer{})
	t := &l.tracers[0]
	l.start(t, shape)
	if err := l.walk(t, seg, a.Path); err != nil {
		return err
	}
	if !t.stands(seg.Tensors[a.Of].Shape) {
		return fmt.Errorf("%w: ends at %v, not %v", errPath, t.shape[:t.rank], seg.Tensors[a.Of].Shape)
	}
	return l.finish(t, memory(seg, in, a.Of))
}

// unrefined gives one stride per dim of shape; the domain's dims are shape's dims, some split. It
// reports false if a dim needs more than one stride.
func (l *layouter) unrefined(a *affine, shape ir.Shape) ([]int64, bool) {
	stride := make([]int64, len(shape))
	d := 0
	for i, n := range shape {
		first := d
		for size := int64(1); d < l.domain.rank && (size < int64(n) || d == first); d++ {
			size *= l.domain.dims[d]
		}
		// A step of one along dim i is a step of one along its innermost piece.
		for e := first; e+1 < d; e++ {
			if a.c[e] != a.c[e+1]*l.domain.dims[e+1] {
				return nil, false
			}
		}
		if d > first {
			stride[i] = a.c[d-1]
		}
	}
	return stride, true
}

// open sets the domain to a shape. With frozen its dims cannot be split.
func (l *layouter) open(shape ir.Shape, reduced []int, frozen bool) {
	l.domain.rank, l.frozen = len(shape), frozen
	for d, n := range shape {
		l.domain.dims[d] = int64(n)
		l.domain.reduced[d] = has(reduced, d)
	}
}

// identity sets t's indices to the domain's dims. Earlier operands may have split dims of the
// domain; then dim i of shape is made of several.
func (l *layouter) identity(t *tracer, shape ir.Shape) {
	d := 0
	for i, n := range shape {
		t.at[i] = affine{}
		inner := int64(n)
		for first := d; d < l.domain.rank && (inner > 1 || d == first); d++ {
			inner /= max(l.domain.dims[d], 1) // a dim of size 0 has no points
			t.at[i].c[d] = inner
		}
	}
}
