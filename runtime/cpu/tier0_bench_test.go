package cpu

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// geluKernel returns a GELU of a user with an erf function of their own, the one of Abramowitz and
// Stegun, 7.1.26: 24 ops on float32.
func geluKernel() *codegen.Kernel {
	k := &codegen.Kernel{}
	f := func(v float32) ir.Ref { return kernels.Emit(k, ir.Const, ir.Float32, uint64(math.Float32bits(v))) }
	op := func(o ir.Op, args ...ir.Ref) ir.Ref { return kernels.Emit(k, o, ir.Float32, 0, args...) }
	x := kernels.Input(k, ir.Float32)
	z := op(ir.Mul, x, f(0.70710678))
	a := op(ir.Abs, z)
	t := op(ir.Div, f(1), op(ir.Add, op(ir.Mul, a, f(0.3275911)), f(1)))
	p := op(ir.Mul, t, f(1.061405429))
	for _, c := range []float32{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		p = op(ir.Mul, op(ir.Add, p, f(c)), t)
	}
	e := op(ir.Exp, op(ir.Neg, op(ir.Mul, a, a)))
	y := op(ir.Sub, f(1), op(ir.Mul, p, e))
	y = op(ir.Mul, op(ir.Sign, z), y)
	kernels.Output(k, op(ir.Mul, op(ir.Mul, x, f(0.5)), op(ir.Add, y, f(1))))
	return k
}

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

// denseLaunch returns a launch of a kernel over n elements of new memory.
func denseLaunch(tb testing.TB, d *device, k *codegen.Kernel, n int64) []runtime.Launch {
	p, err := d.Build(k)
	if err != nil {
		tb.Fatal(err)
	}
	l := runtime.Launch{Prog: p, Rank: 1, Kept: 1, Scalars: []uint64{0x3f000000}[:len(k.Scalars)]}
	l.Dims[0] = n
	for _, o := range k.Operands {
		b, err := d.Alloc(n * int64(o.DT.Size()))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { d.Free(b) })
		if err := d.Write(b, o.DT, 0, make([]byte, n*int64(o.DT.Size()))); err != nil {
			tb.Fatal(err)
		}
		a := runtime.Access{Buf: b}
		a.Stride[0] = 1
		l.Args = append(l.Args, a)
	}
	return []runtime.Launch{l}
}

func BenchmarkTier0(b *testing.B) {
	d := openTest(b, runtime.Config{Tier: -1, Threads: 2})
	const n = 32 * 512 * 2048
	copies := &codegen.Kernel{}
	kernels.Output(copies, kernels.Input(copies, ir.Float32))
	for _, c := range []struct {
		name string
		k    *codegen.Kernel
		n    int64
	}{
		{"op=copy/n=32Mi", copies, n},
		{"op=gelu/n=32Mi", geluKernel(), n},
		{"op=chain40/n=1000", chain(40), 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			list := denseLaunch(b, d, c.k, c.n)
			b.SetBytes(8 * c.n)
			for b.Loop() {
				if err := d.Run(list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
