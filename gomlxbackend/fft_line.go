package gomlxbackend

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/pkg/errors"
)

// line is a transform along one axis that reads elements 0 to have-1 of n, the
// others being 0, and gives the first keep. It is not divided by n.
type line struct {
	n       int
	inverse bool
	keep    int
	parts   int // of the result: 1 is the real part alone
}

// What is transformed, and what comes of it, has three axes: the rows, the parts
// (2, or 1 of a real number), the elements. Parts side by side make the product
// with a complex matrix one with a real matrix, along the last two axes; those
// are where a product reads fastest, so that other axes are copied there.

// maxRadix is the largest length that is one product with the matrix of all roots.
// A processor multiplies matrices so much faster than it does anything else that
// steps shorter than this cost more in passes over memory than they save.
const maxRadix = 64

// maxPrimeRadix is the same for primes, whose other way is a convolution of at
// least twice the length.
const maxPrimeRadix = 128

// radix is how a transform of length n begins: as a product with a matrix where
// it is n itself, with the transforms of every n/radix-th element where it
// divides n, and as a convolution where it is 0. Steps are about equal.
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
func (e *expansion) transform(l line, x *Node) *Node {
	if e.err != nil {
		return broken
	}
	switch s := radix(l.n); s {
	case l.n:
		return e.wholeLine(l, x)
	case 0:
		return e.chirp(l, x)
	default:
		return e.inSteps(l, s, x)
	}
}

// wholeLine is the product with the matrix of all roots of unity.
func (e *expansion) wholeLine(l line, x *Node) *Node {
	if e.err != nil { // inSteps comes here with what it made of x
		return broken
	}
	rows, parts, have := x.shape.Dimensions[0], x.shape.Dimensions[1], x.shape.Dimensions[2]
	matrix := e.table(fmt.Sprint("roots ", l, " of ", parts), x.shape.DType, []int{parts * have, l.parts * l.keep}, func(i int) float64 {
		column, row := i%(l.parts*l.keep), i/(l.parts*l.keep)
		w := root(row%have*(column%l.keep), l.n, !l.inverse)
		switch from, to := row/have, column/l.keep; {
		case from == to:
			return real(w)
		case to == 1:
			return imag(w)
		}
		return -imag(w)
	})
	x = e.reshape(x, rows, parts*have)
	y := e.get(e.f.DotGeneral(x, []int{1}, nil, matrix, []int{0}, nil, compute.DotGeneralConfig{}))
	return e.reshape(y, rows, l.parts, l.keep)
}

// inSteps takes n as n1·n2 (Cooley and Tukey): element j1·n2 + j2 of x is
// transformed along j1, multiplied by a root of unity and transformed along j2,
// which gives element k2·n1 + k1.
func (e *expansion) inSteps(l line, n1 int, x *Node) *Node {
	n2 := l.n / n1
	rows, parts, have := x.shape.Dimensions[0], x.shape.Dimensions[1], x.shape.Dimensions[2]
	some := (have + n2 - 1) / n2
	if more := some*n2 - have; more > 0 {
		x = e.get(e.f.Pad(x, e.like(x, 0), compute.PadAxis{}, compute.PadAxis{}, compute.PadAxis{End: more}))
	}
	x = e.settled(e.transpose(e.reshape(x, rows, parts, some, n2), 0, 3, 1, 2))
	y := e.wholeLine(line{n: n1, inverse: l.inverse, keep: n1, parts: 2}, e.reshape(x, rows*n2, parts, some))
	y = e.timesEach(e.reshape(y, rows, n2, 2, n1), 2, []int{1, n2, 1, n1}, fmt.Sprint("twiddles ", l.n, l.inverse), func(i int) complex128 {
		return root(i/n1*(i%n1), l.n, !l.inverse)
	})
	y = e.reshape(e.settled(e.transpose(y, 0, 3, 2, 1)), rows*n1, 2, n2)
	keep := (l.keep + n1 - 1) / n1
	y = e.transform(line{n: n2, inverse: l.inverse, keep: keep, parts: l.parts}, y)
	y = e.reshape(e.transpose(e.reshape(y, rows, n1, l.parts, keep), 0, 2, 3, 1), rows, l.parts, keep*n1)
	return e.get(e.f.Slice(y, []int{0, 0, 0}, []int{rows, l.parts, l.keep}, nil))
}

