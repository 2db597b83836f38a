package millrace

import "slices"

// A complex tensor is two real ones of one shape and dtype, its real and its imaginary parts.
// Transforms are products with small matrices of roots of unity: their time grows with n·log n
// for any length n.

// FFT is the discrete Fourier transform along an axis of the complex numbers re + i·im: NumPy's
// and PyTorch's fft. Number k of a line of n is the sum of x[j]·exp(-2πi·jk/n) over j. A nil im
// stands for zeros. Transforms along several axes are made one after another.
//
// Floats only, of one dtype, else ErrDType; 16-bit ones are transformed in Float32. Parts of
// different shapes, and an axis that is not there or has no elements or more than 2^28, are ErrShape.
func FFT(re, im *Tensor, axis int) (outRe, outIm *Tensor) {
	return fourier("fft", re, im, axis, func(n int) line { return line{n: n, keep: n, parts: 2} })
}

// IFFT undoes [FFT]: number j is the sum of x[k]·exp(2πi·jk/n) over k, by n.
func IFFT(re, im *Tensor, axis int) (outRe, outIm *Tensor) {
	return fourier("ifft", re, im, axis, func(n int) line { return line{n: n, inverse: true, keep: n, parts: 2} })
}

// RFFT is [FFT] of real numbers, of which it gives the first n/2+1: the others are their
// conjugates. It is NumPy's and PyTorch's rfft.
func RFFT(t *Tensor, axis int) (re, im *Tensor) {
	return fourier("rfft", t, nil, axis, func(n int) line { return line{n: n, keep: n/2 + 1, parts: 2} })
}

// IRFFT undoes [RFFT]: of n/2+1 numbers along the axis, else ErrShape, it makes n real ones. Of
// the first, and of the last where n is even, the imaginary part is not read: of a real line
// it is 0. It is NumPy's and PyTorch's irfft, and otherwise as [IFFT]. An n below 1 is ErrShape.
func IRFFT(re, im *Tensor, n, axis int) *Tensor {
	const name = "irfft"
	h := hold(name, &re, &im)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	a, err := complexAxis(re, im, axis)
	if err == nil && (n < 1 || re.shape()[a] != n/2+1) {
		err = shapeErr("%v along axis %d is no half of a spectrum of %d", re.shape(), axis, n)
	}
	if err != nil {
		return failed(name, err, re, im)
	}
	x, y := widened(re), widened(im)
	twiceRe, twiceIm := bothHalves(x, y, a, n)
	r, _ := alongAxis(line{n: n, inverse: true, keep: n, parts: 1}, a, twiceRe, twiceIm)
	done(x, y, twiceRe, twiceIm)
	return narrowed(r, re.DType())
}

// fourier checks the operands of a transform, and makes it. im may be nil.
func fourier(name string, re, im *Tensor, axis int, of func(n int) line) (outRe, outIm *Tensor) {
	h := hold(name, &re)
	defer h.end()
	if im != nil {
		h.add(name, &im)
	}
	if h.bad != nil {
		return h.bad, h.bad
	}
	a, err := complexAxis(re, im, axis)
	if err != nil {
		r := failed(name, err, re, im)
		return r, r
	}
	x, y := widened(re), widened(im)
	outRe, outIm = alongAxis(of(re.shape()[a]), a, x, y)
	done(x, y)
	return narrowed(outRe, re.DType()), narrowed(outIm, re.DType())
}

func complexAxis(re, im *Tensor, axis int) (int, error) {
	switch {
	case !re.DType().IsFloat():
		return 0, dtypeErr("%v tensor: floats only, use Cast", re.DType())
	case im != nil && im.DType() != re.DType():
		return 0, dtypeErr("parts of %v and %v; use Cast", re.DType(), im.DType())
	case im != nil && !im.shape().Equal(re.shape()):
		return 0, shapeErr("parts of %v and %v", re.shape(), im.shape())
	}
	list, err := axesOf([]int{axis}, re.Rank())
	switch {
	case err != nil:
	case re.shape()[list[0]] == 0:
		err = shapeErr("axis %d of %v has no elements", axis, re.shape())
	case re.shape()[list[0]] > maxTable:
		err = shapeErr("axis %d of %v: more than %d elements", axis, re.shape(), maxTable)
	}
	if err != nil {
		return 0, err
	}
	return list[0], nil
}

// widened is t in the dtype that it is computed in, a new handle; nil where t is.
func widened(t *Tensor) *Tensor {
	if t == nil || !t.DType().Storage() {
		return still(t)
	}
	return t.Cast(t.DType().Compute())
}

// bothHalves doubles the numbers of half a spectrum that have a conjugate in the other half: the
// real part of a sum over one half is then that over both. The others' imaginary parts are not
// read: no step of the transform has to cancel them.
func bothHalves(re, im *Tensor, axis, n int) (outRe, outIm *Tensor) {
	weights := make([]float64, n/2+1)
	alone := make([]bool, len(weights))
	for i := range weights {
		weights[i] = 2
		if alone[i] = i == 0 || 2*i == n; alone[i] {
			weights[i] = 1
		}
	}
	column := slices.Repeat([]int{1}, re.Rank())
	column[axis] = len(weights)
	w, mask := floatTable(re, weights, column...), FromSliceOn(re.Stream(), alone, column...)
	outRe = re.Mul(w)
	twice := im.Mul(w)
	outIm = twice.MaskedFill(mask, 0)
	done(w, mask, twice)
	return outRe, outIm
}

// alongAxis transforms along one axis, and divides what is inverse. Without an imaginary part it
// is 0; of a line with one part the result has none.
func alongAxis(l line, axis int, re, im *Tensor) (outRe, outIm *Tensor) {
	dims := re.shape()
	before, have, behind := product(dims[:axis]), dims[axis], product(dims[axis+1:])
	inRows := func(x *Tensor) *Tensor {
		flat := x.Reshape(before, have, behind)
		turned := flat.Permute(0, 2, 1)
		r := turned.Reshape(before*behind, 1, 1, have)
		done(flat, turned)
		return r
	}
	x := inRows(re)
	if im != nil {
		a, b := x, inRows(im)
		x = Concat(1, a, b)
		done(a, b)
	}
	y := l.transform(x)
	done(x)
	if l.inverse && l.n > 1 {
		scaled := y.DivScalar(float64(l.n))
		done(y)
		y = scaled
	}
	to := slices.Clone(dims)
	to[axis] = l.keep
	part := func(i int) *Tensor {
		p := y.Slice(All, At(i), At(0))
		flat := p.Reshape(before, behind, l.keep)
		turned := flat.Permute(0, 2, 1)
		r := turned.Reshape(to...)
		done(p, flat, turned)
		return r
	}
	outRe = part(0)
	if l.parts == 2 {
		outIm = part(1)
	}
	done(y)
	return outRe, outIm
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}
