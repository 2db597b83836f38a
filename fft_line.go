package millrace

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"
	"sync"
)

// line is a transform along one axis that reads elements 0 to have-1 of n, the others being
// 0, and gives the first keep. It is not divided by n.
type line struct {
	n       int
	inverse bool
	keep    int
	parts   int // of the result: 1 is the real part alone
}

// What is transformed, and what comes of it, has four axes: the rows, the parts (2, or 1 of a
// real number), what steps before this one left, the elements. Parts and elements together make
// the product with a complex matrix one with a real matrix.

// maxRadix is the largest length that is one product with the matrix of all roots. A processor
// multiplies matrices so much faster than it does anything else that steps shorter than
// this cost more in passes over memory than they save.
const maxRadix = 64

// maxPrimeRadix is the same for primes, whose other way is a convolution of at least twice
// the length.
const maxPrimeRadix = 128

// radix is how a transform of length n begins: as a product with a matrix where it is n itself,
// with the transforms of every n/radix-th element where it divides n, and as a convolution where
// it is 0. Steps are about equal.
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

// transform is l of x.
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

// whole is the product with the matrix of all roots of unity.
func (l line) whole(x *Tensor) *Tensor {
	const row, from, outer, element, to, kept = 0, 1, 2, 3, 4, 5
	parts, have := x.Dim(1), x.Dim(3)
	matrix := l.matrix(x, parts, have)
	r := contract("fft", x, []int{row, from, outer, element}, matrix, []int{from, element, to, kept}, []int{row, to, outer, kept}, []int{from, element})
	done(matrix)
	return r
}

// matrix takes parts of have elements, to parts of those that are kept.
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

// inSteps takes n as n1·n2 (Cooley and Tukey): element j1·n2 + j2 of x is transformed along j1,
// multiplied by a root of unity and transformed along j2, which gives element k2·n1 + k1.
func (l line) inSteps(n1 int, x *Tensor) *Tensor {
	const row, from, outer, slow, fast, to, kept = 0, 1, 2, 3, 4, 5, 6
	n2 := l.n / n1
	rows, parts, more, have := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	some := (have + n2 - 1) / n2
	padded := x
	if zeros := some*n2 - have; zeros > 0 {
		padded = x.Pad(0, Padding{After: zeros})
		defer done(padded)
	}
	split := padded.Reshape(rows, parts, more, some, n2)
	matrix := line{n: n1, inverse: l.inverse, keep: n1, parts: 2}.matrix(x, parts, some)
	first := contract("fft", split, []int{row, from, outer, slow, fast}, matrix, []int{from, slow, to, kept}, []int{row, to, outer, kept, fast}, []int{from, slow})
	twisted := timesEach(first, 1, []int{1, 1, 1, n1, n2}, fmt.Sprint("twiddles ", l.n, n1, l.inverse), func(i int) complex128 {
		return root(i/n2*(i%n2), l.n, !l.inverse)
	})
	lines := twisted.Reshape(rows, 2, more*n1, n2)
	keep := (l.keep + n1 - 1) / n1
	second := line{n: n2, inverse: l.inverse, keep: keep, parts: l.parts}.transform(lines)
	out := second.Reshape(rows, l.parts, more, n1, keep)
	order := out.Transpose(3, 4)
	all := order.Reshape(rows, l.parts, more, keep*n1)
	r := all.Slice(All, All, All, R(0, l.keep))
	done(split, matrix, first, twisted, lines, second, out, order, all)
	return r
}