// settled is x written as its axes lie before anything reads it. Otherwise what
// reads it would compute it where it reads: a transposition in the middle of a
// product costs more there than a copy does.
func (e *expansion) settled(x *Node) *Node {
	if e.err != nil {
		return broken
	}
	return e.get(e.f.add(compute.OpTypeIdentity, x.shape, "settled", func(r *run, in []*tensor) *tensor {
		t := copyOf(r.sc, in[0])
		if err := t.Eval(); err != nil {
			r.fail(err, 0)
		}
		return t
	}, x))
}

// chirp takes the transform as a convolution with a chirp (Bluestein): 2jk is
// j² + k² - (k-j)². The convolution is a product of spectra of a power of two
// elements, of which that of the chirp is known.
func (e *expansion) chirp(l line, x *Node) *Node {
	rows, have := x.shape.Dimensions[0], x.shape.Dimensions[2]
	size := 1 << bits.Len(uint(have+l.keep-2)) // at least have + keep - 1
	name := fmt.Sprint("chirp ", l, have, " ")
	wave := func(j int) complex128 { return root(j*j%(2*l.n), 2*l.n, !l.inverse) }
	x = e.timesEach(x, 1, []int{1, 1, have}, name+"in", wave)
	x = e.transform(line{n: size, keep: size, parts: 2}, x)
	var spectrum []complex128
	x = e.timesEach(x, 1, []int{1, 1, size}, name+"spectrum", func(i int) complex128 {
		if spectrum == nil {
			spectrum = make([]complex128, size)
			for j := range max(have, l.keep) {
				w := cmplx.Conj(wave(j)) / complex(float64(size), 0)
				if j < l.keep {
					spectrum[j] = w
				}
				if j > 0 && j < have {
					spectrum[size-j] = w
				}
			}
			powerOfTwo(spectrum)
		}
		return spectrum[i]
	})
	x = e.transform(line{n: size, inverse: true, keep: l.keep, parts: 2}, x)
	x = e.timesEach(x, 1, []int{1, 1, l.keep}, name+"out", wave)
	if l.parts == 1 {
		x = e.get(e.f.Slice(x, []int{0, 0, 0}, []int{rows, 1, l.keep}, nil))
	}
	return x
}

// timesEach multiplies complex numbers, whose parts are along an axis, by those
// of a table, which has the dimension 1 there. A real number has one part.
func (e *expansion) timesEach(x *Node, parts int, dims []int, name string, value func(i int) complex128) *Node {
	if e.err != nil {
		return broken
	}
	dt := x.shape.DType
	behind := product(dims[parts+1:])
	both := slices.Clone(dims)
	both[parts] = 2
	at := func(i int) (part int, w complex128) { // element i of a table with both parts
		return i / behind % 2, value(i/(2*behind)*behind + i%behind)
	}
	if x.shape.Dimensions[parts] == 1 {
		return e.mul(x, e.table(name, dt, both, func(i int) float64 {
			part, w := at(i)
			return [2]float64{real(w), imag(w)}[part]
		}))
	}
	straight := e.table(name+" straight", dt, dims, func(i int) float64 { return real(value(i)) })
	crossed := e.table(name+" crossed", dt, both, func(i int) float64 {
		part, w := at(i)
		return [2]float64{-imag(w), imag(w)}[part]
	})
	return e.add(e.mul(x, straight), e.mul(e.get(e.f.Reverse(x, parts)), crossed))
}

// table is a constant, which a function has once under its name.
func (e *expansion) table(name string, dt dtypes.DType, dims []int, value func(i int) float64) *Node {
	if e.err != nil {
		return broken
	}
	key := fmt.Sprint("table ", name, dt, dims)
	if n := e.f.known[key]; n != nil {
		return n
	}
	list := make([]float64, product(dims))
	for i := range list {
		list[i] = value(i)
	}
	var flat any = list
	if dt == dtypes.Float32 {
		narrow := make([]float32, len(list))
		for i, x := range list {
			narrow[i] = float32(x)
		}
		flat = narrow
	}
	n := e.get(e.f.Constant(flat, dims...))
	if e.err != nil {
		e.err = errors.WithMessagef(e.err, "%s", name)
		return broken
	}
	e.f.known[key] = n
	return n
}

// root is e^(2πik/n), or with turned e^(-2πik/n). The angle that sine and cosine
// are taken of is at most an eighth of a turn.
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
