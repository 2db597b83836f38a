package gomlxbackend

import (
	"cmp"
	"fmt"

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

// RNGBitGenerator gives random bits of a shape and the state behind them. The
// state's first number is a key, the others are the low and the high half of a
// counter of elements: each is a block of Millrace's Philox, so that it depends on
// nothing else. The low half wraps without a carry, after 2^64 elements.
func (f *Function) RNGBitGenerator(state compute.Value, shape shapes.Shape) (newState, values compute.Value, err error) {
	const op = compute.OpTypeRNGBitGenerator
	results, err := f.buildMany(op, []compute.Value{state}, func(in []*Node) (*Node, error) {
		if !in[0].shape.Equal(compute.RNGStateShape) {
			return nil, errors.Errorf("the state must be a %s", compute.RNGStateShape)
		}
		if err := cmp.Or(f.builder.backend.holds("result", shape), unpacked(op, shape), realOnly(op, shape)); err != nil {
			return nil, err
		}
		n := shape.Size()
		return f.addMany(op, []shapes.Shape{in[0].shape, shape}, func(r *run, in []*tensor) []*tensor {
			part := func(i int) *tensor { return r.temp(in[0].Slice(millrace.R(i, i+1))) }
			key, low, high := part(0), part(1), part(2)
			after := millrace.Concat(0, key, r.temp(low.AddScalar(float64(n))), high)
			if n == 0 {
				return []*tensor{after, millrace.FullOn(r.sc, dtypeRows[shape.DType].dt, 0, shape.Dimensions...)}
			}
			at := r.temp(r.temp(millrace.ArangeOn(r.sc, millrace.Uint64, 0, float64(n), 1)).Add(low))
			bits := r.temp(r.temp(at.Philox(high, key)).Reshape(shape.Dimensions...))
			return []*tensor{after, lowBits(r, bits, shape.DType)}
		}, in...), nil
	})
	if err != nil {
		return nil, nil, errors.WithMessage(err, fmt.Sprintf("result %s", shape))
	}
	return results[0], results[1], nil
}

// lowBits are as many of 64 bits as a dtype has, of bool one.
func lowBits(r *run, x *tensor, dt dtypes.DType) *tensor {
	if dt == dtypes.Bool {
		return r.temp(x.BitAndScalar(1)).Cast(millrace.Bool)
	}
	whole := map[int]dtypes.DType{8: dtypes.Uint8, 16: dtypes.Uint16, 32: dtypes.Uint32, 64: dtypes.Uint64}[dt.Bits()]
	if dt.Bits() < 64 {
		x = r.temp(r.temp(x.BitAndScalar(float64(uint64(1)<<dt.Bits() - 1))).Cast(dtypeRows[whole].dt))
	}
	return x.Bitcast(dtypeRows[dt].dt)
}
