package gomlxbackend

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Bitcast sees the bits of x as those of another dtype; a bool is a byte that
// is 0 or 1, and everything but 0 is true. Narrower elements are a new last
// axis, and wider ones take the last one in.
func (f *Function) Bitcast(x compute.Value, dt dtypes.DType) (compute.Value, error) {
	const op = compute.OpTypeBitcast
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		from := in[0].shape
		if err := f.builder.backend.holds("result", withDType(from, dt)); err != nil {
			return nil, err
		}
		if from.Rank() == 0 && from.DType.Bits() < dt.Bits() {
			return nil, errors.Errorf("a scalar has no axis that makes up a %s", dt)
		}
		shape, err := shapeinference.Bitcast(from, dt)
		if err != nil {
			return nil, err
		}
		if dt == from.DType {
			return in[0], nil
		}
		shape = shapes.Make(dt, shape.Dimensions...) // without names of axes
		if from.DType.IsComplex() || dt.IsComplex() {
			return f.complexBits(in[0], shape)
		}
		return f.add(op, shape, nil, func(r *run, in []*tensor) *tensor {
			if from.DType.IsPacked() || dt.IsPacked() {
				return packedBitsAs(r, in[0], from, shape)
			}
			return bitsAs(r, in[0], from.DType, dt)
		}, in...)
	})
}

// bitsAs is Tensor.Bitcast for bools too.
func bitsAs(r *run, x *tensor, from, to dtypes.DType) *tensor {
	if from == dtypes.Bool {
		from, x = dtypes.Uint8, r.temp(x.Cast(millrace.Uint8))
	}
	if to == dtypes.Bool {
		if from != dtypes.Uint8 {
			x = r.temp(x.Bitcast(millrace.Uint8))
		}
		return x.Cast(millrace.Bool)
	}
	return x.Bitcast(dtypeRows[to].dt)
}
