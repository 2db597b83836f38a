package interp

import (
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// chain returns a kernel of n cheap ops.
func chain(n int) *codegen.Kernel {
	k := &codegen.Kernel{Scalars: []ir.DType{ir.Float32}}
	x := kernels.Input(k, ir.Float32)
	s := kernels.Emit(k, ir.Scalar, ir.Float32, 0)
	v := x
	for i := range n {
		v = kernels.Emit(k, []ir.Op{ir.Add, ir.Mul, ir.Maximum, ir.Sub}[i%4], ir.Float32, 0, v, []ir.Ref{s, x}[i/4%2])
	}
	kernels.Output(k, v)
	return k
}

// BenchmarkBuild times making the block program of a new kernel.
func BenchmarkBuild(b *testing.B) {
	k := chain(40)
	for b.Loop() {
		if _, err := build(k); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBuildTime bounds the time from a new kernel to its program.
func TestBuildTime(t *testing.T) {
	best := time.Hour
	for i := range 20 {
		k := chain(40 + i)
		start := time.Now()
		_, err := build(k)
		best = min(best, time.Since(start))
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("40 ops built in %v", best)
}
