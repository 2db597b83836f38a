package everyday

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/apitest"
	"github.com/millrace-go/millrace/ir"
)

var (
	floats = []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16}
	every  = append(slices.Clone(floats), ir.Int8, ir.Int16, ir.Int32, ir.Int64, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64, ir.Bool)
)

// holding makes a tensor of numbers in any dtype.
func holding(p millrace.Place, dt ir.DType, vs ...float64) *tensor {
	d := ir.NewDense(ir.TensorType{DT: dt, Shape: ir.Shape{len(vs)}})
	for i, v := range vs {
		switch {
		case dt.IsFloat():
			d.Set(i, ir.FloatBits(dt, v))
		case v < 0:
			d.Set(i, uint64(int64(v)))
		default:
			d.Set(i, uint64(v))
		}
	}
	return apitest.FromBytes(p, d.TensorType, d.Data)
}

// ends are the least and the greatest number of a dtype that a float64 also represents.
func ends(dt ir.DType) (lo, hi float64) {
	switch {
	case dt == ir.Bool:
		return 0, 1
	case dt == ir.Float32:
		return -math.MaxFloat32, math.MaxFloat32
	case dt == ir.Float64:
		return -math.MaxFloat64, math.MaxFloat64
	case dt == ir.Float16:
		return -65504, 65504
	case dt == ir.BFloat16:
		return -0x1.FEp127, 0x1.FEp127
	case dt.IsSigned():
		lo, hi = -math.Ldexp(1, dt.Bits()-1), math.Ldexp(1, dt.Bits()-1)-1
	default:
		lo, hi = 0, math.Ldexp(1, dt.Bits())-1
	}
	if dt == ir.Int64 || dt == ir.Uint64 {
		hi = math.Nextafter(hi, 0)
	}
	return lo, hi
}

// numbersOf reads a tensor's elements as float64, which is exact for the numbers of these tests.
func numbersOf(t *tensor) ([]float64, error) {
	data, err := apitest.Bytes(t)
	if err != nil {
		return nil, err
	}
	d := ir.Dense{TensorType: ir.TensorType{DT: t.DType(), Shape: t.Shape()}, Data: data}
	vs := make([]float64, t.Len())
	for i := range vs {
		v, ok := apitest.Number(ir.ScalarValue{DT: d.DT, Bits: d.At(i)})
		if !ok {
			return nil, fmt.Errorf("element %d is no float64", i)
		}
		vs[i] = v
	}
	return vs, nil
}

// TestCreationAtItsEnds: creation ops give exactly the documented numbers, for no, one and two
// elements and at the ends of each dtype's range.
func TestCreationAtItsEnds(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			dev := open(t, spec)
			for _, dt := range every {
				if dev.Supports(dt) {
					created(t, dev, dt)
				}
			}
		})
	}
}

