package fold

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// TestMachineScatter checks that every way to combine neighbours of every dtype has machine code
// with the bits of Go's.
func TestMachineScatter(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	for _, d := range []ir.Denormals{ir.KeepDenormals, ir.FlushDenormals} {
		if d == ir.FlushDenormals && !jit.Flushes() {
			continue
		}
		plain, machines := newTable(d == ir.FlushDenormals), machineFolds[d]()
		for _, dt := range kernels.DTypes {
			if dt == ir.Bool {
				continue
			}
			for how := ir.CombineSet + 1; how < ir.NumCombines; how++ {
				t.Run(fmt.Sprint(d, how, dt), func(t *testing.T) {
					c := machines.DTypes[dt].Joins[how].code()
					if c == nil {
						t.Fatal("there is no code")
					}
					size := int64(dt.Size())
					rng := rand.New(rand.NewPCG(uint64(dt), uint64(how)))
					for n := int64(1); n < 200; n += 1 + n/7 {
						data := make([]byte, 2*n*size)
						for i := range 2 * n {
							operands.SetElement(unsafe.Pointer(&data[i*size]), int32(size), kernels.Value(rng, dt))
						}
						want := append([]byte(nil), data[:n*size]...)
						plain.DTypes[dt].Joins[how].along(unsafe.Pointer(&want[0]), unsafe.Pointer(&data[n*size]), n)
						c.into(unsafe.Pointer(&data[0]), unsafe.Pointer(&data[n*size]), size, n, 1, 0, 0)
						if err := kernels.Same(dt, data[:n*size], want); err != nil {
							t.Fatalf("%d elements: %v", n, err)
						}
					}
				})
			}
		}
	}
}
