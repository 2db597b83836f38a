//go:build linux || darwin

package native

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
)

// tiny fills a launch's floats with numbers that are denormal, or nearly.
func (l *exact) tiny(rng *rand.Rand) {
	for i, o := range l.k.Operands {
		if o.Kind != codegen.Input || !o.DT.IsFloat() {
			continue
		}
		for at, size := 0, o.DT.Size(); at+size <= len(l.data[i]); at += size {
			if rng.IntN(4) == 0 {
				continue
			}
			var w [8]byte
			binary.LittleEndian.PutUint64(w[:], kerneltest.Tiny(rng, o.DT))
			copy(l.data[i][at:at+size], w[:])
		}
	}
}

// TestFlushedChoices: a choice moves bits, and so must the instruction that stands for a
// comparison and a choice: that one takes denormals for zeros where the rule is to flush.
func TestFlushedChoices(t *testing.T) {
	for _, isa := range runnable() {
		f := &fences{t: t}
		for _, dt := range []string{"float32", "float64"} {
			for _, flush := range []string{"", "denormals flush\n"} {
				for _, op := range []string{"lt", "gt"} {
					for _, order := range []string{"%0 %1", "%1 %0"} {
						k := parse(t, flush+"in 0 : "+dt+"\nin 1 : "+dt+"\nout 2 : "+dt+"\n%0 = load 0 : "+dt+"\n%1 = load 1 : "+dt+
							"\n%2 = "+op+" %0 %1 : bool\n%3 = where %2 "+order+" : "+dt+"\nstore 2 %3\n")
						v := all(k, codegen.Contiguous)
						fn, code := compileTest(t, k, v, isa)
						rng := rand.New(rand.NewPCG(1, 2))
						l := newExact(rng, f, k, v, 1, 500)
						l.tiny(rng)
						if err := checkExact(l, fn, code); err != nil {
							t.Errorf("%s: %v\n%v", isa.Name, err, k)
						}
						code.Free()
					}
				}
			}
		}
	}
}

// TestRandomFlushed compares kernels that flush, on numbers that are tiny.
func TestRandomFlushed(t *testing.T) {
	n := times(t, 150)
	for _, isa := range runnable() {
		f := &fences{t: t}
		for seed := firstSeed(); seed < firstSeed()+n; seed++ {
			rng := rand.New(rand.NewPCG(uint64(seed), 37))
			plain := kerneltest.Random(rng, 4+rng.IntN(40), 0)
			if seed%2 == 0 {
				plain = codegen.Flushed(plain)
			} else {
				plain.Denormals = ir.FlushDenormals // as fusion leaves moves
			}
			k := lower(t, plain)
			v := randomClasses(rng, k)
			fn, code := compileTest(t, k, v, isa)
			for range 3 {
				l := newExact(rng, f, k, v, 1+rng.IntN(3), 1+rng.IntN(130))
				l.tiny(rng)
				if err := checkExact(l, fn, code); err != nil {
					t.Fatalf("%s, seed %d, %dx%d: %v\nclasses %v\n%v", isa.Name, seed, l.rows, l.n, err, v.Class, plain)
				}
			}
			code.Free()
		}
	}
}
