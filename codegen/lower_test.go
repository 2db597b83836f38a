package codegen

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// TestLowerKeepsBits runs random kernels on special values before and after lowering.
func TestLowerKeepsBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for range rounds {
		k := randomKernel(rng, 60)
		if err := k.Verify(); err != nil {
			t.Fatalf("%v\n%s", err, k)
		}
		simple, err := Simplify(k)
		if err != nil {
			t.Fatal(err)
		}
		low, err := Lower(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range low.Body {
			first := ir.Invalid
			if in.Args[0] != ir.None {
				first = low.Body[in.Args[0]].DT
			}
			if !ir.IsPrim(in.Op, in.DT, first) {
				t.Fatalf("%s is left in\n%s", in.Op, low)
			}
		}
		const n = 24
		args := randomArgs(rng, k, n)
		want := runDense(t, k, args, n)
		for _, q := range []*Kernel{simple, low} {
			if err := q.Verify(); err != nil {
				t.Fatalf("%v\n%s", err, q)
			}
			got := runDense(t, q, args, n)
			for i := range got {
				dt := k.Operands[i].DT
				for j := range n {
					a, b := element(got[i], dt, j), element(want[i], dt, j)
					if !ir.SameValue(dt, a, b) {
						t.Fatalf("output %d: got %s, want %s\n%s\nbecame\n%s", i, ir.FormatBits(dt, a), ir.FormatBits(dt, b), k, q)
					}
				}
			}
		}
	}
}

// TestLowerIsStable checks that the result depends on the kernel alone and that lowering again
// changes nothing.
func TestLowerIsStable(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		k := randomKernel(rng, 50)
		before := k.String()
		a, err := Lower(k)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Lower(k)
		if err != nil {
			t.Fatal(err)
		}
		if a.Key() != b.Key() {
			t.Fatalf("two results:\n%s\n%s", a, b)
		}
		if k.String() != before {
			t.Fatal("the operand was changed")
		}
		c, err := Lower(a)
		if err != nil {
			t.Fatal(err)
		}
		if c.String() != a.String() {
			t.Fatalf("a second pass changed\n%s\ninto\n%s", a, c)
		}
	}
}

func TestLowerRefusesBadKernels(t *testing.T) {
	k := &Kernel{Stores: []Store{{0, 0}}}
	if _, err := Lower(k); err == nil {
		t.Error("no error")
	}
}

func BenchmarkLower(b *testing.B) {
	k := randomKernel(rand.New(rand.NewPCG(7, 8)), 60)
	for b.Loop() {
		if _, err := Lower(k); err != nil {
			b.Fatal(err)
		}
	}
}
