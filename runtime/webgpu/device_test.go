//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package webgpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

const copyKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0"

func TestCopy(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int64{1, 2, 3, 4, 5, 63, 64, 65, 1000, 1 << 20} {
		x := newTrial(parse(t, copyKernel), 1, n)
		x.fillInputs(rng)
		x.check(t, d, ir.Tolerance{})
	}
}

func TestScalars(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	rng := rand.New(rand.NewPCG(1, 3))
	x := newTrial(parse(t, "in 0 : float32\nout 1 : float32\nscalar 0 : float32\nscalar 1 : float32\n"+
		"%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = mul %0 %1 : float32\n%3 = scalar 1 : float32\n%4 = add %2 %3 : float32\nstore 1 %4"), 1, 1000)
	x.fillInputs(rng)
	for range 5 {
		x.scalars = []uint64{uint64(math.Float32bits(rng.Float32())), uint64(math.Float32bits(rng.Float32()))}
		x.check(t, d, ir.Tolerance{Rel: 1e-6, Abs: 1e-6})
	}
	if c := d.Stats().Compiles; c != 1 {
		t.Errorf("%d compiles for one kernel and many scalars, want 1", c)
	}
}
