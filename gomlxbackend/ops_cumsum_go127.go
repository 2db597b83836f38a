//go:build go1.27 && !compute_go126

package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapeinference"
	"github.com/millrace-go/millrace"
)

// CumSum is the sum of the elements up to each along an axis, or of those from it
// on, without it where it is exclusive.
func (f *Function) CumSum(operand compute.Value, axis int, options compute.CumSumOptions) (compute.Value, error) {
	const op = compute.OpTypeCumSum
	return f.build(op, []compute.Value{operand}, func(in []*Node) (*Node, error) {
		shape, err := shapeinference.CumSum(in[0].shape, axis)
		if err != nil {
			return nil, err
		}
		n := shape.Dimensions[axis]
		if shape.IsZeroSize() {
			return in[0], nil
		}
		pads, ranges := make([]millrace.Padding, shape.Rank()), slices.Repeat([]millrace.Range{millrace.All}, shape.Rank())
		pads[axis].Before, ranges[axis] = 1, millrace.R(0, n-1)
		return f.add(op, shape, []any{axis, options}, func(r *run, in []*tensor) *tensor {
			x := in[0]
			if options.Reverse {
				x = r.temp(x.Flip(axis))
			}
			if options.Exclusive {
				x = r.temp(r.temp(x.Slice(ranges...)).Pad(0, pads...))
			}
			sum := x.CumSum(axis)
			if options.Reverse {
				return r.temp(sum).Flip(axis)
			}
			return sum
		}, in...)
	})
}
