package millrace

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"
	"sync"
)

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

// IFFT inverts [FFT]: number j is the sum of X[k]·exp(2πi·jk/n) over k, divided by n. It is NumPy's
// and PyTorch's ifft. Shapes, dtypes and errors are those of FFT.
func IFFT(re, im *Tensor, axis int) (outRe, outIm *Tensor) {
	return fourier("ifft", re, im, []int{axis}, ifftLine)
}

// RFFT is [FFT] of real numbers: NumPy's and PyTorch's rfft. It returns the first n/2+1 numbers;
// the others are their conjugates. Both parts have t's dtype, and t's shape but for the axis.
// Dtypes and errors are those of FFT.
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
	c := compose(name, nil, &re, optional(&im))
	defer c.end(&outRe, &outIm)
	if c.bad != nil {
		return twoFailures(name, c.bad)
	}
	list, err := complexAxes(re, im, axes)
	if err != nil {
		return twoFailures(name, failed(name, err, re, im))
	}
	outRe, outIm = widened(re), widened(im)
	p := within(re)
	for i, a := range slices.Backward(list) {
		outRe, outIm = alongAxis(of(outRe.shape()[a], i == len(list)-1), a, outRe, outIm)
		p.end(&outRe, &outIm)
	}
	return inDType(outRe, re.DType()), inDType(outIm, re.DType())
}

// realOf transforms back to real numbers, n of them along the last of the axes.
func realOf(name string, re, im *Tensor, n int, axes []int) (r *Tensor) {
	c := compose(name, nil, &re, &im)
	defer c.end(&r)
	if c.bad != nil {
		return c.bad
	}
	list, err := complexAxes(re, im, axes)
	last := len(list) - 1
	if err == nil && (n < 1 || re.shape()[list[last]] != n/2+1) {
		err = shapeErr("%v along axis %d is not half of a spectrum of %d", re.shape(), list[last], n)
	}
	if err != nil {
		return failed(name, err, re, im)
	}
	x, y := widened(re), widened(im)
	p := within(re)
	for _, a := range list[:last] {
		x, y = alongAxis(ifftLine(x.shape()[a], false), a, x, y)
		p.end(&x, &y)
	}
	a := list[last]
	x, y = bothHalves(x, y, a, n)
	r, _ = alongAxis(line{n: n, inverse: true, keep: n, parts: 1}, a, x, y)
	return inDType(r, re.DType())
}

// complexAxes checks the parts of complex numbers and resolves axes. No axes means all of them.
func complexAxes(re, im *Tensor, axes []int) ([]int, error) {
	switch {
	case !re.DType().IsFloat():
		return nil, dtypeErr("%v is not a float dtype; use Cast", re.DType())
	case im != nil && im.DType() != re.DType():
		return nil, dtypeErr("the parts are %v and %v; use Cast", re.DType(), im.DType())
	case im != nil && !im.shape().Equal(re.shape()):
		return nil, shapeErr("the parts are %v and %v", re.shape(), im.shape())
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
			err = shapeErr("axis %d of %v has more than %d elements", a, re.shape(), maxTable)
		}
	}
	return list, err
}

// widened returns t in the dtype that computes it, or nil if t is nil.
func widened(t *Tensor) *Tensor {
	if t == nil {
		return nil
	}
	return inDType(t, t.DType().Compute())
}

// bothHalves doubles those numbers of half a spectrum whose conjugate is in the other half. The
// real part of a sum over one half is then the sum over both. It sets the imaginary parts of the
// other numbers to 0, so no step of the transform must cancel them.
func bothHalves(re, im *Tensor, axis, n int) (outRe, outIm *Tensor) {
	defer within(re).end(&outRe, &outIm)
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
	w, mask := floatTable(re, weights, column...), FromSliceOn(beside(re), alone, column...)
	return re.Mul(w), im.Mul(w).MaskedFill(mask, 0)
}

