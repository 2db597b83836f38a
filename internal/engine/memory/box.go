package memory

import (
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
)

// Box is a part of a tensor with the layout of its elements in memory.
type Box struct {
	Shape ir.Shape
	View  fusion.View
}

// EachBox cuts a tensor into boxes of at most most elements that are adjacent in row-major order.
// It calls use for each box in that order; at is the number of elements before the box.
func EachBox(shape ir.Shape, view fusion.View, most int, use func(at int64, b Box) error) error {
	cut, inner := len(shape), 1 // the dims from cut on fit whole
	for cut > 0 && inner*shape[cut-1] <= most {
		cut--
		inner *= shape[cut]
	}
	if cut == 0 {
		return use(0, Box{shape, view})
	}
	cut--
	fit := max(most/inner, 1)
	n := (shape[cut] + fit - 1) / fit // boxes along that dim, of about equal size
	step := (shape[cut] + n - 1) / n
	b := Box{append(ir.Shape{}, shape...), view}
	for k := range cut {
		b.Shape[k] = 1
	}
	var start [ir.MaxRank]int
	for at, end := int64(0), int64(shape.Elems()); at < end; {
		b.Shape[cut] = min(step, shape[cut]-start[cut])
		b.View.Offset = view.Offset
		for k, i := range start[:cut+1] {
			b.View.Offset += int64(i) * view.Stride[k]
		}
		if err := use(at, b); err != nil {
			return err
		}
		at += int64(b.Shape[cut] * inner)
		start[cut] += b.Shape[cut]
		for k := cut; k > 0 && start[k] == shape[k]; k-- {
			start[k] = 0
			start[k-1]++
		}
	}
	return nil
}
