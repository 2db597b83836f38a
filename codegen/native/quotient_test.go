//go:build linux || darwin

package native_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// TestLoadedDivisors divides by values in memory that an earlier phase made safe: lanes beyond a
// row's end have no divisor.
func TestLoadedDivisors(t *testing.T) {
	const text = "in 0 : %[1]v\nin 1 : %[1]v\nout 2 : %[1]v\nout 3 : %[1]v\n%%0 = load 0 : %[1]v\n%%1 = load 1 : %[1]v\n" +
		"%%2 = quo %%0 %%1 : %[1]v\n%%3 = mod %%0 %%1 : %[1]v\nstore 2 %%2\nstore 3 %%3\n"
	for _, isa := range runnable() {
		f := &fences{t: t}
		for _, dt := range []ir.DType{ir.Int32, ir.Int64, ir.Uint32, ir.Uint64} {
			k := parse(t, fmt.Sprintf(text, dt))
			for class := codegen.Contiguous; class <= codegen.Staged; class++ {
				rng := rand.New(rand.NewPCG(uint64(dt), 41))
				v := all(k, codegen.Contiguous)
				v.Class[1] = class
				fn, code := compileTest(t, k, v, isa)
				for n := 1; n < 70; n++ {
					l := newExact(rng, f, k, v, 1+rng.IntN(2), n)
					for size, at := dt.Size(), 0; at < len(l.data[1]); at += size {
						x := rng.Int64N(9) + 1
						if dt.IsSigned() && rng.IntN(2) == 0 {
							x = -x
						}
						var w [8]byte
						binary.LittleEndian.PutUint64(w[:], uint64(x))
						copy(l.data[1][at:at+size], w[:])
					}
					if err := checkExact(l, fn, code); err != nil {
						t.Fatalf("%s, %v, %v, rows of %d: %v", isa.Name, dt, class, n, err)
					}
				}
				code.Free()
			}
		}
	}
}