// alongAxis transforms along one axis, and divides an inverse transform by its length. A nil im
// means imaginary parts of 0. outIm is nil for a line with one part.
func alongAxis(l line, axis int, re, im *Tensor) (outRe, outIm *Tensor) {
	p := within(re)
	defer p.end(&outRe, &outIm)
	dims := re.shape()
	before, have, behind := product(dims[:axis]), dims[axis], product(dims[axis+1:])
	inRows := func(x *Tensor) *Tensor {
		return x.Reshape(before, have, behind).Permute(0, 2, 1).Reshape(before*behind, 1, 1, have)
	}
	x := inRows(re)
	if im != nil {
		x = Concat(1, x, inRows(im))
	}
	p.end(&x)
	y := l.transform(x)
	p.end(&y)
	if l.inverse && l.n > 1 {
		y = y.DivScalar(float64(l.n))
		p.end(&y)
	}
	to := slices.Clone(dims)
	to[axis] = l.keep
	part := func(i int) *Tensor {
		return y.Slice(All, At(i), At(0)).Reshape(before, behind, l.keep).Permute(0, 2, 1).Reshape(to...)
	}
	if outRe = part(0); l.parts == 2 {
		outIm = part(1)
	}
	return outRe, outIm
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// FFTN is [FFT] along several axes in turn, or along all axes if none is given: NumPy's and
// PyTorch's fftn. FFTN(re, im, -2, -1) is their fft2. An axis that is given twice is ErrShape, and
// so is a 0-d tensor, because it has no axes. Dtypes and other errors are those of FFT.
func FFTN(re, im *Tensor, axes ...int) (outRe, outIm *Tensor) {
	return fourier("fftn", re, im, axes, fftLine)
}

// IFFTN inverts [FFTN]: NumPy's and PyTorch's ifftn. Shapes, dtypes and errors are those of FFTN.
func IFFTN(re, im *Tensor, axes ...int) (outRe, outIm *Tensor) {
	return fourier("ifftn", re, im, axes, ifftLine)
}

// RFFTN is [RFFT] along the last of the axes, then [FFT] along the others: NumPy's and PyTorch's
// rfftn. Along the last axis it returns n/2+1 of the n numbers. Dtypes and errors are those of
// [FFTN].
func RFFTN(t *Tensor, axes ...int) (re, im *Tensor) {
	return fourier("rfftn", t, nil, axes, rfftLine)
}

// IRFFTN inverts [RFFTN]: it applies [IFFT] along all axes but the last, then [IRFFT] along the
// last, which makes n real numbers there. It is NumPy's and PyTorch's irfftn. Dtypes and errors are
// those of [FFTN] and IRFFT.
func IRFFTN(re, im *Tensor, n int, axes ...int) *Tensor {
	return realOf("irfftn", re, im, n, axes)
}

// tables has the tables of earlier transforms, in the form of a tensor's elements, by their keys.
// If they take more than tableBytes, the oldest ones are dropped.
var tables struct {
	mu    sync.Mutex
	byKey map[string]numbers
	order []string
	bytes int
}

// tableBytes is enough for the tables of a line of about a million numbers whose length is a
// prime.
const tableBytes = 128 << 20

// maxTable is the largest dimension for which a table is made. A recorded tensor may have any
// size, because it takes no memory yet; a table takes memory at once.
const maxTable = 1 << 28

// numbers are the elements of a table, as Float32 or as Float64.
type numbers struct {
	narrow []float32
	wide   []float64
}

func (n numbers) bytes() int { return 4*len(n.narrow) + 8*len(n.wide) }

// table returns a constant with x's dtype, on x's stream.
func table(x *Tensor, name string, dims []int, value func(i int) float64) *Tensor {
	return kept(x, name, dims, func(list []float64) {
		for i := range list {
			list[i] = value(i)
		}
	})
}

// complexTable returns a table of complex numbers, with the parts along axis 1. Axis 1 is the
// first dimension that is not 1.
func complexTable(x *Tensor, name string, dims []int, value func(i int) complex128) *Tensor {
	return kept(x, name, dims, func(list []float64) {
		n := len(list) / 2
		for i := range n {
			w := value(i)
			list[i], list[n+i] = real(w), imag(w)
		}
	})
}

// kept returns a table that is filled once, and filled again only if it was dropped.
func kept(x *Tensor, name string, dims []int, fill func(list []float64)) *Tensor {
	key := fmt.Sprint(name, dims, x.DType())
	tables.mu.Lock()
	list, known := tables.byKey[key]
	tables.mu.Unlock()
	if !known {
		list.wide = make([]float64, product(dims))
		fill(list.wide)
		if x.DType() != Float64 {
			list.narrow, list.wide = narrow(list.wide), nil
		}
		keep(key, list)
	}
	if list.narrow != nil {
		return FromSliceOn(beside(x), list.narrow, dims...)
	}
	return FromSliceOn(beside(x), list.wide, dims...)
}

func keep(key string, list numbers) {
	tables.mu.Lock()
	defer tables.mu.Unlock()
	if _, known := tables.byKey[key]; known || list.bytes() > tableBytes {
		return
	}
	if tables.byKey == nil {
		tables.byKey = map[string]numbers{}
	}
	for tables.bytes+list.bytes() > tableBytes {
		oldest := tables.order[0]
		tables.order = slices.Delete(tables.order, 0, 1)
		tables.bytes -= tables.byKey[oldest].bytes()
		delete(tables.byKey, oldest)
	}
	tables.byKey[key] = list
	tables.order = append(tables.order, key)
	tables.bytes += list.bytes()
}

// powerOfTwo transforms a table's elements in place. Their number is a power of two.
func powerOfTwo(x []complex128) {
	n := len(x)
	shift := 64 - bits.Len(uint(n-1))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); i < j {
			x[i], x[j] = x[j], x[i]
		}
	}
	roots := make([]complex128, n/2)
	for i := range roots {
		roots[i] = root(i, n, true)
	}
	for half := 1; half < n; half *= 2 {
		step := n / (2 * half)
		for i := 0; i < n; i += 2 * half {
			low, high := x[i:i+half], x[i+half:i+2*half]
			for k, a := range low {
				y := roots[k*step] * high[k]
				low[k], high[k] = a+y, a-y
			}
		}
	}
}

