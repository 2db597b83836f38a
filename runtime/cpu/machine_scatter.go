package cpu

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// leastAlong is the number of neighbours from which a call pays.
const leastAlong = 8

// neighbourJoin joins values to n neighbours of a tile.
type neighbourJoin struct {
	joins   *scatterJoins
	code    *machineFold // nil: Go joins
	n, size int64
}

// neighbours returns the join for a tile's columns.
func (w *scatterWalk) neighbours() neighbourJoin {
	j := neighbourJoin{joins: w.s.joins, n: w.columnsOf, size: w.s.dt.size}
	if j.joins.code != nil && j.n >= leastAlong {
		j.code = j.joins.code()
	}
	return j
}

// join joins rows of values, step elements apart, each to the neighbours that begin at its index.
// Negative indices are skipped.
func (j *neighbourJoin) join(base unsafe.Pointer, at []int64, step int64, values, frame unsafe.Pointer) {
	for k, i := range at {
		if i >= 0 {
			j.ask(base, at, k+scatterAhead)
			j.along(unsafe.Add(base, i*j.size), unsafe.Add(values, int64(k)*step*j.size), frame)
		}
	}
}

// ask prefetches the elements at index number k.
func (j *neighbourJoin) ask(base unsafe.Pointer, at []int64, k int) {
	if k < len(at) && at[k] >= 0 {
		machine.Ask(unsafe.Add(base, at[k]*j.size), min(j.n*j.size, scatterAsked))
	}
}

// along joins values to neighbours.
func (j *neighbourJoin) along(to, values, frame unsafe.Pointer) {
	if j.code == nil {
		j.joins.along(to, values, j.n)
		return
	}
	f := (*foldFrame)(frame)
	f.operand(0, to, j.size, 0)
	f.operand(1, values, j.size, 0)
	f.operand(2, to, j.size, 0)
	f.run(j.code.rows, j.n, 1, j.code.mxcsr)
}

// joinMemory makes the scatters of a table join neighbours by machine code.
func joinMemory(t *foldTable, d ir.Denormals) {
	for dt := ir.Uint8; dt < ir.NumDTypes; dt++ { // a scatter into booleans only sets them
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

// scatterKernel returns a kernel that joins operand 1 to operand 0 in their compute dtype.
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
