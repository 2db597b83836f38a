package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/pkg/errors"
)

// DotGeneral multiplies along pairs of batch axes and sums along pairs of
// contracting ones. It is computed in the accumulator's dtype, which is the
// operands' where config names none, but for 16-bit floats: those are summed in
// float32 and rounded once.
func (f *Function) DotGeneral(lhs compute.Value, lhsContract, lhsBatch []int, rhs compute.Value, rhsContract, rhsBatch []int,
	config compute.DotGeneralConfig) (compute.Value, error) {
	const op = compute.OpTypeDotGeneral
	own(&lhsContract, &lhsBatch, &rhsContract, &rhsBatch)
	return f.build(op, []compute.Value{lhs, rhs}, func(in []*Node) (*Node, error) {
		shape, err := shapeinference.DotGeneral(in[0].shape, lhsContract, lhsBatch, in[1].shape, rhsContract, rhsBatch, config)
		if err != nil {
			return nil, err
		}
		if wideAmong(in) || shape.Rank() > maxRank {
			return f.wideDot(in, [2][]int{lhsBatch, rhsBatch}, [2][]int{lhsContract, rhsContract}, config, shape.Dimensions)
		}
		if in[0].isComplex() {
			parts, err := partConfig(config)
			if err != nil {
				return nil, err
			}
			return f.bilinear(op, in, func(x, y *Node) (compute.Value, error) {
				return f.DotGeneral(x, lhsContract, lhsBatch, y, rhsContract, rhsBatch, parts)
			})
		}
		from := in[0].shape.DType
		acc := config.AccumulatorDType
		if acc == dtypes.InvalidDType {
			acc = from
		}
		if from.IsHalfPrecision() && acc == from {
			acc = dtypes.Float32
		}
		for _, dt := range []dtypes.DType{from, acc, shape.DType} {
			if !f.builder.backend.caps.DTypes[dt] {
				return nil, errors.Wrapf(compute.ErrNotImplemented, "backend %q has no %s", Name, dt)
			}
			if !isNumber(dt) {
				return nil, errors.Errorf("not defined for %s", dt)
			}
		}
		lc, lb, rc, rb := slices.Clone(lhsContract), slices.Clone(lhsBatch), slices.Clone(rhsContract), slices.Clone(rhsBatch)
		to := shape.DType
		return f.add(op, shape, []any{lc, lb, rc, rb, acc}, func(r *run, in []*tensor) *tensor {
			x, y := in[0], in[1]
			if acc != from {
				x, y = r.temp(convert(r, x, from, acc)), r.temp(convert(r, y, from, acc))
			}
			dot := x.DotGeneral(y, lb, rb, lc, rc)
			if acc == to {
				return dot
			}
			return convert(r, r.temp(dot), acc, to)
		}, in...)
	})
}
