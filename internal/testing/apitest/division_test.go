package apitest

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// TestDivisionExact compares FloorDiv and Rem with exact arithmetic, interpreted, by machine code
// and, if there is a compiler, by C.
func TestDivisionExact(t *testing.T) {
	ways := []millrace.Options{{Compile: millrace.CompileOff}, {Compile: millrace.CompileWait}, {Compile: millrace.CompileC, Tier: millrace.TierCompiled}}
	devices := make([]*millrace.Device, len(ways))
	for i, o := range ways {
		devices[i] = open(t, o)
	}
	for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16} {
		list := kernels.Divisions(dt, 20000) // by exact arithmetic, which takes longer than the devices
		column := func(bits func(d *kernels.Division) uint64) ir.Dense {
			c := ir.NewDense(ir.TensorType{DT: dt, Shape: ir.Shape{len(list)}})
			for i := range list {
				c.Set(i, bits(&list[i]))
			}
			return c
		}
		x := column(func(d *kernels.Division) uint64 { return d.X })
		y := column(func(d *kernels.Division) uint64 { return d.Y })
		for op, want := range map[ir.Op]ir.Dense{
			ir.FloorDiv: column(func(d *kernels.Division) uint64 { return d.Floor }),
			ir.Rem:      column(func(d *kernels.Division) uint64 { return d.Rem }),
		} {
			for i, o := range ways {
				got := Run(devices[i], one(op, dt, nil, x, y), [][]byte{x.Data, y.Data})[2]
				data, err := Bytes(got)
				if err != nil {
					t.Fatal(err)
				}
				if err := Differ(want.TensorType, data, want.Data); err != nil {
					t.Errorf("%v of %v, compiling %v: %v", op, dt, o, err)
				}
			}
		}
	}
}
