//go:build linux || darwin

package native_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// tiny fills a launch's floats with numbers that are denormal or nearly so.
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
			binary.LittleEndian.PutUint64(w[:], kernels.Tiny(rng, o.DT))
			copy(l.data[i][at:at+size], w[:])
		}
	}
}

// TestFlushedChoices checks the instruction that replaces a comparison and a Where. A Where copies
// bits, but this instruction treats denormals as zeros if they are flushed.
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

// TestRandomFlushed compares kernels that flush, on tiny numbers.
func TestRandomFlushed(t *testing.T) {
	n := times(t, 150)
	for _, isa := range runnable() {
		f := &fences{t: t}
		for seed := firstSeed(); seed < firstSeed()+n; seed++ {
			rng := rand.New(rand.NewPCG(uint64(seed), 37))
			plain := kernels.Random(rng, 4+rng.IntN(40), 0)
			if seed%2 == 0 {
				plain = codegen.Flushed(plain)
			} else {
				plain.Denormals = ir.FlushDenormals // as fusion does for moves
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

// TestFlushedRounding checks that a result is kept if it is tiny before rounding but not afterwards.
func TestFlushedRounding(t *testing.T) {
	const n = 600
	const two = "in 0 : $f\nin 1 : $f\nout 2 : $f\n%0 = load 0 : $f\n%1 = load 1 : $f\n"
	texts := map[string]string{
		"mul": two + "%2 = mul %0 %1 : $f\nstore 2 %2\n",
		"div": two + "%2 = fdiv %0 %1 : $f\nstore 2 %2\n",
		"fma": "in 0 : $f\nin 1 : $f\nin 2 : $f\nout 3 : $f\n%0 = load 0 : $f\n%1 = load 1 : $f\n%2 = load 2 : $f\n%3 = fma %0 %1 %2 : $f\nstore 3 %3\n",
	}
	for _, isa := range runnable() {
		f := &fences{t: t}
		for name, text := range texts {
			for _, dt := range []ir.DType{ir.Float32, ir.Float64} {
				least, digits := 0x1p-126, 24
				if dt == ir.Float64 {
					least, digits = 0x1p-1022, 53
				}
				k := parse(t, "denormals flush\n"+strings.ReplaceAll(text, "$f", dt.String()))
				v := all(k, codegen.Contiguous)
				fn, code := compileTest(t, k, v, isa)
				rng := rand.New(rand.NewPCG(uint64(dt), 5))
				l := newExact(rng, f, k, v, 1, n)
				put := func(i, e int, x float64) {
					if dt == ir.Float64 {
						binary.LittleEndian.PutUint64(l.data[i][8*e:], math.Float64bits(x))
					} else {
						binary.LittleEndian.PutUint32(l.data[i][4*e:], math.Float32bits(float32(x)))
					}
				}
				for e := range n {
					x := (1 + rng.Float64()) * math.Ldexp(1, -rng.IntN(20))
					if rng.IntN(2) == 0 {
						x = -x
					}
					near := 1 + float64(rng.IntN(9)-4)*math.Ldexp(1, -digits)
					switch name {
					case "mul":
						put(0, e, x)
						put(1, e, least/x*near)
					case "div":
						put(0, e, least/x*near)
						put(1, e, 1/x)
					default:
						put(0, e, x)
						put(1, e, 2*least/x*near)
						put(2, e, -least*near)
					}
				}
				if err := checkExact(l, fn, code); err != nil {
					t.Errorf("%s, %s of %v: %v\n%v", isa.Name, name, dt, err, k)
				}
				code.Free()
			}
		}
		k := parse(t, "denormals flush\nin 0 : float64\nout 1 : float32\n%0 = load 0 : float64\n%1 = convert %0 : float32\nstore 1 %1\n")
		v := all(k, codegen.Contiguous)
		fn, code := compileTest(t, k, v, isa)
		l := newExact(rand.New(rand.NewPCG(1, 5)), f, k, v, 1, 64)
		for e := range 64 {
			binary.LittleEndian.PutUint64(l.data[0][8*e:], math.Float64bits(0x1p-126*(1-float64(e)*0x1p-29)))
		}
		if err := checkExact(l, fn, code); err != nil {
			t.Errorf("%s, to float32: %v", isa.Name, err)
		}
		code.Free()
	}
}
