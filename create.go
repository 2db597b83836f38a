package millrace

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// FromSlice makes a tensor of the given shape from data in row-major order. The data is copied
// before FromSlice returns. The dtype is T's. Without a shape the tensor is one-dimensional;
// FromSlice(data, t.Shape()...) has t's shape even if that is 0-d. A shape whose number of
// elements is not len(data) is ErrShape. NumPy's array and PyTorch's tensor are similar.
func FromSlice[T Element](data []T, shape ...int) *Tensor {
	return fromSlice(anywhere{}, data, shape)
}

// FromSliceOn is [FromSlice] in a place.
func FromSliceOn[T Element](p Place, data []T, shape ...int) *Tensor {
	return fromSlice(p, data, shape)
}

func fromSlice[T Element](p Place, data []T, shape []int) *Tensor {
	if shape == nil {
		shape = []int{len(data)}
	}
	return fromBytes(p, dtypeOf[T](), shape, bytesOf(data), len(data))
}

func fromBytes(p Place, dt DType, shape []int, data []byte, n int) *Tensor {
	const op = "fromslice"
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, op, err)
	}
	s := append(ir.Shape{}, shape...)
	if err := s.Check(); err != nil {
		return failedAt(place, op, shapeErr("%v", err))
	}
	if s.Elems() != n {
		return failedAt(place, op, shapeErr("%v has %d elements, the data %d", s, s.Elems(), n))
	}
	r := newSigned()
	stream.FromHost(&r.v, place, dt, s, data)
	if signing() {
		r.signedAs(op, xxhash.Sum64(data), nil)
	}
	return r
}

// Scalar makes a 0-d tensor. The dtype is T's.
func Scalar[T Element](value T) *Tensor { return ScalarOn(anywhere{}, value) }

// ScalarOn is [Scalar] in a place.
func ScalarOn[T Element](p Place, value T) *Tensor {
	return fromSlice(p, []T{value}, []int{})
}

// Full makes a tensor whose elements are all value, rounded to nearest in a float dtype: NumPy's
// full. A value that a dtype of integers or bool cannot hold is ErrDType; use [Scalar] and Expand
// for an int64 value that float64 cannot express. For bool, 0 is false and 1 true. Without a
// shape the tensor is 0-d. A negative dimension, more than 8 of them, or a product that overflows
// is ErrShape.
func Full(dt DType, value float64, shape ...int) *Tensor {
	return full(anywhere{}, "full", dt, value, shape)
}

// FullOn is [Full] in a place.
func FullOn(p Place, dt DType, value float64, shape ...int) *Tensor {
	return full(p, "full", dt, value, shape)
}

// Zeros makes a tensor of zeros, or of false: [Full] of 0.
func Zeros(dt DType, shape ...int) *Tensor { return full(anywhere{}, "zeros", dt, 0, shape) }

// ZerosOn is [Zeros] in a place.
func ZerosOn(p Place, dt DType, shape ...int) *Tensor { return full(p, "zeros", dt, 0, shape) }

// Ones makes a tensor of ones, or of true: [Full] of 1.
func Ones(dt DType, shape ...int) *Tensor { return full(anywhere{}, "ones", dt, 1, shape) }

// OnesOn is [Ones] in a place.
func OnesOn(p Place, dt DType, shape ...int) *Tensor { return full(p, "ones", dt, 1, shape) }

func full(p Place, name string, dt DType, value float64, shape []int) *Tensor {
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, name, err)
	}
	bits, ok := scalarBits(dt, value)
	if !dt.Tensor() {
		return failedAt(place, name, dtypeErr("%v is no dtype of tensors", dt))
	}
	if !ok {
		return failedAt(place, name, dtypeErr("%v cannot hold %v", dt, value))
	}
	return create(place, name, ir.Full, dt, shape, bits, 0, 1)
}

// Arange makes the one-dimensional tensor start, start+step, … up to but not including stop:
// NumPy's arange. It has ceil((stop-start)/step) elements, or none if step leads away from stop.
// Element i is start + step*i, computed in dt, which must be a number type. A step of 0, a number
// that is not finite, or too many elements is ErrShape. A value that dt cannot hold is ErrDType.
func Arange(dt DType, start, stop, step float64) *Tensor {
	return arange(anywhere{}, dt, start, stop, step)
}

// ArangeOn is [Arange] in a place.
func ArangeOn(p Place, dt DType, start, stop, step float64) *Tensor {
	return arange(p, dt, start, stop, step)
}

