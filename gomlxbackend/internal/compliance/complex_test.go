package compliance

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

type (
	fn    = func(compute.Function, []compute.Value) (compute.Value, error)
	value = compute.Value
)

var complexes = []dtypes.DType{dtypes.Complex64, dtypes.Complex128}

// narrowed are numbers as elements of a complex dtype.
func narrowed(dt dtypes.DType, list []complex128) any {
	if dt == dtypes.Complex128 {
		return list
	}
	short := make([]complex64, len(list))
	for i, z := range list {
		short[i] = complex64(z)
	}
	return short
}

// widened are complex, float or bool elements as complex128.
func widened(flat any) []complex128 {
	v := reflect.ValueOf(flat)
	list := make([]complex128, v.Len())
	for i := range list {
		switch e := v.Index(i); {
		case e.CanComplex():
			list[i] = e.Complex()
		case e.CanFloat():
			list[i] = complex(e.Float(), 0)
		case e.Bool():
			list[i] = 1
		}
	}
	return list
}

// limits of the parts of a complex dtype.
func limits(dt dtypes.DType) (largest, smallest, epsilon float64) {
	if dt == dtypes.Complex128 {
		return math.MaxFloat64, 0x1p-1022, 0x1p-52
	}
	return math.MaxFloat32, 0x1p-126, 0x1p-23
}

// edgeParts are parts of numbers that ops are likely to get wrong.
func edgeParts(dt dtypes.DType) []float64 {
	largest, smallest, epsilon := limits(dt)
	return []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -2.5, 7.25, 1 + 2*epsilon, 30, -95, 720, smallest * 16, -math.Sqrt(smallest), largest / 16, -largest / 1.5,
		math.Inf(1), math.Inf(-1), math.NaN()}
}

// edgeNumbers are all pairs of edge parts.
func edgeNumbers(dt dtypes.DType) []complex128 {
	var list []complex128
	for _, x := range edgeParts(dt) {
		for _, y := range edgeParts(dt) {
			list = append(list, complex(x, y))
		}
	}
	return widened(narrowed(dt, list))
}

// numbers are random ones of all sizes that square roots of the range hold, and
// many of about 1.
func numbers(r *rand.Rand, dt dtypes.DType, n int) []complex128 {
	_, smallest, _ := limits(dt)
	list := make([]complex128, n)
	for i := range list {
		size := 2.0
		if i%2 == 0 {
			size = math.Exp(math.Log(smallest) / 2.2 * (2*r.Float64() - 1))
		}
		list[i] = cmplx.Rect(size*r.Float64(), 2*math.Pi*r.Float64())
		switch i % 16 {
		case 3:
			list[i] = complex(real(list[i]), 0)
		case 7:
			list[i] = complex(0, imag(list[i]))
		case 11: // next to the unit circle
			list[i] = cmplx.Rect(1, 2*math.Pi*r.Float64())
		}
	}
	return widened(narrowed(dt, list))
}

// close reports a number that is further from another than a number of epsilons,
// relative to that one's absolute value. An infinite or undefined part must be
// that.
func apart(dt dtypes.DType, got, want complex128, epsilons float64) bool {
	largest, smallest, epsilon := limits(dt)
	special := func(x float64) bool { return math.IsNaN(x) || math.Abs(x) > largest }
	part := func(g, w float64) bool {
		switch {
		case math.IsNaN(w):
			return !math.IsNaN(g)
		case math.Abs(w) > largest*(1-epsilons*epsilon):
			return !(math.Abs(g) > largest*(1-2*epsilons*epsilon) && g > 0 == (w > 0))
		}
		return special(g)
	}
	if part(real(got), real(want)) || part(imag(got), imag(want)) {
		return true
	}
	if special(real(want)) || special(imag(want)) {
		return false
	}
	scale := max(math.Abs(real(want)), math.Abs(imag(want)))
	d := max(math.Abs(real(got)-real(want)), math.Abs(imag(got)-imag(want)))
	return d > epsilons*epsilon*scale+smallest
}

