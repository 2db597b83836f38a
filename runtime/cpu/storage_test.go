package cpu

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// TestBytes gives every op on 8-bit integers all values of its first operand and the extreme
// values of the second, on both tiers.
func TestBytes(t *testing.T) {
	others := []byte{0, 1, 2, 3, 7, 8, 0x7f, 0x80, 0x81, 0xff}
	for name, c := range tiers {
		t.Run(name, func(t *testing.T) {
			d := openTest(t, c)
			for _, dt := range []ir.DType{ir.Int8, ir.Uint8} {
				for half := range ir.Op(2) { // a launch has a limited number of operands
					k := kernels.EveryOp(dt, func(op ir.Op, _ ir.DType) bool { return op&1 == half })
					h := kernels.NewLaunch(rand.New(rand.NewPCG(3, 3)), k, []int64{int64(256 * len(others))}, 1, kernels.Dense)
					for i := range h.Args[0].Data {
						h.Args[0].Data[i], h.Args[1].Data[i] = byte(i), others[i/256%len(others)]
					}
					compare(t, dt.String(), k, onDevice(t, d, k, h), reference(t, k, h))
				}
			}
		})
	}
}

// TestEveryHalf converts all 16-bit floats to float32 and back, on both tiers.
func TestEveryHalf(t *testing.T) {
	for name, c := range tiers {
		t.Run(name, func(t *testing.T) {
			d := openTest(t, c)
			for _, dt := range []ir.DType{ir.Float16, ir.BFloat16} {
				k, err := codegen.Parse(strings.ReplaceAll(`in 0 : half
out 1 : float32
out 2 : half
out 3 : half
%0 = load 0 : half
%1 = cast %0 : float32
%2 = cast %1 : half
%3 = const 0.33325195 : float32
%4 = mul %1 %3 : float32
%5 = cast %4 : half
store 1 %1
store 2 %2
store 3 %5
`, "half", dt.String()))
				if err != nil {
					t.Fatal(err)
				}
				h := kernels.NewLaunch(rand.New(rand.NewPCG(4, 4)), k, []int64{1 << 16}, 1, kernels.Dense)
				for i := range len(h.Args[0].Data) / 2 {
					h.Args[0].Data[2*i], h.Args[0].Data[2*i+1] = byte(i), byte(i>>8)
				}
				compare(t, dt.String(), k, onDevice(t, d, k, h), reference(t, k, h))
			}
		})
	}
}
