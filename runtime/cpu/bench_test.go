package cpu

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// geluKernels returns GELUs as fusion writes them: scalars are run-time values.
func geluKernels() map[string]*codegen.Kernel {
	f := ir.Float32
	scalar := func(k *codegen.Kernel, b *ir.Builder, slot int) ir.Ref {
		for len(k.Scalars) <= slot {
			k.Scalars = append(k.Scalars, f)
		}
		return b.Emit(ir.Scalar, f, uint64(slot))
	}
	start := func() (*codegen.Kernel, *ir.Builder, ir.Ref) {
		k := &codegen.Kernel{Operands: []codegen.Operand{{Kind: codegen.Input, DT: f}, {Kind: codegen.Output, DT: f}}}
		b := &ir.Builder{}
		return k, b, b.Emit(ir.Load, f, 0)
	}
	finish := func(k *codegen.Kernel, b *ir.Builder, y ir.Ref) *codegen.Kernel {
		k.Body, k.Stores = b.Code, []codegen.Store{{Operand: 1, Value: y}}
		return k
	}
	m := map[string]*codegen.Kernel{}

	k, b, x := start()
	m["copy"] = finish(k, b, x)

	k, b, x = start()
	m["reference"] = finish(k, b, b.Emit(ir.Gelu, f, 0, x))

	k, b, x = start()
	e := b.Emit(ir.Erf, f, 0, b.Emit(ir.Mul, f, 0, x, scalar(k, b, 0)))
	y := b.Emit(ir.Mul, f, 0, x, b.Emit(ir.Add, f, 0, e, scalar(k, b, 1)))
	m["erf"] = finish(k, b, b.Emit(ir.Mul, f, 0, y, scalar(k, b, 2)))

	// erf by Abramowitz and Stegun 7.1.26, on z and on -z, chosen by sign.
	k, b, x = start()
	z := b.Emit(ir.Mul, f, 0, x, scalar(k, b, 0))
	half := func(z ir.Ref) ir.Ref {
		one := scalar(k, b, 1)
		t := b.Emit(ir.Div, f, 0, one, b.Emit(ir.Add, f, 0, b.Emit(ir.Mul, f, 0, b.Emit(ir.Abs, f, 0, z), scalar(k, b, 3)), one))
		p := scalar(k, b, 4)
		for i := 5; i < 9; i++ {
			p = b.Emit(ir.Add, f, 0, b.Emit(ir.Mul, f, 0, p, t), scalar(k, b, i))
		}
		g := b.Emit(ir.Exp, f, 0, b.Emit(ir.Neg, f, 0, b.Emit(ir.Mul, f, 0, z, z)))
		return b.Emit(ir.Sub, f, 0, one, b.Emit(ir.Mul, f, 0, b.Emit(ir.Mul, f, 0, p, t), g))
	}
	neg := b.Emit(ir.Neg, f, 0, half(b.Emit(ir.Neg, f, 0, z)))
	pos := half(z)
	zero := b.Emit(ir.Const, f, 0)
	erf := b.Emit(ir.Where, f, 0, b.Emit(ir.Gt, ir.Bool, 0, z, zero), pos, neg)
	y = b.Emit(ir.Mul, f, 0, x, b.Emit(ir.Add, f, 0, erf, scalar(k, b, 1)))
	m["custom"] = finish(k, b, b.Emit(ir.Mul, f, 0, y, scalar(k, b, 2)))
	return m
}

// geluScalars are the scalars of all geluKernels.
var geluScalars = []float32{float32(1 / math.Sqrt2), 1, 0.5, 0.3275911, 1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592}

// BenchmarkGelu times one launch over 32×512×2048 elements; the time of copying the same bytes is
// the lower bound.
func BenchmarkGelu(b *testing.B) {
	const n = 32 * 512 * 2048
	d := openTest(b, runtime.Config{Tier: 1, Threads: 2})
	var bufs [2]runtime.Buffer
	for i := range bufs {
		var err error
		if bufs[i], err = d.Alloc(n * 4); err != nil {
			b.Fatal(err)
		}
		data := make([]byte, n*4)
		for j := range n {
			x := math.Float32bits(float32(j%2048)/256 - 4)
			data[4*j], data[4*j+1], data[4*j+2], data[4*j+3] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
		}
		if err := d.Write(bufs[i], ir.Float32, 0, data); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("memcpy", func(b *testing.B) {
		b.SetBytes(8 * n)
		for b.Loop() {
			dst, src := bufs[0].(*memory.Buffer), bufs[1].(*memory.Buffer)
			if err := d.transfer(dst, ir.Float32, 0, bytesOf(src), true); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, name := range []string{"copy", "reference", "erf", "custom"} {
		k := geluKernels()[name]
		b.Run(name, func(b *testing.B) {
			p, err := d.Build(k)
			if err != nil {
				b.Fatal(err)
			}
			l := runtime.Launch{Prog: p, Rank: 1, Kept: 1, Args: make([]runtime.Access, 2)}
			l.Dims[0] = n
			for i := range l.Args {
				l.Args[i].Buf = bufs[i]
				l.Args[i].Stride[0] = 1
			}
			for _, s := range geluScalars[:len(k.Scalars)] {
				l.Scalars = append(l.Scalars, uint64(math.Float32bits(s)))
			}
			list := []runtime.Launch{l}
			if err := d.Run(list); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(8 * n)
			for b.Loop() {
				if err := d.Run(list); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