// line is a transform of n numbers along one axis. The operand has numbers 0 to have-1; the
// others are 0. The result has the first keep numbers. They are not divided by n.
type line struct {
	n       int
	inverse bool
	keep    int
	parts   int // parts of the result: 1 means the real part only
}

// A transform's operand and result have four axes: the rows, the parts (2, or 1 for a real
// number), the lines that earlier steps made, and the elements. With parts and elements as summed
// axes, a product with a complex matrix becomes one product with a real matrix.

// maxRadix is the largest length that one product with the matrix of all roots transforms.
// Processors multiply matrices much faster than they do anything else, so shorter steps cost more
// in passes over memory than they save.
const maxRadix = 64

// maxPrimeRadix is maxRadix for primes. Their alternative is a convolution of at least twice the
// length.
const maxPrimeRadix = 128

// radix returns the first step of a transform of length n. If it is n, the transform is one
// product with a matrix. If it divides n, the first step transforms every n/radix-th element. If
// it is 0, the transform is a convolution. All steps are about equally long.
func radix(n int) int {
	if n <= maxRadix {
		return n
	}
	steps := math.Ceil(math.Log(float64(n)) / math.Log(maxRadix))
	ideal := math.Pow(float64(n), 1/steps)
	best, distance := 0, math.Inf(1)
	for d := 2; d <= maxRadix; d++ {
		if off := math.Abs(math.Log(float64(d) / ideal)); n%d == 0 && off < distance {
			best, distance = d, off
		}
	}
	if best > 0 {
		return best
	}
	for d := maxRadix + 1; d <= maxPrimeRadix; d++ {
		if n%d == 0 {
			return d
		}
	}
	return 0
}

// transform returns the transform l of x.
func (l line) transform(x *Tensor) *Tensor {
	switch s := radix(l.n); s {
	case l.n:
		return l.whole(x)
	case 0:
		return l.chirp(x)
	default:
		return l.inSteps(s, x)
	}
}

// whole is one product with the matrix of all roots of unity.
func (l line) whole(x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	const row, from, outer, element, to, kept = 0, 1, 2, 3, 4, 5
	matrix := l.matrix(x, x.Dim(1), x.Dim(3))
	return contract("fft", x, []int{row, from, outer, element}, matrix, []int{from, element, to, kept}, []int{row, to, outer, kept}, []int{from, element})
}

