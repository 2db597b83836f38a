package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Dtypes of 2 and 4 bits are packed into bytes in Go's memory, low bits first.
// On the device each element has a byte of its own, which holds its value: they
// are stored, moved, compared, converted and seen as other bits there, not
// computed with.

// packedOps are the ops that take packed dtypes.
var packedOps = map[compute.OpType]bool{
	compute.OpTypeBitcast: true, compute.OpTypeConvertDType: true, compute.OpTypeReshape: true, compute.OpTypeTranspose: true,
	compute.OpTypeBroadcastInDim: true, compute.OpTypeSlice: true, compute.OpTypeReverse: true, compute.OpTypeConcatenate: true,
	compute.OpTypeGather: true, compute.OpTypeDynamicSlice: true, compute.OpTypeDynamicUpdateSlice: true, compute.OpTypeWhere: true,
	compute.OpTypeEqual: true, compute.OpTypeNotEqual: true, compute.OpTypeLessThan: true, compute.OpTypeLessOrEqual: true,
	compute.OpTypeGreaterThan: true, compute.OpTypeGreaterOrEqual: true, compute.OpTypeIdentity: true, compute.OpTypeOptimizationBarrier: true,
	compute.OpTypeSchedulingBarrier: true, compute.OpTypeCall: true, compute.OpTypeIf: true, compute.OpTypeWhile: true,
}

// unpacked reports a packed dtype of an op that does not take any.
func unpacked(op compute.OpType, list ...shapes.Shape) error {
	for _, s := range list {
		if s.DType.IsPacked() && !packedOps[op] {
			return errors.Wrapf(compute.ErrNotImplemented, "%s of %s: backend %q has no %s", op, s, Name, s.DType)
		}
	}
	return nil
}

// container is the dtype on the device of a packed one, and of others itself.
func container(dt dtypes.DType) dtypes.DType {
	switch {
	case !dt.IsPacked():
		return dt
	case dt.IsUnsigned():
		return dtypes.Uint8
	}
	return dtypes.Int8
}

// packedRow is the row of a packed dtype. T is what the device has.
func packedRow[T int8 | uint8](dt, unsigned, signed dtypes.DType) dtypeRow {
	bits := dt.Bits()
	each := 8 / bits
	row := dtypeRow{unsigned: unsigned, signed: signed, number: func(any) (float64, bool) { return 0, false }}
	row.dt = millrace.Int8
	if dt.IsUnsigned() {
		row.dt = millrace.Uint8
	}
	row.upload = func(p millrace.Place, flat any, dims []int) *millrace.Tensor {
		packed, _ := flat.([]uint8)
		n := 1
		for _, d := range dims {
			n *= d
		}
		list := make([]T, n)
		for i := range list {
			// The value's bits at the top of the byte, and back with its sign.
			list[i] = T(packed[i/each]>>(i%each*bits)<<(8-bits)) >> (8 - bits)
		}
		return millrace.FromSliceOn(p, list, append([]int{}, dims...)...)
	}
	row.read = func(flat any, t *millrace.Tensor) error {
		list := make([]T, t.Len())
		if err := millrace.ReadInto(list, t); err != nil {
			return err
		}
		packed := flat.([]uint8)
		clear(packed)
		for i, x := range list {
			packed[i/each] |= uint8(x) & (1<<bits - 1) << (i % each * bits)
		}
		return nil
	}
	return row
}

func init() {
	dtypeRows[dtypes.Int2] = packedRow[int8](dtypes.Int2, dtypes.Uint2, dtypes.Int2)
	dtypeRows[dtypes.Uint2] = packedRow[uint8](dtypes.Uint2, dtypes.Uint2, dtypes.Int2)
	dtypeRows[dtypes.Int4] = packedRow[int8](dtypes.Int4, dtypes.Uint4, dtypes.Int4)
	dtypeRows[dtypes.Uint4] = packedRow[uint8](dtypes.Uint4, dtypes.Uint4, dtypes.Int4)
}

// within keeps the low bits of bytes, as a value of a packed dtype; x is of
// its container.
func within(r *run, x *tensor, dt dtypes.DType) *tensor {
	above := float64(8 - dt.Bits())
	return r.temp(x.ShlScalar(above)).ShrScalar(above)
}

// packedBitsAs is bitsAs from or to a packed dtype, or both. The result has the
// dimensions to.
func packedBitsAs(r *run, x *tensor, from shapes.Shape, to shapes.Shape) *tensor {
	dims, bits := slices.Clone(from.Dimensions), from.DType.Bits()
	switch {
	case from.DType == dtypes.Bool:
		x = r.temp(x.Cast(millrace.Uint8))
	case from.DType.IsPacked():
		x = r.temp(r.temp(x.Bitcast(millrace.Uint8)).BitAndScalar(float64(int(1)<<bits - 1)))
	default:
		x, bits = r.temp(x.Bitcast(millrace.Uint8)), 8
		if n := from.DType.Bits() / 8; n > 1 {
			dims = append(dims, n)
		}
	}
	want := min(to.DType.Bits(), 8)
	switch {
	case want < bits: // apart, along an axis more
		n := bits / want
		amounts := r.temp(millrace.ArangeOn(r.sc, millrace.Uint8, 0, float64(bits), float64(want)))
		column := r.temp(x.Reshape(append(slices.Clone(dims), 1)...))
		x = r.temp(r.temp(column.Shr(amounts)).BitAndScalar(float64(int(1)<<want - 1)))
		dims = append(dims, n)
	case want > bits: // together, along the last axis
		n, last := want/bits, len(dims)-1
		dims = append(dims[:last:last], dims[last]/n, n)
		amounts := r.temp(millrace.ArangeOn(r.sc, millrace.Uint8, 0, float64(want), float64(bits)))
		shifted := r.temp(r.temp(x.Reshape(dims...)).Shl(amounts))
		x, dims = r.temp(shifted.Sum(last+1)), dims[:last+1]
	}
	if to.DType.IsPacked() {
		x = r.temp(r.temp(x.Reshape(to.Dimensions...)).Bitcast(dtypeRows[to.DType].dt))
		return within(r, x, to.DType)
	}
	if to.DType.Bits() == 8 {
		x = r.temp(x.Reshape(to.Dimensions...))
	}
	if to.DType == dtypes.Bool {
		return x.Cast(millrace.Bool)
	}
	return x.Bitcast(dtypeRows[to.DType].dt)
}
