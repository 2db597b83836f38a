//go:build linux || darwin

package native_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// TestOneDivisor divides many elements by one divisor. Its mantissas give quotients near the middle
// between two floats, its exponents are near the ends of the range that is multiplied, and some
// elements are outside of it.
func TestOneDivisor(t *testing.T) {
	const n, rows = 512, 4
	exponents := map[ir.DType][]int{
		ir.Float32: {-149, -127, -126, -102, -101, -100, -99, -25, -24, -1, 0, 1, 23, 24, 25, 99, 100, 101, 127},
		ir.Float64: {-1074, -1022, -901, -900, -899, -101, -100, -1, 0, 1, 99, 100, 101, 899, 900, 901, 1023},
	}
	text := map[ir.DType]string{}
	for dt := range exponents {
		name := dt.String()
		text[dt] = "in 0 : " + name + "\nin 1 : " + name + "\nout 2 : " + name + "\n%0 = load 0 : " + name + "\n%1 = load 1 : " + name +
			"\n%2 = fdiv %0 %1 : " + name + "\nstore 2 %2\n"
	}
	times := 4000
	if testing.Short() {
		times = 400
	}
	for _, isa := range runnable() {
		f := &fences{t: t}
		for dt, list := range exponents {
			k := parse(t, text[dt])
			v := all(k, codegen.Contiguous)
			v.Class[1] = codegen.Splat
			fn, code := compileTest(t, k, v, isa)
			rng := rand.New(rand.NewPCG(uint64(dt), 3))
			l := newExact(rng, f, k, v, rows, n)
			size := dt.Size()
			float := func(exponent int) uint64 {
				m := 1 + rng.Float64()
				switch rng.IntN(4) {
				case 0: // few bits
					m = 1 + float64(rng.IntN(16))/16
				case 1: // nearly two
					m = 2 - float64(rng.IntN(8)+1)*0x1p-23
				}
				x := math.Ldexp(m, exponent)
				if size == 4 {
					return uint64(math.Float32bits(float32(x)))
				}
				return math.Float64bits(x)
			}
			special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}
			for at := range times {
				for i := range l.data[:2] {
					for e := 0; e < len(l.data[i]); e += size {
						bits := float(list[rng.IntN(len(list))])
						switch r := rng.IntN(16); {
						case at%2 == 0: // all are multiplied
							bits = float(rng.IntN(40) - 20)
						case r == 0:
							x := special[rng.IntN(len(special))]
							if bits = math.Float64bits(x); size == 4 {
								bits = uint64(math.Float32bits(float32(x)))
							}
						case r < 4:
							bits |= 1 << (8*size - 1)
						}
						var w [8]byte
						binary.LittleEndian.PutUint64(w[:], bits)
						copy(l.data[i][e:e+size], w[:])
					}
				}
				if err := checkExact(l, fn, code); err != nil {
					t.Fatalf("%s, %v: %v", isa.Name, dt, err)
				}
			}
			code.Free()
		}
	}
}

// TestHiddenDivisions checks that divisions by a common divisor become products only if a step has
// too little other work to hide the divider's time.
func TestHiddenDivisions(t *testing.T) {
	for _, isa := range runnable() {
		if !isa.Masks {
			continue
		}
		for _, c := range []struct {
			others int
			want   bool
		}{{0, true}, {2 * native.DivisionWait, false}} {
			text := "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = fdiv %0 %1 : float32\n"
			for i := range c.others {
				text += fmt.Sprintf("%%%d = add %%%d %%0 : float32\n", i+3, i+2)
			}
			k := parse(t, text+fmt.Sprintf("store 2 %%%d\n", c.others+2))
			v := all(k, codegen.Contiguous)
			v.Class[1] = codegen.Splat
			f, err := native.Compile(k, v, isa, true)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(f.Text(), "vfnmadd231ps") != c.want {
				t.Errorf("%s, beside %d other instructions a product is %v wanted:\n%s", isa.Name, c.others, c.want, f.Text())
			}
		}
	}
}