func created(t *testing.T, dev *millrace.Device, dt ir.DType) {
	lo, hi := ends(dt)
	check := func(name string, x *tensor, shape []int, want ...float64) {
		t.Helper()
		got, err := numbersOf(x)
		if err != nil || x.DType() != dt || !slices.Equal(x.Shape(), shape) || !slices.Equal(got, want) {
			t.Errorf("%s of %v: %v%v %v %v, want %v %v", name, dt, x.DType(), x.Shape(), got, err, shape, want)
		}
	}
	for n := range 3 {
		for _, v := range []float64{lo, hi, 0, 1} {
			all := slices.Repeat([]float64{v}, n)
			check("full", millrace.FullOn(dev, dt, v, n), []int{n}, all...)
			check("full of rows", millrace.FullOn(dev, dt, v, n, 1), []int{n, 1}, all...)
			check("fromslice", holding(dev, dt, all...), []int{n}, all...)
		}
		check("zeros", millrace.ZerosOn(dev, dt, 2, n), []int{2, n}, make([]float64, 2*n)...)
		check("ones", millrace.OnesOn(dev, dt, n), []int{n}, slices.Repeat([]float64{1}, n)...)
		check("eye", millrace.EyeOn(dev, dt, n), []int{n, n}, []float64{1, 0, 0, 1}[:[]int{0, 1, 4}[n]]...)
		check("eye of columns", millrace.EyeOn(dev, dt, 2, n), []int{2, n}, [][]float64{nil, {1, 0}, {1, 0, 0, 1}}[n]...)
	}
	check("full of no dimension", millrace.FullOn(dev, dt, hi), []int{}, hi)
	if dt == ir.Bool {
		return
	}
	whole := math.Min(hi, 1<<53) // up to here every whole number is representable
	if dt.IsFloat() {
		whole = map[ir.DType]float64{ir.Float16: 1 << 11, ir.BFloat16: 1 << 8, ir.Float32: 1 << 24, ir.Float64: 1 << 53}[dt]
	}
	for _, c := range []struct {
		start, stop, step float64
		want              []float64
	}{
		{3, 3, 1, nil}, {3, 2, 1, nil}, {3, 4, 1, []float64{3}}, {3, 4, 100, []float64{3}}, {3, 5, 1, []float64{3, 4}},
		{4, 2, -1, []float64{4, 3}}, {hi, lo, hi, nil}, {lo, lo + 1, hi, []float64{lo}},
		{whole, whole - 2, -1, []float64{whole, whole - 1}}, {0, whole, whole, []float64{0}},
	} {
		if lo+1 == lo && c.start == lo || c.start == hi && c.step == hi && lo == 0 {
			continue
		}
		check(fmt.Sprint("arange ", c.start, c.stop, c.step), millrace.ArangeOn(dev, dt, c.start, c.stop, c.step), []int{len(c.want)}, c.want...)
	}
	if dt.IsInt() {
		integerEnds(t, dev, dt, check)
		return
	}
	for n := range 4 {
		for _, c := range [][2]float64{{lo, hi}, {hi, lo}, {0, hi}, {hi, hi}, {0.1, 0.7}, {-1, 1}} {
			x := millrace.LinspaceOn(dev, dt, c[0], c[1], n)
			if err := evenly(x, dt, c[0], c[1], n, 2); err != nil {
				t.Errorf("linspace %v %v %d of %v: %v", c[0], c[1], n, dt, err)
			}
		}
		for name, x := range map[string]*tensor{"uniform": millrace.UniformOn(dev, dt, 5, n), "normal": millrace.NormalOn(dev, dt, 5, n)} {
			vs, err := numbersOf(x)
			if err != nil || len(vs) != n || x.DType() != dt {
				t.Errorf("%s of %d: %v%v: %v", name, n, x.DType(), x.Shape(), err)
			}
			for _, v := range vs {
				if !(math.Abs(v) < 9) || name == "uniform" && !(v >= 0 && v < 1) {
					t.Errorf("%s of %v drew %v", name, dt, v)
				}
			}
		}
	}
}