func arange(p Place, dt DType, start, stop, step float64) *Tensor {
	const op = "arange"
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, op, err)
	}
	if !dt.Tensor() || dt == Bool {
		return failedAt(place, op, dtypeErr("%v is no number type", dt))
	}
	count := math.Ceil((stop - start) / step)
	if math.IsInf(stop-start, 0) { // for finite numbers whose difference is infinite, divide first
		count = math.Ceil(stop/step - start/step)
	}
	if step == 0 || math.IsNaN(count) || math.IsInf(count, 0) || math.IsInf(start, 0) || math.IsInf(step, 0) {
		return failedAt(place, op, shapeErr("start %v, stop %v, step %v give no sequence", start, stop, step))
	}
	n := max(count, 0)
	if n > math.MaxInt/8 {
		return failedAt(place, op, shapeErr("%v elements are more than can be addressed", n))
	}
	first, ok1 := scalarBits(dt, start)
	by, ok2 := arangeStep(dt, step, n)
	// The last element bounds the others, because the sequence is monotone.
	last := float64(step*(n-1)) + start
	_, ok3 := scalarBits(dt, last)
	if !ok1 || !ok2 || (!ok3 && n > 0) {
		return failedAt(place, op, dtypeErr("%v cannot hold start %v, step %v, last %v", dt, start, step, last))
	}
	return create(place, op, ir.Iota, dt, []int{int(n)}, first, by, 2)
}

// arangeStep returns the bits of a step in dt. An integer dtype may have any whole step: a
// negative one for unsigned dtypes, or one of more than half their range. Adding it with
// wrap-around gives the right elements, because the caller checks that the last element is in
// range. If there is at most one element, any step is allowed.
func arangeStep(dt DType, step, n float64) (uint64, bool) {
	bits, ok := scalarBits(dt, step)
	switch {
	case ok:
	case n <= 1:
		return 0, true
	case dt.IsInt() && step == math.Trunc(step) && math.Abs(step) < math.Ldexp(1, 64):
		bits, ok = uint64(math.Abs(step)), true
		if step < 0 {
			bits = -bits
		}
		bits = bits << (64 - dt.Bits()) >> (64 - dt.Bits())
	}
	return bits, ok
}

// Uniform makes a tensor of independent random numbers, uniform on [0, 1), in a float dtype. Each
// depends only on seed, the element's row-major position and dt (Philox4x32-10). The numbers are
// the same on every device, however often they are computed. Use another seed for every call, or
// a [Generator]. Shapes are as for [Full]; a dtype that is no float is ErrDType.
func Uniform(dt DType, seed uint64, shape ...int) *Tensor {
	return random(anywhere{}, ir.Uniform, dt, seed, shape)
}

// UniformOn is [Uniform] in a place.
func UniformOn(p Place, dt DType, seed uint64, shape ...int) *Tensor {
	return random(p, ir.Uniform, dt, seed, shape)
}

// Normal makes a tensor of independent random numbers from the standard normal distribution in a
// float dtype. It applies the Box-Muller transform to the numbers of [Uniform]. On a GPU the
// numbers agree within the tolerance of Log and Cos.
func Normal(dt DType, seed uint64, shape ...int) *Tensor {
	return random(anywhere{}, ir.Normal, dt, seed, shape)
}

// NormalOn is [Normal] in a place.
func NormalOn(p Place, dt DType, seed uint64, shape ...int) *Tensor {
	return random(p, ir.Normal, dt, seed, shape)
}

func random(p Place, op ir.Op, dt DType, seed uint64, shape []int) *Tensor {
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, op.String(), err)
	}
	if !dt.IsFloat() {
		return failedAt(place, op.String(), dtypeErr("%v is no float type", dt))
	}
	return create(place, op.String(), op, dt, shape, seed, 0, 1)
}

// create records a creation op with its first nargs scalars. name is the function that the user
// called.
func create(place stream.Place, name string, op ir.Op, dt DType, shape []int, a, b uint64, nargs int) *Tensor {
	s := append(ir.Shape{}, shape...)
	if err := s.Check(); err != nil {
		return failedAt(place, name, shapeErr("%v", err))
	}
	r := newSigned()
	args := [...]stream.Arg{{Bits: a}, {Bits: b}}
	stream.Record(&r.v, place, op, dt, s, nil, args[:nargs])
	r.signed(op.String(), nil, args[:nargs])
	return r
}

// failedAt returns the tensor of a failed creation. It belongs to its place, so the stream's Err
// reports the error.
func failedAt(place stream.Place, op string, err error) *Tensor {
	r := new(Tensor)
	stream.Fail(&r.v, place, op, err, nil)
	return r
}