// chirp takes the transform as a convolution with a chirp (Bluestein): 2jk is
// j² + k² - (k-j)². The convolution is a product of spectra of a power of two
// elements, of which that of the chirp is known.
func (l line) chirp(x *Tensor) *Tensor {
	have := x.Dim(3)
	size := 1 << bits.Len(uint(have+l.keep-2)) // at least have + keep - 1
	name := fmt.Sprint("chirp ", l, have, " ")
	wave := func(j int) complex128 {
		return root(j*j%(2*l.n), 2*l.n, !l.inverse)
	}
	in := timesEach(x, 1, []int{1, 1, 1, have}, name+"in", wave)
	spectrum := line{n: size, keep: size, parts: 2}.transform(in)
	var chirp []complex128
	both := timesEach(spectrum, 1, []int{1, 1, 1, size}, name+"spectrum", func(i int) complex128 {
		if chirp == nil {
			chirp = l.chirpSpectrum(wave, have, size)
		}
		return chirp[i]
	})
	back := line{n: size, inverse: true, keep: l.keep, parts: 2}.transform(both)
	y := timesEach(back, 1, []int{1, 1, 1, l.keep}, name+"out", wave)
	done(in, spectrum, both, back)
	if l.parts == 1 {
		one := y.Slice(All, R(0, 1))
		done(y)
		y = one
	}
	return y
}

func (l line) chirpSpectrum(wave func(j int) complex128, have, size int) []complex128 {
	s := make([]complex128, size)
	for j := range max(have, l.keep) {
		w := cmplx.Conj(wave(j)) / complex(float64(size), 0)
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

// timesEach multiplies complex numbers, whose parts are along an axis, by those of a table,
// which has the dimension 1 there. A real number has one part.
func timesEach(x *Tensor, parts int, dims []int, name string, value func(i int) complex128) *Tensor {
	behind := product(dims[parts+1:])
	both := slices.Clone(dims)
	both[parts] = 2
	at := func(i int) (part int, w complex128) { // element i of a table with both parts
		return i / behind % 2, value(i/(2*behind)*behind + i%behind)
	}
	if x.Dim(parts) == 1 {
		w := table(x, name, both, func(i int) float64 {
			part, w := at(i)
			return [2]float64{real(w), imag(w)}[part]
		})
		r := x.Mul(w)
		done(w)
		return r
	}
	straight := table(x, name+" straight", dims, func(i int) float64 { return real(value(i)) })
	crossed := table(x, name+" crossed", both, func(i int) float64 {
		part, w := at(i)
		return [2]float64{-imag(w), imag(w)}[part]
	})
	a := x.Mul(straight)
	flipped := x.Flip(parts)
	b := flipped.Mul(crossed)
	r := a.Add(b)
	done(straight, crossed, a, flipped, b)
	return r
}

// tables are the numbers of transforms that were made, by what they are. What is in it takes
// no more than tableBytes, and is given up as a whole where it would.
var tables struct {
	mu    sync.Mutex
	byKey map[string][]float64
	bytes int
}

const tableBytes = 32 << 20

// maxTable bounds the dimensions of which tables are made: tensors that are recorded may
// be of any size, and take no memory yet.
const maxTable = 1 << 28

// table is a constant in x's dtype, where x is.
func table(x *Tensor, name string, dims []int, value func(i int) float64) *Tensor {
	key := fmt.Sprint(name, dims)
	tables.mu.Lock()
	list := tables.byKey[key]
	tables.mu.Unlock()
	if list == nil {
		list = make([]float64, product(dims))
		for i := range list {
			list[i] = value(i)
		}
		tables.mu.Lock()
		if size := 8 * len(list); size <= tableBytes {
			if tables.bytes += size; tables.bytes > tableBytes || tables.byKey == nil {
				tables.byKey, tables.bytes = map[string][]float64{}, size
			}
			tables.byKey[key] = list
		}
		tables.mu.Unlock()
	}
	return floatTable(x, list, dims...)
}

// root is e^(2πik/n), or with turned e^(-2πik/n). The angle that sine and cosine are taken of
// is at most an eighth of a turn.
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

// powerOfTwo transforms a table's elements, as many as a power of two, in place.
func powerOfTwo(x []complex128) {
	n := len(x)
	shift := 64 - bits.Len(uint(n-1))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); i < j {
			x[i], x[j] = x[j], x[i]
		}
	}
	for half := 1; half < n; half *= 2 {
		for k := range half {
			w := root(k, 2*half, true)
			for i := k; i < n; i += 2 * half {
				y := w * x[i+half]
				x[i], x[i+half] = x[i]+y, x[i]-y
			}
		}
	}
}
