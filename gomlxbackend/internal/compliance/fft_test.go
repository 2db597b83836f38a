package compliance

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// dft is the transform along an axis, by its definition.
func dft(x []complex128, dims []int, axis int, inverse bool) []complex128 {
	n := dims[axis]
	roots := make([]complex128, n)
	for k := range roots {
		angle := 2 * math.Pi * float64(k) / float64(n)
		if !inverse {
			angle = -angle
		}
		roots[k] = cmplx.Rect(1, angle)
		if inverse {
			roots[k] /= complex(float64(n), 0)
		}
	}
	behind := product(dims[axis+1:])
	y := make([]complex128, len(x))
	for at := range x {
		first, k := at-at/behind%n*behind, at/behind%n
		for j := range n {
			y[at] += x[first+j*behind] * roots[j*k%n]
		}
	}
	return y
}

// halved are the first n/2+1 elements of every line of n, and completed is the
// other way round, with the conjugates of what lies opposite along all axes.
func halved(x []complex128, n int) []complex128 {
	var y []complex128
	for line := range slices.Chunk(x, n) {
		y = append(y, line[:n/2+1]...)
	}
	return y
}

func realParts(x []complex128) []complex128 {
	y := make([]complex128, len(x))
	for i, z := range x {
		y[i] = complex(real(z), 0)
	}
	return y
}

// spectral compares a transform with what it is by definition: the error as a
// vector, relative to the length of what it should be.
func spectral(t *testing.T, b compute.Backend, dt dtypes.DType, typ compute.FFTType, x []complex128, dims, lengths []int) {
	t.Helper()
	var flat any = narrowed(dt, x)
	if typ == compute.FFTForwardReal {
		x = realParts(x)
		list := make([]float64, len(x))
		for i, z := range x {
			list[i] = real(z)
		}
		flat = fromFloats(map[dtypes.DType]dtypes.DType{dtypes.Complex64: dtypes.Float32, dtypes.Complex128: dtypes.Float64}[dt], list)
	}
	first, last, n := len(dims)-len(lengths), len(dims)-1, lengths[len(lengths)-1]
	inverse := typ == compute.FFTInverse || typ == compute.FFTInverseReal
	want := x
	for i := range lengths {
		if axis := first + i; axis < last || typ == compute.FFTForward || typ == compute.FFTInverse {
			want = dft(want, dims, axis, inverse)
		} else if typ == compute.FFTForwardReal {
			want = halved(dft(want, dims, axis, false), n)
		}
	}
	if typ == compute.FFTForwardReal && len(lengths) > 1 {
		// The last axis comes first, when it is whole.
		want = dft(x, dims, last, false)
		for i := range len(lengths) - 1 {
			want = dft(want, dims, first+i, false)
		}
		want = halved(want, n)
	}
	if typ == compute.FFTInverseReal {
		var whole []complex128
		for line := range slices.Chunk(want, n/2+1) {
			for k := range n {
				switch z := line[min(k, n-k)]; {
				case k == 0 || 2*k == n:
					z = complex(real(z), 0)
					whole = append(whole, z)
				case 2*k > n:
					whole = append(whole, cmplx.Conj(z))
				default:
					whole = append(whole, z)
				}
			}
		}
		long := append(slices.Clone(dims[:last]), n)
		want = realParts(dft(whole, long, last, true))
	}
	got, shape, err := evaluate(b, []arg{{flat, dims}}, func(f compute.Function, in []value) (value, error) {
		return f.FFT(in[0], typ, lengths)
	})
	if err != nil {
		t.Fatal(err)
	}
	if shape.Size() != len(want) {
		t.Fatalf("a %s, want %d elements", shape, len(want))
	}
	var off, size float64
	for i, z := range widened(got) {
		d := cmplx.Abs(z - want[i])
		off, size = off+d*d, size+real(want[i])*real(want[i])+imag(want[i])*imag(want[i])
	}
	_, _, epsilon := limits(dt)
	total := float64(product(lengths))
	if most := 1.5 * epsilon * (1 + math.Log2(total)); !(math.Sqrt(off) <= most*math.Sqrt(size)) {
		t.Errorf("%v: off by %.3g of its length, at most %.3g", lengths, math.Sqrt(off/size), most)
	}
}

