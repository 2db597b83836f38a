package codegen

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

func TestTextRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		k := randomKernel(rng, 40)
		low, err := Lower(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []*Kernel{k, low} {
			text := k.String()
			q, err := Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if q.String() != text || q.Key() != k.Key() || !q.Equal(k) {
				t.Fatalf("read back as\n%s\nfrom\n%s", q, text)
			}
		}
	}
}

// Kernels have equal texts if and only if they are equal.
func TestEqual(t *testing.T) {
	const src = "in 0 : float32\nin 1 : float32\nout 2 : float32 row\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n" +
		"%2 = scalar 0 : float32\n%3 = mul %0 %2 : float32\n%4 = sum %3 : float32\nstore 2 %4\n"
	k := mustParse(t, src)
	for i, change := range []func(k *Kernel){
		func(k *Kernel) { k.Operands[2].Row = false },
		func(k *Kernel) { k.Operands = k.Operands[:2] },
		func(k *Kernel) { k.Scalars[0] = ir.Float64 },
		func(k *Kernel) { k.Body[3].Args[1] = 1 },
		func(k *Kernel) { k.Body[4].Op = ir.Max },
		func(k *Kernel) { k.Body[2].Imm = 1 },
		func(k *Kernel) { k.Stores[0].Value = 3 },
		func(k *Kernel) { k.Reduces = append(k.Reduces, Reduce{Op: ir.Sum}) },
	} {
		q := mustParse(t, src)
		if !q.Equal(k) {
			t.Fatal("a kernel is not itself")
		}
		if change(q); q.Equal(k) || q.String() == k.String() {
			t.Errorf("change %d makes no difference:\n%s", i, q)
		}
	}
}

// FuzzParse checks that any text is refused, or read as a kernel that prints the same text and can
// be lowered.
func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 5 {
		f.Add(randomKernel(rng, 30).String())
	}
	f.Add("in 0 : float32\nout 1 : float32\nindex 2\nscalar 0 : uint64\n%0 = load 0 : float32\nsum 1 %0\n")
	f.Fuzz(func(t *testing.T, src string) {
		k, err := Parse(src)
		if err != nil {
			return
		}
		text := k.String()
		q, err := Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again := q.String(); again != text {
			t.Fatalf("printed as\n%s\nthen as\n%s", text, again)
		}
		low, err := Lower(k)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := low.Verify(); err != nil {
			t.Fatalf("%v\n%s", err, low)
		}
	})
}
