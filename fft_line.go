package millrace

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"
)

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
func (l line) whole(x *Tensor) *Tensor {
	const row, from, outer, element, to, kept = 0, 1, 2, 3, 4, 5
	parts, have := x.Dim(1), x.Dim(3)
	matrix := l.matrix(x, parts, have)
	r := contract("fft", x, []int{row, from, outer, element}, matrix, []int{from, element, to, kept}, []int{row, to, outer, kept}, []int{from, element})
	done(matrix)
	return r
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
func (l line) inSteps(n1 int, x *Tensor) *Tensor {
	n2 := l.n / n1
	rows, more := x.Dim(0), x.Dim(2)
	lines := l.firstStep(n1, x)
	keep := (l.keep + n1 - 1) / n1
	second := line{n: n2, inverse: l.inverse, keep: keep, parts: l.parts}.transform(lines)
	out := second.Reshape(rows, l.parts, more, n1, keep)
	order := out.Transpose(3, 4)
	all := order.Reshape(rows, l.parts, more, keep*n1)
	r := all.Slice(All, All, All, R(0, l.keep))
	done(lines, second, out, order, all)
	return r
}

// firstStep transforms along j1 and multiplies by roots of unity. It gives n1 lines of n2
// elements for each line of x.
func (l line) firstStep(n1 int, x *Tensor) *Tensor {
	n2 := l.n / n1
	rows, parts, more, have := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	some := (have + n2 - 1) / n2
	padded := x
	if zeros := some*n2 - have; zeros > 0 {
		padded = x.Pad(0, Padding{After: zeros})
		defer done(padded)
	}
	split := padded.Reshape(rows, parts, more, some, n2)
	first := line{n: n1, inverse: l.inverse, keep: n1, parts: 2}.along(split)
	twiddles := l.twiddles(n1, x)
	twisted := timesEach(first, twiddles, l.inverse)
	lines := twisted.Reshape(rows, 2, more*n1, n2)
	done(split, first, twiddles, twisted)
	return lines
}

// along multiplies by the matrix of all roots along the second-to-last dimension.
func (l line) along(x *Tensor) *Tensor {
	const row, from, outer, slow, fast, to, kept = 0, 1, 2, 3, 4, 5, 6
	matrix := l.matrix(x, x.Dim(1), x.Dim(3))
	r := contract("fft", x, []int{row, from, outer, slow, fast}, matrix, []int{from, slow, to, kept}, []int{row, to, outer, kept, fast}, []int{from, slow})
	done(matrix)
	return r
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
func (l line) toSteps(x *Tensor) *Tensor {
	n1 := radix(l.n)
	if n1 == l.n {
		return l.whole(x)
	}
	n2 := l.n / n1
	lines := l.firstStep(n1, x)
	second := line{n: n2, inverse: l.inverse, keep: n2, parts: 2}.toSteps(lines)
	r := second.Reshape(x.Dim(0), 2, x.Dim(2), l.n)
	done(lines, second)
	return r
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
func (l line) fromSteps(x *Tensor) *Tensor {
	n1 := radix(l.n)
	if n1 == l.n {
		return l.whole(x)
	}
	n2 := l.n / n1
	rows, more := x.Dim(0), x.Dim(2)
	lines := x.Reshape(rows, 2, more*n1, n2)
	first := line{n: n2, inverse: l.inverse, keep: n2, parts: 2}.fromSteps(lines)
	split := first.Reshape(rows, 2, more, n1, n2)
	twiddles := l.twiddles(n1, x)
	twisted := timesEach(split, twiddles, l.inverse)
	some := (l.keep + n2 - 1) / n2
	second := line{n: n1, inverse: l.inverse, keep: some, parts: 2}.along(twisted)
	all := second.Reshape(rows, 2, more, some*n2)
	r := all.Slice(All, All, All, R(0, l.keep))
	done(lines, first, split, twiddles, twisted, second, all)
	return r
}

// chirp computes the transform as a convolution with a chirp (Bluestein), by 2jk = j² + k² -
// (k-j)². The convolution is a product of spectra with a power of two of elements; the chirp's
// spectrum is a table.
func (l line) chirp(x *Tensor) *Tensor {
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
		defer done(in)
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
	back := line{n: size, inverse: true, keep: l.keep, parts: 2}.fromSteps(both)
	y := timesEach(back, out, l.inverse)
	done(rising, spectrum, of, both, back, out)
	if l.parts == 1 {
		one := y.Slice(All, R(0, 1))
		done(y)
		y = one
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
func timesEach(x, w *Tensor, conjugates bool) *Tensor {
	signs := []float64{-1, 1}
	if conjugates {
		signs = []float64{1, -1}
	}
	real := x.Dim(1) == 1
	if real && !conjugates {
		return x.Mul(w)
	}
	if real {
		signs = []float64{1, -1}
	}
	column := slices.Repeat([]int{1}, w.Rank())
	column[1] = 2
	sign := floatTable(x, signs, column...)
	if real {
		turned := w.Mul(sign)
		r := x.Mul(turned)
		done(sign, turned)
		return r
	}
	re, im := w.Slice(All, R(0, 1)), w.Slice(All, R(1, 2))
	crossed := im.Mul(sign)
	a := x.Mul(re)
	flipped := x.Flip(1)
	b := flipped.Mul(crossed)
	r := a.Add(b)
	done(sign, re, im, crossed, a, flipped, b)
	return r
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