func integerEnds(t *testing.T, dev *millrace.Device, dt ir.DType, check func(name string, x *tensor, shape []int, want ...float64)) {
	lo, hi := ends(dt)
	if dt.Bits() < 64 {
		check("arange over all", millrace.ArangeOn(dev, dt, lo, hi+1, hi-lo), []int{2}, lo, hi)
		check("arange over all, down", millrace.ArangeOn(dev, dt, hi, lo-1, lo-hi), []int{2}, hi, lo)
	} else {
		check("arange over all", millrace.ArangeOn(dev, dt, lo, hi, math.Ldexp(1, 63)), []int{2}, lo, lo+math.Ldexp(1, 63))
	}
	first, behind := int64(lo), int64(math.MaxInt64)
	if dt.Bits() < 64 {
		behind = int64(hi) + 1
	}
	for n := range 3 {
		check("integers from the least", millrace.IntegersOn(dev, dt, 1, first, first+1, n), []int{n}, slices.Repeat([]float64{lo}, n)...)
		x := millrace.IntegersOn(dev, dt, 1, first, behind, n)
		if data, err := apitest.Bytes(x); err != nil || len(data) != n*dt.Size() {
			t.Errorf("integers of all %v: %d bytes, %v", dt, len(data), err)
		}
		if dt.Bits() < 64 {
			check("integers from the greatest", millrace.IntegersOn(dev, dt, 1, behind-1, behind, n), []int{n}, slices.Repeat([]float64{hi}, n)...)
		}
	}
	if !ir.IndexDTypes.Has(dt) {
		return
	}
	for n := range 3 {
		p := millrace.PermutationOn(dev, dt, 7, n)
		check("permutation", p.Sort(0), []int{n}, []float64{0, 1}[:n]...)
		for _, replace := range []bool{false, true} {
			w := holding(dev, ir.Float32, 0, 3)
			check("multinomial", millrace.Multinomial(dt, 3, w, n, replace), []int{n}, map[bool][]float64{false: {1, 0}, true: {1, 1}}[replace][:n]...)
		}
	}
}

// evenly compares a Linspace with exact arithmetic: the ends are rounded once, the others differ by
// at most units units in the last place of the larger end.
func evenly(x *tensor, dt ir.DType, start, stop float64, n int, units float64) error {
	got, err := numbersOf(x)
	if err != nil || x.DType() != dt || len(got) != n {
		return fmt.Errorf("%v%v: %v", x.DType(), x.Shape(), err)
	}
	round := func(v float64) float64 { return ir.BitsFloat(dt, ir.FloatBits(dt, v)) }
	exact := func(v float64) *big.Float { return new(big.Float).SetPrec(2200).SetFloat64(v) }
	top := math.Max(math.Abs(round(start)), math.Abs(round(stop)))
	below := ir.BitsFloat(dt, ir.FloatBits(dt, top)-1)
	if top == 0 {
		top, below = ir.BitsFloat(dt, 1), 0
	}
	bound, _ := new(big.Float).Mul(exact(units), new(big.Float).Sub(exact(top), exact(below))).Float64()
	for i, g := range got {
		if i == 0 && g != round(start) || i > 0 && i == n-1 && g != round(stop) {
			return fmt.Errorf("an end is %v", g)
		}
		if i == 0 {
			continue
		}
		want := new(big.Float).Sub(exact(stop), exact(start))
		want.Quo(want.Mul(want, exact(float64(i))), exact(float64(n-1)))
		want.Add(want, exact(start))
		off, _ := want.Sub(want, exact(g)).Float64()
		if !(math.Abs(off) <= bound) {
			return fmt.Errorf("element %d is %v, %v off, and %v is allowed", i, g, off, bound)
		}
	}
	return nil
}

// TestLinspaceOfRandomRanges: both ends of any range are exact.
func TestLinspaceOfRandomRanges(t *testing.T) {
	dev := open(t, "cpu")
	rng := rand.New(rand.NewPCG(32, 1))
	number := func(dt ir.DType) float64 {
		for {
			v := rng.NormFloat64() * 10
			switch rng.IntN(8) {
			case 0: // any bits
				v = ir.BitsFloat(dt, rng.Uint64()&(1<<dt.Bits()-1))
			case 1: // denormal
				v = ir.BitsFloat(dt, uint64(rng.IntN(100)))
			}
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				return v
			}
		}
	}
	for _, dt := range floats {
		for range 500 {
			a, b, n := number(dt), number(dt), 1+rng.IntN(4)
			if rng.IntN(10) == 0 {
				n += rng.IntN(2000)
			}
			if rng.IntN(5) == 0 {
				b = a + a*rng.Float64()*1e-6
			}
			x := millrace.LinspaceOn(dev, dt, a, b, n)
			if err := evenly(x, dt, a, b, n, 2); err != nil {
				t.Errorf("linspace %v %v %d of %v: %v", a, b, n, dt, err)
			}
			x.Release()
		}
	}
}