// matrix returns the matrix of roots for an operand with the given parts and have elements; its
// columns are the parts and elements of the result.
func (l line) matrix(x *Tensor, parts, have int) *Tensor {
	return table(x, fmt.Sprint("roots ", l), []int{parts, have, l.parts, l.keep}, func(i int) float64 {
		k, to := i%l.keep, i/l.keep%l.parts
		j, from := i/l.keep/l.parts%have, i/l.keep/l.parts/have
		w := root(j*k, l.n, !l.inverse)
		switch {
		case from == to:
			return real(w)
		case to == 1:
			return imag(w)
		}
		return -imag(w)
	})
}

// inSteps factors n as n1·n2 (Cooley and Tukey): element j1·n2 + j2 of x is transformed along j1,
// multiplied by a root of unity and transformed along j2. That gives element k2·n1 + k1.
func (l line) inSteps(n1 int, x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	n2 := l.n / n1
	rows, more := x.Dim(0), x.Dim(2)
	keep := (l.keep + n1 - 1) / n1
	second := line{n: n2, inverse: l.inverse, keep: keep, parts: l.parts}.transform(l.firstStep(n1, x))
	ordered := second.Reshape(rows, l.parts, more, n1, keep).Transpose(3, 4)
	return ordered.Reshape(rows, l.parts, more, keep*n1).Slice(All, All, All, R(0, l.keep))
}

// firstStep transforms along j1 and multiplies by roots of unity. It gives n1 lines of n2
// elements for each line of x.
func (l line) firstStep(n1 int, x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	n2 := l.n / n1
	rows, parts, more, have := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	some := (have + n2 - 1) / n2
	if zeros := some*n2 - have; zeros > 0 {
		x = x.Pad(0, Padding{After: zeros})
	}
	first := line{n: n1, inverse: l.inverse, keep: n1, parts: 2}.along(x.Reshape(rows, parts, more, some, n2))
	return timesEach(first, l.twiddles(n1, x), l.inverse).Reshape(rows, 2, more*n1, n2)
}

// along multiplies by the matrix of all roots along the second-to-last dimension.
func (l line) along(x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	const row, from, outer, slow, fast, to, kept = 0, 1, 2, 3, 4, 5, 6
	matrix := l.matrix(x, x.Dim(1), x.Dim(3))
	return contract("fft", x, []int{row, from, outer, slow, fast}, matrix, []int{from, slow, to, kept}, []int{row, to, outer, kept, fast}, []int{from, slow})
}

// twiddles returns the roots of unity between two steps, for the forward transform.
func (l line) twiddles(n1 int, x *Tensor) *Tensor {
	n2 := l.n / n1
	return complexTable(x, fmt.Sprint("twiddles ", l.n, " ", n1), []int{1, 2, 1, n1, n2}, func(i int) complex128 {
		return root(i/n2*(i%n2), l.n, true)
	})
}

// toSteps is a transform that leaves the results in the steps' order, at k1·n2 + k2. It keeps all
// numbers, and n is a power of two. fromSteps reads that order, so the results need not be
// sorted.
func (l line) toSteps(x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	n1 := radix(l.n)
	if n1 == l.n {
		return l.whole(x)
	}
	n2 := l.n / n1
	second := line{n: n2, inverse: l.inverse, keep: n2, parts: 2}.toSteps(l.firstStep(n1, x))
	return second.Reshape(x.Dim(0), 2, x.Dim(2), l.n)
}

// order lists, for each place of toSteps' result, the number of the transform that is there.
func (l line) order() []int {
	n1 := radix(l.n)
	n2 := l.n / n1
	behind := []int{0}
	if n2 > 1 {
		behind = line{n: n2}.order()
	}
	all := make([]int, 0, l.n)
	for k := range n1 {
		for _, place := range behind {
			all = append(all, place*n1+k)
		}
	}
	return all
}

// fromSteps transforms numbers in the order of toSteps' result. It does the steps from the last
// to the first: along k2, then along k1.
func (l line) fromSteps(x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	n1 := radix(l.n)
	if n1 == l.n {
		return l.whole(x)
	}
	n2 := l.n / n1
	rows, more := x.Dim(0), x.Dim(2)
	first := line{n: n2, inverse: l.inverse, keep: n2, parts: 2}.fromSteps(x.Reshape(rows, 2, more*n1, n2))
	twisted := timesEach(first.Reshape(rows, 2, more, n1, n2), l.twiddles(n1, x), l.inverse)
	some := (l.keep + n2 - 1) / n2
	second := line{n: n1, inverse: l.inverse, keep: some, parts: 2}.along(twisted)
	return second.Reshape(rows, 2, more, some*n2).Slice(All, All, All, R(0, l.keep))
}

