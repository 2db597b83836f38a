package main

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// The gradient of a sum of magnitudes of a spectrum is, in closed form, the sum over k of
// Re(conj(F_k)/|F_k| * root^(jk)), as long as no F_k is zero: where one is, it is the
// direction of a rounding error, which GoMLX's own TestGradientFFT takes for a value.
func TestGradientOfSpectrum(t *testing.T) {
	b, err := compute.NewWithConfig("millrace:cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	for _, n := range []int{11, 16, 60} {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Sin(2*math.Pi*float64(i)/float64(n)) + 0.1*float64(i*i%7) + 0.3
		}
		root := func(k int) complex128 { return cmplx.Rect(1, -2*math.Pi*float64(k%n)/float64(n)) }
		want := make([]float64, n)
		for k := range n {
			var f complex128
			for j, v := range x {
				f += complex(v, 0) * root(j*k)
			}
			if cmplx.Abs(f) < 1e-3 {
				t.Fatalf("length %d: |F| of %d is %v", n, k, cmplx.Abs(f))
			}
			for j := range want {
				want[j] += real(cmplx.Conj(f) / complex(cmplx.Abs(f), 0) * root(j*k))
			}
		}
		exec, err := graph.NewExec(b, func(x *graph.Node) []*graph.Node {
			z := graph.ConvertDType(x, dtypes.Complex128)
			spectrum := graph.FFT(z)
			size := graph.ReduceAllSum(graph.Abs(spectrum))
			lost := graph.ReduceAllSum(graph.Abs(graph.Sub(graph.InverseFFT(spectrum), z)))
			return []*graph.Node{graph.Gradient(size, x)[0], lost}
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Exec(x)
		if err != nil {
			t.Fatal(err)
		}
		for j, g := range tensors.MustCopyFlatData[float64](out[0]) {
			if !(math.Abs(g-want[j]) < 1e-11) {
				t.Errorf("length %d: the derivative by element %d is %v, want %v", n, j, g, want[j])
			}
		}
		if lost := tensors.ToScalar[float64](out[1]); !(lost < 1e-12) {
			t.Errorf("length %d: there and back differs by %v", n, lost)
		}
	}
}
