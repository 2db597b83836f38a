package gomlxbackend

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
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
		return none, errors.New("there is no such transform")
	}
	first := from.Rank() - len(lengths)
	if len(lengths) == 0 || first < 0 {
		return none, errors.Errorf("%d lengths for %d axes", len(lengths), from.Rank())
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
	inverse := fftType == compute.FFTInverse || fftType == compute.FFTInverseReal
	first := x.shape.Rank() - len(lengths)
	last := len(lengths) - 1
	total := 1
	for _, n := range lengths {
		total *= n
	}
	along := func(i int) {
		l := line{n: lengths[i], inverse: inverse, keep: lengths[i], parts: 2}
		re, im = e.along(l, first+i, re, im)
	}
	switch fftType {
	case compute.FFTForwardReal:
		n := lengths[last]
		re, im = e.along(line{n: n, keep: n/2 + 1, parts: 2}, first+last, re, nil)
	case compute.FFTForward, compute.FFTInverse:
		along(last)
	}
	for i := last - 1; i >= 0; i-- {
		along(i)
	}
	if fftType == compute.FFTInverseReal {
		n := lengths[last]
		re, im = e.bothHalves(re, im, first+last, n)
		re, im = e.along(line{n: n, inverse: true, keep: n, parts: 1}, first+last, re, im)
	}
	if e.err != nil {
		return broken
	}
	if inverse && total > 1 {
		by := e.like(re, float64(total))
		if re = e.div(re, by); im != nil {
			im = e.div(im, by)
		}
	}
	if im == nil || e.err != nil {
		return re
	}
	return e.f.pair(op, re, im)
}

// bothHalves doubles the numbers of half a spectrum that have a conjugate in the
// other half: the real part of a sum over one half is then that over both. The
// others' imaginary parts are not read: no step of the transform has to cancel
// them.
func (e *expansion) bothHalves(re, im *Node, axis, n int) (*Node, *Node) {
	if e.err != nil {
		return broken, broken
	}
	dims := slices.Repeat([]int{1}, re.shape.Rank())
	dims[axis] = n/2 + 1
	weights := e.table(fmt.Sprint("both halves of ", n), re.shape.DType, dims, func(i int) float64 {
		if i == 0 || 2*i == n {
			return 1
		}
		return 2
	})
	alone := e.get(e.f.BroadcastInDim(e.is(weights, 1), withDType(re.shape, dtypes.Bool), kept(len(dims), nil)))
	return e.mul(re, weights), e.where(alone, e.like(im, 0), e.mul(im, weights))
}

// along transforms along one axis. Without an imaginary part it is 0; of a line
// with one part the result has none.
func (e *expansion) along(l line, axis int, re, im *Node) (*Node, *Node) {
	if e.err != nil {
		return broken, broken
	}
	if l.n == 1 {
		switch {
		case l.parts == 1:
			im = nil
		case im == nil:
			im = e.zeros(re)
		}
		return re, im
	}
	dims := re.shape.Dimensions
	before, have, behind := product(dims[:axis]), dims[axis], product(dims[axis+1:])
	inRows := func(x *Node) *Node {
		return e.reshape(e.transpose(e.reshape(x, before, have, behind), 0, 2, 1), before*behind, 1, have)
	}
	x := inRows(re)
	if im != nil {
		x = e.sideBySide(x, inRows(im))
	}
	if behind > 1 {
		x = e.settled(x)
	}
	y := e.transform(l, x)
	to := slices.Clone(dims)
	to[axis] = l.keep
	part := func(i int) *Node {
		p := e.get(e.f.Slice(y, []int{0, i, 0}, []int{before * behind, i + 1, l.keep}, nil))
		return e.reshape(e.transpose(e.reshape(p, before, behind, l.keep), 0, 2, 1), to...)
	}
	if l.parts == 1 {
		return part(0), nil
	}
	return part(0), part(1)
}

// sideBySide are parts along the axis in the middle, where they have one
// element. As a choice it is cheaper than to write one behind the other.
func (e *expansion) sideBySide(re, im *Node) *Node {
	if e.err != nil {
		return broken
	}
	shape := re.shape.Clone()
	shape.Dimensions[1] = 2
	wide := func(n *Node) *Node {
		return e.get(e.f.BroadcastInDim(n, withDType(shape, n.shape.DType), []int{0, 1, 2}))
	}
	first := e.get(e.f.Constant([]bool{true, false}, 1, 2, 1))
	return e.where(wide(first), wide(re), wide(im))
}

func (e *expansion) reshape(x *Node, dims ...int) *Node { return e.get(e.f.Reshape(x, dims...)) }

func (e *expansion) transpose(x *Node, axes ...int) *Node { return e.get(e.f.Transpose(x, axes...)) }

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
