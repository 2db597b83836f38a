package millrace

import "slices"

// A complex tensor is represented by two real tensors of one shape and dtype: the real and the
// imaginary parts. Transforms multiply by small matrices of roots of unity, and take time
// proportional to n·log n for any length n.

// FFT computes the discrete Fourier transform of the complex numbers re + i·im along an axis:
// NumPy's and PyTorch's fft. For a line x of n numbers, number k of the result is the sum of
// x[j]·exp(-2πi·jk/n) over j. A nil im stands for zeros. [FFTN] transforms along several axes.
//
// Both parts have one float dtype, else ErrDType; 16-bit floats are transformed in Float32. Parts
// of different shapes are ErrShape, and so is an axis that does not exist, has no elements or has
// more than 2^28.
func FFT(re, im *Tensor, axis int) (outRe, outIm *Tensor) {
	return fourier("fft", re, im, []int{axis}, fftLine)
}

// IFFT inverts [FFT]: number j is the sum of X[k]·exp(2πi·jk/n) over k, divided by n. It is
// NumPy's and PyTorch's ifft.
func IFFT(re, im *Tensor, axis int) (outRe, outIm *Tensor) {
	return fourier("ifft", re, im, []int{axis}, ifftLine)
}

// RFFT is [FFT] of real numbers: NumPy's and PyTorch's rfft. It returns the first n/2+1 numbers;
// the others are their conjugates.
func RFFT(t *Tensor, axis int) (re, im *Tensor) {
	return fourier("rfft", t, nil, []int{axis}, rfftLine)
}

// IRFFT inverts [RFFT]: it makes n real numbers from n/2+1 complex ones along the axis (else
// ErrShape). It is NumPy's and PyTorch's irfft. It does not read the imaginary part of the first
// number, nor that of the last if n is even, because these are 0 for a real line. Dtypes and
// other errors are those of [IFFT]. An n below 1 is ErrShape.
func IRFFT(re, im *Tensor, n, axis int) *Tensor {
	return realOf("irfft", re, im, n, []int{axis})
}

// fftLine, ifftLine and rfftLine describe a transform along an axis of n elements, which is the
// last of the axes if last is set.
func fftLine(n int, _ bool) line  { return line{n: n, keep: n, parts: 2} }
func ifftLine(n int, _ bool) line { return line{n: n, inverse: true, keep: n, parts: 2} }
func rfftLine(n int, last bool) line {
	if !last {
		return fftLine(n, last)
	}
	return line{n: n, keep: n/2 + 1, parts: 2}
}

// fourier checks the operands of a transform and transforms along each axis in turn, the last one
// first. im may be nil.
func fourier(name string, re, im *Tensor, axes []int, of func(n int, last bool) line) (outRe, outIm *Tensor) {
	h := hold(name, &re)
	defer h.end()
	if im != nil {
		h.add(name, &im)
	}
	if h.bad != nil {
		return twoFailures(name, h.bad)
	}
	list, err := complexAxes(re, im, axes)
	if err != nil {
		return twoFailures(name, failed(name, err, re, im))
	}
	outRe, outIm = widened(re), widened(im)
	for i, a := range slices.Backward(list) {
		x, y := outRe, outIm
		outRe, outIm = alongAxis(of(x.shape()[a], i == len(list)-1), a, x, y)
		done(x, y)
	}
	return narrowed(outRe, re.DType()), narrowed(outIm, re.DType())
}

// realOf transforms back to real numbers, n of them along the last of the axes.
func realOf(name string, re, im *Tensor, n int, axes []int) *Tensor {
	h := hold(name, &re, &im)
	defer h.end()
	if h.bad != nil {
		return h.bad
	}
	list, err := complexAxes(re, im, axes)
	last := len(list) - 1
	if err == nil && (n < 1 || re.shape()[list[last]] != n/2+1) {
		err = shapeErr("%v along axis %d is no half of a spectrum of %d", re.shape(), list[last], n)
	}
	if err != nil {
		return failed(name, err, re, im)
	}
	x, y := widened(re), widened(im)
	for _, a := range list[:last] {
		a0, b0 := x, y
		x, y = alongAxis(ifftLine(x.shape()[a], false), a, a0, b0)
		done(a0, b0)
	}
	a := list[last]
	twiceRe, twiceIm := bothHalves(x, y, a, n)
	r, _ := alongAxis(line{n: n, inverse: true, keep: n, parts: 1}, a, twiceRe, twiceIm)
	done(x, y, twiceRe, twiceIm)
	return narrowed(r, re.DType())
}

// complexAxes checks the parts of complex numbers and resolves axes. No axes means all of them.
func complexAxes(re, im *Tensor, axes []int) ([]int, error) {
	switch {
	case !re.DType().IsFloat():
		return nil, dtypeErr("%v tensor: floats only, use Cast", re.DType())
	case im != nil && im.DType() != re.DType():
		return nil, dtypeErr("parts of %v and %v; use Cast", re.DType(), im.DType())
	case im != nil && !im.shape().Equal(re.shape()):
		return nil, shapeErr("parts of %v and %v", re.shape(), im.shape())
	}
	list, err := axesOf(axes, re.Rank())
	if len(axes) == 0 {
		for a := range re.Rank() {
			list = append(list, a)
		}
		if re.Rank() == 0 {
			err = shapeErr("a 0-d tensor has no axis")
		}
	}
	for _, a := range list {
		switch n := re.shape()[a]; {
		case err != nil:
		case n == 0:
			err = shapeErr("axis %d of %v has no elements", a, re.shape())
		case n > maxTable:
			err = shapeErr("axis %d of %v: more than %d elements", a, re.shape(), maxTable)
		}
	}
	return list, err
}

// widened returns a new handle of t in the dtype that computes it, or nil if t is nil.
func widened(t *Tensor) *Tensor {
	if t == nil || !t.DType().Storage() {
		return still(t)
	}
	return t.Cast(t.DType().Compute())
}

// bothHalves doubles those numbers of half a spectrum whose conjugate is in the other half. The
// real part of a sum over one half is then the sum over both. It sets the imaginary parts of the
// other numbers to 0, so no step of the transform must cancel them.
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

// alongAxis transforms along one axis, and divides an inverse transform by its length. A nil im
// means imaginary parts of 0. outIm is nil for a line with one part.
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
