package millrace

import (
	"io"
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

// FromSliceOn is [FromSlice] in a place, with the same shapes, dtypes and errors. A nil place, or
// one that was not opened, gives a tensor with an error.
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
		return failedAt(place, op, shapeErr("%v has %d elements, the data has %d", s, s.Elems(), n))
	}
	r := place.tensor()
	stream.FromHost(&r.v, place.Place, dt, s, data)
	if signing() {
		r.signedAs(op, xxhash.Sum64(data), nil)
	}
	return r
}

// Scalar makes a 0-d tensor with this value. The dtype is T's. Errors are those of [FromSlice].
func Scalar[T Element](value T) *Tensor { return ScalarOn(anywhere{}, value) }

// ScalarOn is [Scalar] in a place, with the same shapes, dtypes and errors. A nil place, or one
// that was not opened, gives a tensor with an error.
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

// FullOn is [Full] in a place, with the same shapes, dtypes and errors. A nil place, or one that
// was not opened, gives a tensor with an error.
func FullOn(p Place, dt DType, value float64, shape ...int) *Tensor {
	return full(p, "full", dt, value, shape)
}

// Zeros makes a tensor of zeros, or of false. It is [Full] of 0, with the same shapes, dtypes and
// errors.
func Zeros(dt DType, shape ...int) *Tensor { return full(anywhere{}, "zeros", dt, 0, shape) }

// ZerosOn is [Zeros] in a place, with the same shapes, dtypes and errors. A nil place, or one that
// was not opened, gives a tensor with an error.
func ZerosOn(p Place, dt DType, shape ...int) *Tensor { return full(p, "zeros", dt, 0, shape) }

// Ones makes a tensor of ones, or of true. It is [Full] of 1, with the same shapes, dtypes and
// errors.
func Ones(dt DType, shape ...int) *Tensor { return full(anywhere{}, "ones", dt, 1, shape) }

// OnesOn is [Ones] in a place, with the same shapes, dtypes and errors. A nil place, or one that
// was not opened, gives a tensor with an error.
func OnesOn(p Place, dt DType, shape ...int) *Tensor { return full(p, "ones", dt, 1, shape) }

func full(p Place, name string, dt DType, value float64, shape []int) *Tensor {
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, name, err)
	}
	bits, ok := scalarBits(dt, value)
	if !dt.Tensor() {
		return failedAt(place, name, dtypeErr("%v is not a tensor dtype", dt))
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

// ArangeOn is [Arange] in a place, with the same shapes, dtypes and errors. A nil place, or one
// that was not opened, gives a tensor with an error.
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
		return failedAt(place, op, dtypeErr("%v is not a number dtype", dt))
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

// UniformOn is [Uniform] in a place, with the same shapes, dtypes and errors. A nil place, or one
// that was not opened, gives a tensor with an error.
func UniformOn(p Place, dt DType, seed uint64, shape ...int) *Tensor {
	return random(p, ir.Uniform, dt, seed, shape)
}

// Normal makes a tensor of independent random numbers from the standard normal distribution in a
// float dtype, else ErrDType. It applies the Box-Muller transform to the numbers of [Uniform]. On a
// GPU the numbers agree within the tolerance of Log and Cos. Shapes are as for [Full].
func Normal(dt DType, seed uint64, shape ...int) *Tensor {
	return random(anywhere{}, ir.Normal, dt, seed, shape)
}

// NormalOn is [Normal] in a place, with the same shapes, dtypes and errors. A nil place, or one
// that was not opened, gives a tensor with an error.
func NormalOn(p Place, dt DType, seed uint64, shape ...int) *Tensor {
	return random(p, ir.Normal, dt, seed, shape)
}

func random(p Place, op ir.Op, dt DType, seed uint64, shape []int) *Tensor {
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, op.String(), err)
	}
	if !dt.IsFloat() {
		return failedAt(place, op.String(), dtypeErr("%v is not a float dtype", dt))
	}
	return create(place, op.String(), op, dt, shape, seed, 0, 1)
}

// create records a creation op with its first nargs scalars. name is the function that the user
// called.
func create(place at, name string, op ir.Op, dt DType, shape []int, a, b uint64, nargs int) *Tensor {
	s := append(ir.Shape{}, shape...)
	if err := s.Check(); err != nil {
		return failedAt(place, name, shapeErr("%v", err))
	}
	r := place.tensor()
	args := [...]stream.Arg{{Bits: a}, {Bits: b}}
	stream.Record(&r.v, place.Place, op, dt, s, nil, args[:nargs])
	r.signed(op.String(), nil, args[:nargs])
	return r
}

// failedAt returns the tensor of a failed creation. It belongs to its place, so the stream's Err
// reports the error.
func failedAt(place at, op string, err error) *Tensor {
	r := new(Tensor)
	stream.Fail(&r.v, place.Place, op, err, nil)
	return r
}

// Linspace makes n numbers from start to stop, both included, at equal distances: NumPy's and
// PyTorch's linspace. A single number is start. Each number is computed in dt, or in Float32 for
// 16-bit floats, from the nearer end. The first and the last number are therefore start and stop,
// each rounded to dt once, and the error of the others is at most two units in the last place of
// the larger end. A dtype that is no float is ErrDType, and so are ends that dt cannot hold. Ends
// that are not finite, or a negative n, are ErrShape.
func Linspace(dt DType, start, stop float64, n int) *Tensor {
	return linspace(anywhere{}, "linspace", dt, start, stop, n)
}

