package codegen

import (
	"math/rand/v2"
	"testing"
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
			if q.String() != text || q.Key() != k.Key() {
				t.Fatalf("read back as\n%s\nfrom\n%s", q, text)
			}
		}
	}
}

// FuzzParse checks that any text is refused or read into a kernel that prints
// as itself and can be lowered.
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