// chirp computes the transform as a convolution with a chirp (Bluestein), by 2jk = j² + k² -
// (k-j)². The convolution is a product of spectra with a power of two of elements; the chirp's
// spectrum is a table.
func (l line) chirp(x *Tensor) (r *Tensor) {
	defer within(x).end(&r)
	have := x.Dim(3)
	size := 1 << bits.Len(uint(have+l.keep-2)) // at least have + keep - 1
	wave := func(j int) complex128 {           // j² may have more than 32 bits
		return root(int(int64(j)*int64(j)%int64(2*l.n)), 2*l.n, true)
	}
	waves := func(n int) *Tensor {
		return complexTable(x, fmt.Sprint("chirp ", l.n, " ", n), []int{1, 2, 1, n}, wave)
	}
	in := waves(have)
	out := in
	if l.keep != have {
		out = waves(l.keep)
	}
	rising := timesEach(x, in, l.inverse)
	whole := line{n: size, keep: size, parts: 2}
	spectrum := whole.toSteps(rising)
	var chirp []complex128
	var order []int
	of := complexTable(x, fmt.Sprint("spectrum ", l.n, " ", l.inverse, " ", l.keep, " ", have), []int{1, 2, 1, size}, func(i int) complex128 {
		if chirp == nil {
			chirp, order = l.chirpSpectrum(wave, have, size), whole.order()
		}
		return chirp[order[i]]
	})
	both := timesEach(spectrum, of, false)
	y := timesEach(line{n: size, inverse: true, keep: l.keep, parts: 2}.fromSteps(both), out, l.inverse)
	if l.parts == 1 {
		return y.Slice(All, R(0, 1))
	}
	return y
}

// chirpSpectrum returns the spectrum of the sequence that a line is convolved with. wave is the
// chirp of the forward transform.
func (l line) chirpSpectrum(wave func(j int) complex128, have, size int) []complex128 {
	s := make([]complex128, size)
	for j := range max(have, l.keep) {
		w := wave(j) / complex(float64(size), 0)
		if !l.inverse {
			w = cmplx.Conj(w)
		}
		if j < l.keep {
			s[j] = w
		}
		if j > 0 && j < have {
			s[size-j] = w
		}
	}
	powerOfTwo(s)
	return s
}

// timesEach multiplies complex numbers, with their parts along axis 1, by those of a table, or by
// the conjugates of those. A real number has one part.
func timesEach(x, w *Tensor, conjugates bool) (r *Tensor) {
	defer within(x).end(&r)
	real := x.Dim(1) == 1
	if real && !conjugates {
		return x.Mul(w)
	}
	signs := []float64{-1, 1}
	if conjugates {
		signs = []float64{1, -1}
	}
	column := slices.Repeat([]int{1}, w.Rank())
	column[1] = 2
	sign := floatTable(x, signs, column...)
	if real {
		return x.Mul(w.Mul(sign))
	}
	re, im := w.Slice(All, R(0, 1)), w.Slice(All, R(1, 2))
	crossed := im.Mul(sign)
	return x.Mul(re).Add(x.Flip(1).Mul(crossed))
}

// root returns e^(2πik/n), or e^(-2πik/n) if turned is set. It takes the sine and cosine of an
// angle of at most an eighth of a turn.
func root(k, n int, turned bool) complex128 {
	num, den := k%n, n
	sin, cos, swap := 1.0, 1.0, false
	if turned {
		sin = -1
	}
	if 2*num > den {
		num, sin = den-num, -sin
	}
	if 4*num > den {
		num, den, cos = den-2*num, 2*den, -1
	}
	if 8*num > den {
		num, den, swap = den-4*num, 4*den, true
	}
	s, c := math.Sincos(2 * math.Pi * float64(num) / float64(den))
	if swap {
		s, c = c, s
	}
	return complex(cos*c, sin*s)
}
