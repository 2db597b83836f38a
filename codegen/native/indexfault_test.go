//go:build linux || darwin

package native_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// TestEmptyAxis checks that nothing is read from an axis without elements, in any mode.
func TestEmptyAxis(t *testing.T) {
	for _, isa := range runnable() {
		for _, mode := range []ir.IndexMode{ir.IndexClamp, ir.IndexDrop} {
			for class := codegen.Contiguous; class <= codegen.Staged; class++ {
				k := parse(t, fmt.Sprintf("in 0 : int16\nin 1 : int32\nout 2 : int16\n%%0 = load 1 : int32\n%%1 = loadat 0 %v %%0 : int16\nstore 2 %%1\n", mode))
				v := all(k, codegen.Contiguous)
				v.Class[0] = class
				fn, code := compileTest(t, k, v, isa)
				rng, f := rand.New(rand.NewPCG(3, 4)), &fences{t: t}
				l := newExact(rng, f, k, v, 1, 77)
				l.places[0].size = 0
				l.data[0] = f.at(0).cut(2, false)
				l.places[0].first = -800 // outside of all memory, and so are all points from there
				if err := checkExact(l, fn, code); err != nil {
					t.Errorf("%s, %v, %v: %v", isa.Name, mode, class, err)
				}
				code.Free()
			}
		}
	}
}

// TestLeastFault checks that of all indices that are out of range and that a guard admits, the
// least is recorded, and of equal ones that of the first operand, wherever they are.
func TestLeastFault(t *testing.T) {
	const text = `in 0 : float32
in 1 : int64
in 2 : float64
in 3 : int32
in 4 : bool
out 5 : float64
%0 = load 1 : int64
%1 = load 3 : int32
%2 = load 4 : bool
%3 = loadat 2 error %0 %2 : float64
%4 = loadat 0 error %1 : float32
%5 = cast %4 : float64
%6 = add %3 %5 : float64
store 5 %6
`
	for _, isa := range runnable() {
		k := parse(t, text)
		fn, code := compileTest(t, k, all(k, codegen.Contiguous), isa)
		defer code.Free()
		rng, f := rand.New(rand.NewPCG(5, 6)), &fences{t: t}
		for range times(t, 400) {
			rows, n := 1+rng.IntN(4), 1+rng.IntN(100)
			l := newExact(rng, f, k, all(k, codegen.Contiguous), rows, n)
			for _, o := range []int{1, 3} { // in range, except for a few
				size, of := k.Operands[o].DT.Size(), l.places[map[int]int{1: 2, 3: 0}[o]].size
				for at := 0; at < len(l.data[o]); at += size {
					x := rng.Int64N(of)
					if rng.IntN(40) == 0 {
						x = rng.Int64N(20) - 10
					}
					var w [8]byte
					binary.LittleEndian.PutUint64(w[:], uint64(x))
					copy(l.data[o][at:], w[:size])
				}
			}
			for i := range l.data[4] {
				l.data[4][i] = byte(rng.IntN(2))
			}
			faulted, least, operand := false, int64(0), int64(0)
			note := func(x, of int64, o int64) {
				if (x < 0 || x >= of) && (!faulted || x < least || x == least && o < operand) {
					faulted, least, operand = true, x, o
				}
			}
			for r := range int64(rows) {
				for c := range int64(n) {
					at := func(i int) int64 { return l.places[i].first + r*l.places[i].row + c*l.places[i].step }
					if l.data[4][at(4)] != 0 {
						note(int64(binary.LittleEndian.Uint64(l.data[1][8*at(1):])), l.places[2].size, 2)
					}
					note(int64(int32(binary.LittleEndian.Uint32(l.data[3][4*at(3):]))), l.places[0].size, 0)
				}
			}
			words, err := l.call(fn, code, mxcsrFor(k))
			if err != nil {
				t.Fatal(err)
			}
			got := [3]uint64{words[native.FrameFault/8], words[native.FrameFault/8+1], words[native.FrameFault/8+2]}
			if want := [3]uint64{1, uint64(operand), uint64(least)}; faulted && got != want || !faulted && got[0] != 0 {
				t.Fatalf("%s, %dx%d: noted %v, want %v, %v", isa.Name, rows, n, got, faulted, want)
			}
		}
	}
}