// definitions are what the ops of one complex operand give, and to how many
// epsilons.
var definitions = map[compute.OpType]struct {
	f        func(z complex128) complex128
	epsilons float64
}{
	compute.OpTypeAbs:  {func(z complex128) complex128 { return complex(cmplx.Abs(z), 0) }, 4},
	compute.OpTypeNeg:  {func(z complex128) complex128 { return complex(-real(z), -imag(z)) }, 0},
	compute.OpTypeConj: {cmplx.Conj, 0},
	compute.OpTypeReal: {func(z complex128) complex128 { return complex(real(z), 0) }, 0},
	compute.OpTypeImag: {func(z complex128) complex128 { return complex(imag(z), 0) }, 0},
	compute.OpTypeSign: {func(z complex128) complex128 {
		if z == 0 {
			return z
		}
		big := max(math.Abs(real(z)), math.Abs(imag(z)))
		z = complex(real(z)/big, imag(z)/big)
		return complex(real(z)/cmplx.Abs(z), imag(z)/cmplx.Abs(z))
	}, 4},
	compute.OpTypeExp:   {exp, 4},
	compute.OpTypeExpm1: {expm1, 6},
	compute.OpTypeLog:   {log, 6},
	compute.OpTypeLog1p: {func(z complex128) complex128 {
		if a, b := real(z), imag(z); max(math.Abs(a), math.Abs(b)) < 0.5 {
			return complex(math.Log1p(a*(2+a)+b*b)/2, math.Atan2(b, 1+a))
		}
		return log(complex(1+real(z), imag(z)))
	}, 6},
	compute.OpTypeSqrt:  {sqrt, 6},
	compute.OpTypeRsqrt: {func(z complex128) complex128 { return 1 / sqrt(z) }, 10},
	compute.OpTypeSin:   {sin, 8},
	compute.OpTypeCos:   {cos, 8},
	compute.OpTypeTanh:  {tanh, 8},
	compute.OpTypeLogistic: {func(z complex128) complex128 {
		if real(z) < 0 {
			return exp(z) / (1 + exp(z))
		}
		return 1 / (1 + exp(-z))
	}, 16},
	compute.OpTypeIsNaN:    {func(z complex128) complex128 { return truth(real(z) != real(z) || imag(z) != imag(z)) }, 0},
	compute.OpTypeIsFinite: {func(z complex128) complex128 { return truth(!math.IsNaN(real(z)*0 + imag(z)*0)) }, 0},
}

func truth(x bool) complex128 {
	if x {
		return 1
	}
	return 0
}

func expm1(z complex128) complex128 {
	a, b := real(z), imag(z)
	if a > 1 || math.IsInf(a, 0) {
		return complex(real(exp(z))-1, imag(exp(z)))
	}
	s := math.Sin(b / 2)
	return complex(math.Expm1(a)*math.Cos(b)-2*s*s, imag(exp(z)))
}

func finite(x float64) bool { return !math.IsNaN(x * 0) }

// scaled is x·e^y/2, where e^y alone may overflow.
func scaled(x, y float64) float64 { return x * math.Exp(y/2) / 2 * math.Exp(y/2) }

// exp is cmplx.Exp, where e^a overflows too.
func exp(z complex128) complex128 {
	switch a, b := real(z), imag(z); {
	case b == 0:
		return complex(math.Exp(a), b)
	case a > 700 && finite(a):
		return complex(scaled(2*math.Cos(b), a), scaled(2*math.Sin(b), a))
	}
	return cmplx.Exp(z)
}

// log is cmplx.Log, near the unit circle too.
func log(z complex128) complex128 {
	x, y := math.Abs(real(z)), math.Abs(imag(z))
	if big, small := max(x, y), min(x, y); big > 0.5 && big < 2 {
		return complex(math.Log1p((big-1)*(big+1)+small*small)/2, cmplx.Phase(z))
	}
	w := cmplx.Log(z)
	if real(z) < 0 && imag(z)/real(z) == 0 { // which math.Atan2 takes for +0
		return complex(real(w), math.Copysign(math.Pi, imag(z)))
	}
	return w
}

// sqrt is cmplx.Sqrt, for infinite numbers by Annex G.
func sqrt(z complex128) complex128 {
	a, b := real(z), imag(z)
	switch {
	case math.IsInf(b, 0):
		return complex(math.Inf(1), b)
	case math.IsInf(a, 1):
		return complex(a, b*0)
	case math.IsNaN(a):
		return cmplx.NaN()
	case math.IsInf(a, -1):
		return complex(math.Abs(b*0), math.Copysign(math.Inf(1), b))
	}
	return cmplx.Sqrt(z)
}

// sin and cos are those of cmplx, where cosh overflows too.
func sin(z complex128) complex128 {
	switch a, b := real(z), imag(z); {
	case a == 0 && finite(b):
		return complex(a, math.Sinh(b))
	case math.Abs(b) > 700 && finite(a) && finite(b):
		return complex(scaled(math.Sin(a), math.Abs(b)), math.Copysign(1, b)*scaled(math.Cos(a), math.Abs(b)))
	}
	return cmplx.Sin(z)
}

