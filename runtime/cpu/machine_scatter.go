package cpu

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// leastAlong is the number of neighbours from which a call is worth it.
const leastAlong = 8

// neighbours finds the code that joins a tile's columns; nil where Go does it.
func (w *scatterWalk) neighbours() *machineFold {
	j := w.s.joins
	if j.code == nil || w.columnsOf < leastAlong {
		return nil
	}
	return j.code()
}

// along joins values to neighbours.
func (w *scatterWalk) along(c *machineFold, to, values unsafe.Pointer) {
	n, size := w.columnsOf, w.s.dt.size
	if c == nil {
		w.s.joins.along(to, values, n)
		return
	}
	f := (*foldFrame)(w.frame)
	f.operand(0, to, size, 0)
	f.operand(1, values, size, 0)
	f.operand(2, to, size, 0)
	f.run(c.rows, n, 1, c.mxcsr)
}

// joinMemory has a table's scatters join neighbours by machine code.
func joinMemory(t *foldTable, d ir.Denormals) {
	for dt := ir.Uint8; dt < ir.NumDTypes; dt++ { // what scatters into booleans sets them
		for how := ir.CombineSet + 1; how < ir.NumCombines; how++ {
			t.dtype[dt].joins[how].code = sync.OnceValue(func() *machineFold { return newMachineScatter(how.Op(), dt, d) })
		}
	}
}

func newMachineScatter(op ir.Op, dt ir.DType, d ir.Denormals) *machineFold {
	isa := machineISA()
	if isa == nil {
		return nil
	}
	k, err := scatterKernel(op, dt, d)
	if err != nil {
		lesserRefused.Add(1)
		return nil
	}
	f := &machineFold{mxcsr: mxcsrOf(d)}
	if f.rows = joinCode(native.Compile(k, native.Variant{Class: make([]codegen.AccessClass, 3)}, isa, false)); f.rows == nil {
		return nil
	}
	return f
}

// scatterKernel joins operand 1 to operand 0 in the dtype that computes them.
func scatterKernel(op ir.Op, dt ir.DType, d ir.Denormals) (*codegen.Kernel, error) {
	var b ir.Builder
	x, y := b.Emit(ir.Load, dt, 0), b.Emit(ir.Load, dt, 1)
	wide, cast := dt.Compute(), ir.Cast
	if dt.IsInt() {
		cast = ir.Convert // which wraps
	}
	if wide != dt {
		x, y = b.Emit(cast, wide, 0, x), b.Emit(cast, wide, 0, y)
	}
	z := b.Emit(op, wide, 0, x, y)
	if wide != dt {
		z = b.Emit(cast, dt, 0, z)
	}
	k := &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body:     b.Code, Stores: []codegen.Store{{Operand: 2, Value: z}},
	}
	if d == ir.FlushDenormals {
		k = codegen.Flushed(k)
	}
	return codegen.Lower(k)
}
