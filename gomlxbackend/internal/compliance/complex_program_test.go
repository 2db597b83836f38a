package compliance

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// complexProgram adds random ops on complex matrices of 6 by 10 to a graph. It
// gives the last few of them.
func complexProgram(r *rand.Rand, f compute.Function, z value, dt dtypes.DType) (value, error) {
	matrix := shapes.Make(dt, 6, 10)
	list := values{z}
	pick := func() value { return list[r.IntN(len(list))] }
	unary := []compute.OpType{compute.OpTypeNeg, compute.OpTypeConj, compute.OpTypeSign, compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeLog, compute.OpTypeLog1p,
		compute.OpTypeSqrt, compute.OpTypeRsqrt, compute.OpTypeSin, compute.OpTypeCos, compute.OpTypeTanh, compute.OpTypeLogistic}
	binary := []compute.OpType{compute.OpTypeAdd, compute.OpTypeSub, compute.OpTypeMul, compute.OpTypeDiv, compute.OpTypePow}
	for range 10 {
		var v value
		x := pick()
		switch r.IntN(9) {
		case 0, 1:
			v = must(call(unary[r.IntN(len(unary))])(f, values{x}))
		case 2, 3:
			v = must(call(binary[r.IntN(len(binary))])(f, values{x, pick()}))
		case 4:
			v = must(f.FFT(x, compute.FFTType(r.IntN(2)), []int{6, 10}[r.IntN(2):]))
		case 5:
			half := must(f.FFT(must(f.Imag(x)), compute.FFTForwardReal, []int{10}))
			v = must(f.Complex(must(f.FFT(half, compute.FFTInverseReal, []int{10})), must(f.Abs(pick()))))
		case 6:
			v = must(f.Reshape(must(f.Transpose(must(f.Reverse(x, r.IntN(2))), 1, 0)), 6, 10))
		case 7:
			v = must(f.Where(must(f.LessThan(must(f.Real(x)), must(f.Imag(pick())))), x, pick()))
		case 8:
			v = must(f.DotGeneral(x, []int{1}, nil, must(f.DotGeneral(pick(), []int{0}, nil, pick(), []int{0}, nil, compute.DotGeneralConfig{})), []int{0}, nil, compute.DotGeneralConfig{}))
			sum := must(f.BroadcastInDim(must(f.ReduceSum(pick(), 1)), matrix, []int{0}))
			v = must(f.Add(v, sum))
		}
		list = append(list, v)
	}
	return f.Concatenate(0, list[len(list)-4:]...)
}

// Random programs give the same bits fused or not, compiled or interpreted, on
// however many threads.
func TestComplexPrograms(t *testing.T) {
	compiled := open(t, "millrace:cpu,compile=wait")
	var backends []compute.Backend
	for _, config := range []string{"compile=off,explore=wait", "compile=off,fusion=off", "compile=off,threads=1"} {
		backends = append(backends, open(t, "millrace:cpu,"+config))
	}
	for seed := range 8 {
		backends := backends
		if seed == 0 && !testing.Short() { // compilers take their time
			backends = append(backends, compiled)
		}
		dt := complexes[seed%2]
		x := arg{narrowed(dt, gaussian(rand.New(rand.NewPCG(61, uint64(seed))), dt, 60)), []int{6, 10}}
		var first any
		for i, b := range backends {
			got, _, err := evaluate(b, []arg{x}, func(f compute.Function, in []value) (value, error) {
				return complexProgram(rand.New(rand.NewPCG(62, uint64(seed))), f, in[0], dt)
			})
			if err != nil {
				t.Fatalf("program %d: %v", seed, err)
			}
			if i == 0 {
				first = got
			} else if fmt.Sprint(parts(dt, got)) != fmt.Sprint(parts(dt, first)) {
				t.Errorf("program %d on backend %d: %v, want %v", seed, i, got, first)
			}
		}
	}
}

// Transforms too long to be compared with sums: there and back, and of a wave,
// which has one line.
func TestFFTLong(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(61, 1000))
	const dt = dtypes.Complex128
	for _, n := range []int{1 << 17, 3 * 5 * 7 * 11 * 13, 65537} {
		x := gaussian(r, dt, n)
		check(t, b, dt, func(int) float64 { return 1e5 }, x, func(f compute.Function, in []value) (value, error) {
			return f.FFT(must(f.FFT(in[0], compute.FFTForward, []int{n})), compute.FFTInverse, []int{n})
		}, x)
		wave, line := make([]complex128, n), make([]complex128, n)
		for k := range wave {
			wave[k] = circle(3*k, n)
		}
		line[3] = 1
		flat, _, err := evaluate(b, []arg{{wave, []int{n}}}, func(f compute.Function, in []value) (value, error) {
			return f.Div(must(f.FFT(in[0], compute.FFTForward, []int{n})), must(f.Constant([]complex128{complex(float64(n), 0)})))
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, z := range flat.([]complex128) {
			if d := z - line[i]; max(real(d), -real(d), imag(d), -imag(d)) > 1e-13 {
				t.Fatalf("line %d of %d is %v, want %v", i, n, z, line[i])
			}
		}
	}
}