// LinspaceOn is [Linspace] in a place, with the same shapes, dtypes and errors. A nil place, or one
// that was not opened, gives a tensor with an error.
func LinspaceOn(p Place, dt DType, start, stop float64, n int) *Tensor {
	return linspace(p, "linspace", dt, start, stop, n)
}

func linspace(p Place, op string, dt DType, start, stop float64, n int) (r *Tensor) {
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, op, err)
	}
	if !dt.IsFloat() {
		return failedAt(place, op, dtypeErr("%v is not a float dtype", dt))
	}
	switch {
	case n < 0:
		err = shapeErr("the number of elements %d is negative", n)
	case math.IsNaN(start - stop), math.IsInf(start, 0), math.IsInf(stop, 0):
		err = shapeErr("the distance from %v to %v is not finite", start, stop)
	case !finiteIn(dt, start) || !finiteIn(dt, stop):
		err = dtypeErr("%v cannot hold %v to %v", dt, start, stop)
	}
	if err != nil {
		return failedAt(place, op, err)
	}
	wide := dt.Compute()
	scale, step := spacing(wide, start, stop, n)
	place, c := composeIn(op, place)
	defer c.end(&r)
	i := create(place, op, ir.Iota, wide, []int{n}, 0, ir.FloatBits(wide, 1), 2)
	up := i.MulScalar(step).AddScalar(endIn(dt, wide, start) * scale)
	down := i.ScalarSub(float64(n - 1)).MulScalar(step).ScalarSub(endIn(dt, wide, stop) * scale)
	x := Where(i.LtScalar(float64(n)/2), up, down)
	if scale != 1 {
		x = x.MulScalar(1 / scale)
	}
	return inDType(x, dt)
}

// spacing returns the distance between neighbours of n numbers from start to stop, times scale, a
// power of two. scale brings numbers that dt cannot compute with into its range: it is a half if
// start and stop are further apart than the greatest number, and a large number if the distance
// is denormal.
func spacing(dt DType, start, stop float64, n int) (scale, step float64) {
	gaps := float64(max(n-1, 1))
	step = (stop - start) / gaps
	least := math.Ldexp(1, -126)
	raised := math.Ldexp(1, 64)
	if dt == Float64 {
		least, raised = math.Ldexp(1, -1022), math.Ldexp(1, 512)
	}
	switch {
	case !finiteIn(dt, stop-start):
		scale = 0.5
	case stop != start && math.Abs(step) < least:
		scale = raised
	default:
		return 1, step
	}
	return scale, (stop*scale - start*scale) / gaps
}

// finiteIn reports that x rounds to a finite number of a float dtype.
func finiteIn(dt DType, x float64) bool { return !math.IsInf(ir.BitsFloat(dt, ir.FloatBits(dt, x)), 0) }

// endIn returns x in a wider dtype. Rounding it from there to dt gives the same as rounding x to
// dt directly, although the wider dtype rounds it first.
func endIn(dt, wide DType, x float64) float64 {
	w, want := ir.BitsFloat(wide, ir.FloatBits(wide, x)), ir.BitsFloat(dt, ir.FloatBits(dt, x))
	if ir.BitsFloat(dt, ir.FloatBits(dt, w)) != want {
		return want
	}
	return w
}

// inDType returns x, or its cast to dtype dt if it has another one.
func inDType(x *Tensor, dt DType) *Tensor {
	if x.DType() == dt || x.DType() == Invalid {
		return x
	}
	return x.Cast(dt)
}

// FromReader makes a tensor from the bytes of its elements: in row-major order and little-endian,
// with a bool in one byte, of which every value but 0 is true. It reads as many bytes as the
// shape needs and no more; fewer are io.ErrUnexpectedEOF. Without a shape the tensor is 0-d.
//
// The elements are copied to the device piece by piece, so a large file is never in memory twice.
// Memory for all elements is allocated first: if the shape comes from an untrusted source,
// compare it with the size of r's data before the call. For whole files see the packages npy and
// safetensors.
func FromReader(r io.Reader, dt DType, shape ...int) (*Tensor, error) {
	return FromReaderOn(anywhere{}, r, dt, shape...)
}

// FromReaderOn is [FromReader] in a place, with the same shapes, dtypes and errors. A nil place, or
// one that was not opened, is an error.
func FromReaderOn(p Place, r io.Reader, dt DType, shape ...int) (*Tensor, error) {
	const op = "fromreader"
	place, err := placeOf(p)
	if err != nil {
		return nil, failure(op, err)
	}
	if !dt.Tensor() {
		return nil, failure(op, dtypeErr("%v is not a tensor dtype", dt))
	}
	if r == nil {
		return nil, failure(op, errNilReader)
	}
	t := new(Tensor)
	if err := stream.FromReader(&t.v, place.Place, dt, append(ir.Shape{}, shape...), r); err != nil {
		return nil, failure(op, err)
	}
	return t, nil
}

// WriteTo runs the ops that t needs and writes the bytes of its elements piece by piece, in the
// form that [FromReader] reads. It returns how many bytes were written, and the error that t
// carries, or that running or w reports.
func (t *Tensor) WriteTo(w io.Writer) (int64, error) {
	const op = "writeto"
	if !t.made() {
		return 0, failure(op, errNilTensor)
	}
	if err := t.Err(); err != nil {
		return 0, err
	}
	if w == nil {
		return 0, failure(op, errNilWriter, t)
	}
	n, err := stream.WriteTo(&t.v, w)
	if err != nil {
		return n, failure(op, err, t)
	}
	return n, nil
}
