package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// FFT is the discrete Fourier transform over the last axes, one for each
// length; the inverse is divided by the product of the lengths. A real
// transform's spectrum has the first n/2+1 numbers of its last axis: the others
// are their conjugates. Of the first of these, and of the last where n is even,
// the inverse real transform does not read the imaginary part. Lengths are those
// of the axes, in the inverse real transform those of the result's, and may be
// any numbers from 1.
func (f *Function) FFT(operand compute.Value, fftType compute.FFTType, fftLength []int) (compute.Value, error) {
	const op = compute.OpTypeFFT
	lengths := slices.Clone(fftLength)
	return f.build(op, []compute.Value{operand}, func(in []*Node) (*Node, error) {
		shape, err := transformed(in[0].shape, fftType, lengths)
		if err != nil {
			return nil, errors.WithMessagef(err, "%s of %v", fftType, lengths)
		}
		if err := f.builder.backend.holds("result", shape); err != nil {
			return nil, err
		}
		e := &expansion{f: f}
		n := e.fft(in[0], shape, fftType, lengths)
		return n, e.err
	})
}

// transformed is the shape of a transform's result.
func transformed(from shapes.Shape, fftType compute.FFTType, lengths []int) (shapes.Shape, error) {
	none := shapes.Invalid()
	to := from.Clone()
	switch dt := from.DType; fftType {
	case compute.FFTForward, compute.FFTInverse, compute.FFTInverseReal:
		row, ok := complexRows[dt]
		if !ok {
			return none, errors.Errorf("the operand must be complex64 or complex128")
		}
		if fftType == compute.FFTInverseReal {
			to.DType = row.part
		}
	case compute.FFTForwardReal:
		if to.DType = complexOf[dt]; to.DType == dtypes.InvalidDType {
			return none, errors.Errorf("the operand must be float32 or float64")
		}
	default:
		return none, errors.New("the transform is unknown")
	}
	first := from.Rank() - len(lengths)
	if len(lengths) == 0 || first < 0 {
		return none, errors.Errorf("%d lengths were given for %d axes", len(lengths), from.Rank())
	}
	for i, n := range lengths {
		axis := first + i
		want, last := n, i == len(lengths)-1
		switch {
		case n < 1:
			return none, errors.Errorf("length %d; it must be at least 1", n)
		case last && fftType == compute.FFTInverseReal:
			want, to.Dimensions[axis] = n/2+1, n
		case last && fftType == compute.FFTForwardReal:
			to.Dimensions[axis] = n/2 + 1
		}
		if got := from.Dimensions[axis]; got != want {
			return none, errors.Errorf("axis %d has %d elements; a length of %d needs %d", axis, got, n, want)
		}
	}
	return to, nil
}

// fft transforms along one axis after another. The real side of a real transform
// is at the last one: it comes first there, and in the inverse last.
func (e *expansion) fft(x *Node, shape shapes.Shape, fftType compute.FFTType, lengths []int) *Node {
	const op = compute.OpTypeFFT
	re, im := x, (*Node)(nil)
	if x.isComplex() {
		re, im = x.re, x.im
	}
	if shape.IsZeroSize() || x.shape.IsZeroSize() {
		part := withDType(shape, re.shape.DType)
		none := e.get(e.f.BroadcastInDim(e.like(re, 0), part, nil))
		if !shape.DType.IsComplex() || e.err != nil {
			return none
		}
		return e.f.pair(op, none, none)
	}
	last := len(lengths) - 1
	first := x.shape.Rank() - len(lengths)
	rest := lengths
	if fftType == compute.FFTForwardReal || fftType == compute.FFTInverseReal {
		rest = lengths[:last]
	}
	if fftType == compute.FFTForwardReal {
		re, im = e.along(first+last, lengths[last]/2+1, 2, func(in []*tensor) []*tensor {
			return both(millrace.RFFT(in[0], 1))
		}, re)
	}
	transform := millrace.FFT
	if fftType == compute.FFTInverse || fftType == compute.FFTInverseReal {
		transform = millrace.IFFT
	}
	for i := len(rest) - 1; i >= 0; i-- {
		re, im = e.along(first+i, lengths[i], 2, func(in []*tensor) []*tensor {
			return both(transform(in[0], in[1], 1))
		}, re, im)
	}
	if fftType == compute.FFTInverseReal {
		n := lengths[last]
		re, im = e.along(first+last, n, 1, func(in []*tensor) []*tensor {
			return []*tensor{millrace.IRFFT(in[0], in[1], n, 1)}
		}, re, im)
	}
	if e.err != nil {
		return broken
	}
	if im == nil {
		return re
	}
	return e.f.pair(op, re, im)
}

func both(re, im *tensor) []*tensor { return []*tensor{re, im} }

// along transforms the parts of a value along an axis, of which keep elements come: as the axis
// in the middle of three. The result has as many parts.
func (e *expansion) along(axis, keep, parts int, do func(in []*tensor) []*tensor, in ...*Node) (re, im *Node) {
	if e.err != nil {
		return broken, broken
	}
	dims := slices.Clone(in[0].shape.Dimensions)
	before, have, behind := product(dims[:axis]), dims[axis], product(dims[axis+1:])
	flat := make([]*Node, len(in))
	for i, n := range in {
		flat[i] = e.reshape(n, before, have, behind)
	}
	if e.err != nil {
		return broken, broken
	}
	shape := shapes.Make(in[0].shape.DType, before, keep, behind)
	n := e.f.addMany(compute.OpTypeFFT, slices.Repeat([]shapes.Shape{shape}, parts), func(_ *run, in []*tensor) []*tensor { return do(in) }, flat...)
	dims[axis] = keep
	re = e.reshape(n.values[0], dims...)
	if parts == 2 {
		im = e.reshape(n.values[1], dims...)
	}
	return re, im
}

func (e *expansion) reshape(x *Node, dims ...int) *Node { return e.get(e.f.Reshape(x, dims...)) }

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
