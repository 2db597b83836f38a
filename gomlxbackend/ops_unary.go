package gomlxbackend

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// unary records an elementwise op of one operand.
type unary func(r *run, n *Node, x *millrace.Tensor) *millrace.Tensor

// method is a unary op that a Tensor has as a method.
func method(m func(*millrace.Tensor) *millrace.Tensor) unary {
	return func(_ *run, _ *Node, x *millrace.Tensor) *millrace.Tensor { return m(x) }
}

// unaryOps has a row for each elementwise op of one operand whose result has
// the operand's dtype. Which dtypes it takes is told by shapeinference.
var unaryOps = map[compute.OpType]unary{
	compute.OpTypeAbs:        method((*millrace.Tensor).Abs),
	compute.OpTypeBitCount:   bitCount,
	compute.OpTypeBitwiseNot: method((*millrace.Tensor).BitNot),
	compute.OpTypeCeil:       method((*millrace.Tensor).Ceil),
	compute.OpTypeClz:        leadingZeros,
	compute.OpTypeCos:        method((*millrace.Tensor).Cos),
	compute.OpTypeErf:        method((*millrace.Tensor).Erf),
	compute.OpTypeExp:        method((*millrace.Tensor).Exp),
	compute.OpTypeExpm1:      method((*millrace.Tensor).Expm1),
	compute.OpTypeFloor:      method((*millrace.Tensor).Floor),
	compute.OpTypeLog:        method((*millrace.Tensor).Log),
	compute.OpTypeLog1p:      method((*millrace.Tensor).Log1p),
	compute.OpTypeLogicalNot: method((*millrace.Tensor).Not),
	compute.OpTypeLogistic:   method((*millrace.Tensor).Sigmoid),
	compute.OpTypeNeg:        method((*millrace.Tensor).Neg),
	compute.OpTypeRound:      method((*millrace.Tensor).Round),
	compute.OpTypeRsqrt:      method((*millrace.Tensor).Rsqrt),
	compute.OpTypeSign:       method((*millrace.Tensor).Sign),
	compute.OpTypeSin:        method((*millrace.Tensor).Sin),
	compute.OpTypeSqrt:       method((*millrace.Tensor).Sqrt),
	compute.OpTypeTanh:       method((*millrace.Tensor).Tanh),
}

// predicates has a row for each elementwise op of one operand that gives a bool.
var predicates = map[compute.OpType]struct {
	takes func(dtypes.DType) bool
	do    unary
}{
	compute.OpTypeIsFinite: {dtypes.DType.IsFloat, method((*millrace.Tensor).IsFinite)},
	compute.OpTypeIsNaN:    {dtypes.DType.IsSupported, isNaN},
}

// isNaN is defined for every dtype; those that have no NaN have none.
func isNaN(_ *run, _ *Node, x *millrace.Tensor) *millrace.Tensor { return x.Ne(x) }

// bitCount counts bits by adding neighbouring fields of 1, 2 and 4 bits, and
// the bytes by a product. Every mask is a number of 32 bits, which float64 can
// name, so that 64 bits are counted in two halves.
func bitCount(r *run, n *Node, x *millrace.Tensor) *millrace.Tensor {
	bits := n.shape.DType.Bits()
	if bits < 64 {
		return countFields(r, x, bits)
	}
	low := r.temp(x.BitAndScalar(1<<32 - 1))
	high := r.temp(r.temp(x.ShrScalar(32)).BitAndScalar(1<<32 - 1))
	return r.temp(countFields(r, low, 32)).Add(r.temp(countFields(r, high, 32)))
}

// countFields counts the low bits of x, of which there are 8, 16 or 32. The
// others are 0. Sign bits that Shr copies in are masked.
func countFields(r *run, x *millrace.Tensor, bits int) *millrace.Tensor {
	every := func(field uint64) float64 { // field in each byte
		return float64(field * (1<<bits - 1) / 255)
	}
	fields := func(x *millrace.Tensor, shift, mask float64) *millrace.Tensor {
		return r.temp(r.temp(x.ShrScalar(shift)).BitAndScalar(mask))
	}
	odd := fields(x, 1, every(0x55))
	two := r.temp(x.Sub(odd))
	low := r.temp(two.BitAndScalar(every(0x33)))
	four := r.temp(low.Add(fields(two, 2, every(0x33))))
	pairs := r.temp(four.Add(r.temp(four.ShrScalar(4))))
	bytes := pairs.BitAndScalar(every(0x0f))
	if bits == 8 {
		return bytes
	}
	r.temp(bytes)
	sum := r.temp(bytes.MulScalar(every(1)))
	return r.temp(sum.ShrScalar(float64(bits - 8))).BitAndScalar(0xff)
}

// leadingZeros sets every bit below the highest one that is set and counts what
// is not set. A negative number is all ones then.
func leadingZeros(r *run, n *Node, x *millrace.Tensor) *millrace.Tensor {
	bits := n.shape.DType.Bits()
	for shift := 1; shift < bits; shift *= 2 {
		x = r.temp(x.BitOr(r.temp(x.ShrScalar(float64(shift)))))
	}
	return bitCount(r, n, r.temp(x.BitNot()))
}

func (f *Function) unary(op compute.OpType, x compute.Value) (compute.Value, error) {
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		shape, err := shapeinference.UnaryOp(op, in[0].shape)
		if err != nil {
			return nil, err
		}
		return f.addUnary(op, shape, unaryOps[op], in[0])
	})
}

func (f *Function) predicate(op compute.OpType, x compute.Value) (compute.Value, error) {
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		row, dt := predicates[op], in[0].shape.DType
		if !row.takes(dt) {
			return nil, errors.Errorf("not defined for %s", dt)
		}
		return f.addUnary(op, withDType(in[0].shape, dtypes.Bool), row.do, in[0])
	})
}

func (f *Function) addUnary(op compute.OpType, shape shapes.Shape, do unary, x *Node) (*Node, error) {
	return f.add(op, shape, nil, func(r *run, in []*millrace.Tensor) *millrace.Tensor {
		return do(r, x, in[0])
	}, x)
}

// withDType is a shape with another dtype.
func withDType(s shapes.Shape, dt dtypes.DType) shapes.Shape {
	s = s.Clone()
	s.DType = dt
	return s
}