var transforms = []compute.FFTType{compute.FFTForward, compute.FFTInverse, compute.FFTForwardReal, compute.FFTInverseReal}

// All lengths up to 64, and some that are powers of 2, primes, products of
// primes, and too large for one product with a matrix.
func TestFFT(t *testing.T) {
	b := open(t, "millrace:cpu")
	var lengths []int
	for n := 1; n <= 64; n++ {
		lengths = append(lengths, n)
	}
	lengths = append(lengths, 65, 67, 81, 96, 97, 100, 127, 128, 131, 134, 199, 251, 262, 500, 625, 997, 1000, 1001, 1024, 4096)
	r := rand.New(rand.NewPCG(41, 1))
	for _, typ := range transforms {
		for _, dt := range complexes {
			t.Run(fmt.Sprint(typ, "/", dt), func(t *testing.T) {
				for _, n := range lengths {
					dims := []int{3, n}
					if n > 500 {
						dims[0] = 1
					}
					if typ == compute.FFTInverseReal {
						dims[1] = n/2 + 1
					}
					spectral(t, b, dt, typ, gaussian(r, dt, product(dims)), dims, []int{n})
				}
			})
		}
	}
}

// gaussian are random numbers of about 1.
func gaussian(r *rand.Rand, dt dtypes.DType, n int) []complex128 {
	list := make([]complex128, n)
	for i := range list {
		list[i] = complex(r.NormFloat64(), r.NormFloat64())
	}
	return widened(narrowed(dt, list))
}

// Over several axes, with others before them.
func TestFFTAxes(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(41, 2))
	for _, c := range [][2][]int{
		{{5, 6}, {5, 6}}, {{2, 3, 4, 5}, {4, 5}}, {{4, 3, 2}, {4, 3, 2}}, {{2, 130, 7}, {130, 7}}, {{2, 131, 6}, {131, 6}}, {{1, 1, 5}, {1, 5}},
		{{6, 1}, {6, 1}}, {{2, 1, 1, 1, 3, 2, 2, 4}, {2, 2, 4}},
	} {
		for _, typ := range transforms {
			for _, dt := range complexes {
				dims, lengths := slices.Clone(c[0]), c[1]
				if typ == compute.FFTInverseReal {
					dims[len(dims)-1] = dims[len(dims)-1]/2 + 1
				}
				t.Run(fmt.Sprint(typ, dims, lengths, dt), func(t *testing.T) {
					spectral(t, b, dt, typ, gaussian(r, dt, product(dims)), dims, lengths)
				})
			}
		}
	}
}

// No elements have a transform of none.
func TestFFTOfNothing(t *testing.T) {
	b := open(t, "millrace:cpu")
	for _, typ := range transforms {
		in, want := []int{0, 3, 8}, []int{0, 3, 8}
		var flat any = []complex64{}
		switch typ {
		case compute.FFTForwardReal:
			want[2], flat = 5, []float32{}
		case compute.FFTInverseReal:
			in[2] = 5
		}
		_, shape, err := evaluate(b, []arg{{flat, in}}, func(f compute.Function, in []value) (value, error) { return f.FFT(in[0], typ, []int{8}) })
		if err != nil || !slices.Equal(shape.Dimensions, want) || shape.DType.IsComplex() == (typ == compute.FFTInverseReal) {
			t.Errorf("%s: a %s, want %v (%v)", typ, shape, want, err)
		}
	}
}