func cos(z complex128) complex128 {
	switch a, b := real(z), imag(z); {
	case a == 0 && finite(b):
		return complex(math.Cosh(b), 0)
	case math.Abs(b) > 700 && finite(a) && finite(b):
		return complex(scaled(math.Cos(a), math.Abs(b)), -math.Copysign(1, b)*scaled(math.Sin(a), math.Abs(b)))
	}
	return cmplx.Cos(z)
}

// tanh has a divisor that does not cancel, unlike that of cmplx.Tanh.
func tanh(z complex128) complex128 {
	a, b := real(z), imag(z)
	switch {
	case math.IsInf(a, 0):
		return complex(math.Copysign(1, a), 0)
	case b == 0:
		return complex(math.Tanh(a), b)
	case !finite(b):
		return cmplx.NaN()
	case math.Abs(a) > 300:
		return complex(math.Copysign(1, a), 0)
	}
	norm := math.Sinh(a)*math.Sinh(a) + math.Cos(b)*math.Cos(b)
	return complex(math.Sinh(a)*math.Cosh(a)/norm, math.Sin(b)*math.Cos(b)/norm)
}

// check compares what an op gives for each of many operands.
func check(t *testing.T, b compute.Backend, dt dtypes.DType, epsilons func(i int) float64, want []complex128, op fn, operands ...[]complex128) {
	t.Helper()
	var args []arg
	for _, list := range operands {
		args = append(args, arg{narrowed(dt, list), []int{len(list)}})
	}
	flat, _, err := evaluate(b, args, op)
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for i, got := range widened(flat) {
		if !apart(dt, got, want[i], epsilons(i)) {
			continue
		}
		var of []complex128
		for _, list := range operands {
			of = append(of, list[i])
		}
		if bad++; bad <= 12 {
			t.Errorf("of %v: %v, want %v", of, got, want[i])
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d", bad, len(want))
	}
}

// Every op of one operand, on random numbers of all sizes and on edge values.
func TestComplexUnary(t *testing.T) {
	b := open(t, "millrace:cpu")
	for op, d := range definitions {
		for _, dt := range complexes {
			t.Run(fmt.Sprint(op, "/", dt), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(op), uint64(dt)))
				for _, list := range [][]complex128{numbers(r, dt, 2000), edgeNumbers(dt)} {
					var want []complex128
					for _, z := range list {
						want = append(want, d.f(z))
					}
					check(t, b, dt, func(int) float64 { return d.epsilons }, want, call(op), list)
				}
			})
		}
	}
}

// Ops of two operands on random numbers of all sizes, and on all pairs of edge
// values; with a constant, and with operands that broadcast.
func TestComplexBinary(t *testing.T) {
	b := open(t, "millrace:cpu")
	exact := func(complex128, complex128) float64 { return 0 }
	for op, d := range map[compute.OpType]struct {
		f        func(x, y complex128) complex128
		epsilons func(x, y complex128) float64
	}{
		compute.OpTypeAdd:      {func(x, y complex128) complex128 { return x + y }, func(x, y complex128) float64 { return 1 }},
		compute.OpTypeSub:      {func(x, y complex128) complex128 { return x - y }, func(x, y complex128) float64 { return 1 }},
		compute.OpTypeMul:      {func(x, y complex128) complex128 { return x * y }, func(x, y complex128) float64 { return 4 }},
		compute.OpTypeDiv:      {quotient, func(x, y complex128) float64 { return 8 }},
		compute.OpTypePow:      {power, func(x, y complex128) float64 { return 8 + 8*cmplx.Abs(y*cmplx.Log(x)) }},
		compute.OpTypeEqual:    {func(x, y complex128) complex128 { return truth(x == y) }, exact},
		compute.OpTypeNotEqual: {func(x, y complex128) complex128 { return truth(x != y) }, exact},
	} {
		for _, dt := range complexes {
			t.Run(fmt.Sprint(op, "/", dt), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(op), uint64(dt)))
				x, y := numbers(r, dt, 3000), numbers(r, dt, 3000)
				copy(x[100:120], y[100:120])
				if op == compute.OpTypePow {
					// Whatever is large on the way is so in the result: half of them are of about 1.
					x, y = near1(r, dt, 3000), near1(r, dt, 3000)
				} else {
					for _, p := range edgeNumbers(dt) {
						for _, q := range edgeNumbers(dt) {
							if r.IntN(4) == 0 {
								x, y = append(x, p), append(y, q)
							}
						}
					}
				}
				var want []complex128
				for i := range x {
					want = append(want, d.f(x[i], y[i]))
				}
				if op == compute.OpTypeMul && dt == dtypes.Complex64 {
					want = nil // the same sums of rounded products, which a wider product is not
					for i := range x {
						p, q := complex64(x[i]), complex64(y[i])
						want = append(want, complex128(complex(real(p)*real(q)-float32(imag(p)*imag(q)), real(p)*imag(q)+float32(imag(p)*real(q)))))
					}
				}
				check(t, b, dt, func(i int) float64 { return d.epsilons(x[i], y[i]) }, want, call(op), x, y)

				// A constant on either side, and a column against a row.
				for i := range 3 {
					one := narrowed(dt, y[i:i+1])
					var left, right []complex128
					for k := range 50 {
						right, left = append(right, d.f(x[k], y[i])), append(left, d.f(y[i], x[k]))
					}
					check(t, b, dt, func(k int) float64 { return d.epsilons(x[k], y[i]) }, right, func(f compute.Function, in []value) (value, error) {
						return call(op)(f, []value{in[0], must(f.Constant(one))})
					}, x[:50])
					check(t, b, dt, func(k int) float64 { return d.epsilons(y[i], x[k]) }, left, func(f compute.Function, in []value) (value, error) {
						return call(op)(f, []value{must(f.Constant(one)), in[0]})
					}, x[:50])
				}
				var grid []complex128
				for i := range 5 {
					for k := range 6 {
						grid = append(grid, d.f(x[i], y[k]))
					}
				}
				check(t, b, dt, func(i int) float64 { return d.epsilons(x[i/6], y[i%6]) }, grid, func(f compute.Function, in []value) (value, error) {
					return call(op)(f, []value{must(f.Reshape(in[0], 5, 1)), must(f.Reshape(in[1], 1, 6))})
				}, x[:5], y[:6])
			})
		}
	}
}

