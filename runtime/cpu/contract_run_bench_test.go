package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// BenchmarkDot times launches of a kernel that is only a contraction, and of one with work around
// it. BenchmarkContract in internal/contract times contractions alone.
func BenchmarkDot(b *testing.B) {
	for _, s := range []map[string]int64{{"i": 1, "j": 64, "k": 64}, {"i": 128, "j": 128, "k": 128}, {"i": 1024, "j": 1024, "k": 1024}} {
		for _, name := range []string{"plain", "around"} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", name, s["i"], s["k"], s["j"]), func(b *testing.B) { benchmarkDot(b, dotKernels[name], s) })
		}
	}
}

func benchmarkDot(b *testing.B, text string, size map[string]int64) {
	k := rowKernel(b, text)
	d := openTest(b, runtime.Config{Tier: 1, Threads: 2})
	operands := []string{"i k", "k j"}
	for i, o := range k.Operands[2:] {
		if i == 0 && o.Kind == codegen.Input {
			operands = append(operands, "j")
		} else {
			operands = append(operands, "i j")
		}
	}
	h := dotLaunch(rand.New(rand.NewPCG(1, 2)), k, "i j | k", size, operands...)
	p, err := d.Build(k)
	if err != nil {
		b.Fatal(err)
	}
	l := runtime.Launch{Prog: p, Rank: len(h.Dims), Kept: h.Kept, Scalars: h.Scalars}
	copy(l.Dims[:], h.Dims)
	for i, a := range h.Args {
		acc := a.Access
		buf, err := d.Alloc(int64(len(a.Data)))
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Write(buf, k.Operands[i].DT, 0, a.Data); err != nil {
			b.Fatal(err)
		}
		acc.Buf = buf
		l.Args = append(l.Args, acc)
	}
	list := []runtime.Launch{l}
	if err := d.Run(list); err != nil { // waits for the compiler
		b.Fatal(err)
	}
	for b.Loop() {
		if err := d.Run(list); err != nil {
			b.Fatal(err)
		}
	}
}