// What a transform is not defined for is an error that names op and shape.
func TestFFTBadInput(t *testing.T) {
	b := open(t, "millrace:cpu")
	f := b.Builder("bad").Main()
	param := func(dt dtypes.DType, dims ...int) value { return must(f.Parameter("x", shapes.Make(dt, dims...), nil)) }
	c64, f32 := param(dtypes.Complex64, 4, 8), param(dtypes.Float32, 4, 8)
	for i, c := range []struct {
		x       value
		typ     compute.FFTType
		lengths []int
		shape   string
	}{
		{f32, compute.FFTForward, []int{8}, "(Float32)[4, 8]"},
		{f32, compute.FFTInverse, []int{8}, "(Float32)[4, 8]"},
		{f32, compute.FFTInverseReal, []int{14}, "(Float32)[4, 8]"},
		{c64, compute.FFTForwardReal, []int{8}, "(Complex64)[4, 8]"},
		{param(dtypes.Float16, 8), compute.FFTForwardReal, []int{8}, "(Float16)[8]"},
		{param(dtypes.Int32, 8), compute.FFTForward, []int{8}, "(Int32)[8]"},
		{c64, compute.FFTForward, []int{7}, "(Complex64)[4, 8]"},
		{c64, compute.FFTForward, []int{8, 4}, "(Complex64)[4, 8]"},
		{c64, compute.FFTForward, nil, "(Complex64)[4, 8]"},
		{c64, compute.FFTForward, []int{2, 4, 8}, "(Complex64)[4, 8]"},
		{c64, compute.FFTForward, []int{-8}, "(Complex64)[4, 8]"},
		{c64, compute.FFTInverseReal, []int{8}, "(Complex64)[4, 8]"},
		{c64, compute.FFTInverseReal, []int{-1}, "(Complex64)[4, 8]"},
		{c64, compute.FFTInverseReal, []int{math.MaxInt}, "(Complex64)[4, 8]"},
		{param(dtypes.Complex64, 4, 0), compute.FFTForward, []int{0}, "(Complex64)[4, 0]"},
		{param(dtypes.Complex128), compute.FFTForward, []int{1}, "(Complex128)"},
		{c64, 99, []int{8}, "(Complex64)[4, 8]"},
		{c64, -1, []int{8}, "(Complex64)[4, 8]"},
	} {
		_, err := f.FFT(c.x, c.typ, c.lengths)
		if err == nil || !strings.Contains(err.Error(), "FFT") || !strings.Contains(err.Error(), c.shape) {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

// circle is e^(2πik/n).
func circle(k, n int) complex128 { return cmplx.Rect(1, 2*math.Pi*float64(k%n)/float64(n)) }

// Transforms of all kinds in one graph, which has their tables once: some of
// those of 509 numbers are of the shape of those of 1024 real ones, and half
// spectra of an even and the next odd number have one length.
func TestFFTThereAndBack(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(41, 3))
	const dt = dtypes.Complex128
	for _, n := range []int{1, 2, 3, 8, 64, 97, 100, 131, 262, 509, 1000, 1021} {
		x := gaussian(r, dt, 2*n)
		real0, inverse := realParts(x), dft(x, []int{2, n}, 1, true)
		for i, want := range [][]complex128{real0, inverse, x} {
			check(t, b, dt, func(int) float64 { return 1e4 }, want, func(f compute.Function, in []value) (value, error) {
				z := must(f.Reshape(in[0], 2, n))
				must(f.FFT(must(f.Iota(shapes.Make(dtypes.Float64, 1024), 0)), compute.FFTForwardReal, []int{1024}))
				if other := n ^ 1; other > 0 {
					must(f.FFT(must(f.Iota(shapes.Make(dt, 2, other/2+1), 0)), compute.FFTInverseReal, []int{other}))
				}
				half := must(f.FFT(must(f.Real(z)), compute.FFTForwardReal, []int{n}))
				spectrum := must(f.FFT(z, compute.FFTForward, []int{n}))
				return []value{
					must(f.FFT(half, compute.FFTInverseReal, []int{n})),
					must(f.FFT(z, compute.FFTInverse, []int{n})),
					must(f.FFT(spectrum, compute.FFTInverse, []int{n})),
				}[i], nil
			}, x)
		}
	}
}