// quotient is Go's; it scales only one part by the other, so that the largest
// and smallest numbers are divided after both were brought near 1.
func quotient(x, y complex128) complex128 {
	size := func(z complex128) float64 { return max(math.Abs(real(z)), math.Abs(imag(z))) }
	m, n := size(x), size(y)
	if cmplx.IsInf(x) && y != 0 && finite(n) { // as Annex G says, where Go has one part as NaN
		a, b, c, d := boxed(real(x)), boxed(imag(x)), real(y), imag(y)
		return complex(math.Inf(1)*(a*c+b*d), math.Inf(1)*(b*c-a*d))
	}
	if cmplx.IsInf(y) && finite(real(x)) && finite(imag(x)) {
		return 0
	}
	if m == 0 || n == 0 || !finite(m) || !finite(n) {
		return x / y
	}
	p, q := math.Logb(m), math.Logb(n)
	down := func(z complex128, by float64) complex128 {
		return complex(math.Ldexp(real(z), -int(by)), math.Ldexp(imag(z), -int(by)))
	}
	return down(down(x, p)/down(y, q), q-p)
}

// boxed is ±1 for an infinite number, else 0.
func boxed(x float64) float64 {
	if math.IsInf(x, 0) {
		return math.Copysign(1, x)
	}
	return math.Copysign(0, x)
}

// power is e^(y·log x).
func power(x, y complex128) complex128 {
	switch {
	case y == 0:
		return 1
	case x == 0 && real(y) > 0:
		return 0
	case x == 0 && imag(y) == 0:
		return complex(math.Inf(1), 0)
	case x == 0:
		return cmplx.NaN()
	}
	return exp(y * log(x))
}

// near1 are numbers that powers of stay in range, zeros, and small whole ones.
func near1(r *rand.Rand, dt dtypes.DType, n int) []complex128 {
	list := make([]complex128, n)
	for i := range list {
		list[i] = complex(r.NormFloat64()*2, r.NormFloat64()*2)
		if i%7 == 0 {
			list[i] = complex(float64(r.IntN(7)-3), 0)
		}
	}
	return widened(narrowed(dt, list))
}

// Whole powers that are known are products.
func TestComplexWholePower(t *testing.T) {
	b := open(t, "millrace:cpu")
	x := near1(rand.New(rand.NewPCG(31, 3)), dtypes.Complex64, 100)
	for n := range 5 {
		want := make([]complex128, len(x))
		for i, z := range x {
			want[i] = 1
			for range n {
				want[i] *= z
			}
		}
		check(t, b, dtypes.Complex64, func(int) float64 { return 40 }, want, func(f compute.Function, in []value) (value, error) {
			return f.Pow(in[0], must(f.Constant([]complex64{complex(float32(n), 0)})))
		}, x)
	}
}
