package fold

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

const (
	// leastAlong is the number of neighbours from which a call pays.
	leastAlong = 8
	// scatterAhead is how many rows ahead indexed elements are prefetched, scatterAsked the most
	// bytes of a row that are.
	scatterAhead = 6
	scatterAsked = 1024
)

// Neighbours joins values to n neighbours of a tile.
type Neighbours struct {
	joins   *Joins
	code    *machineFold // nil: Go joins
	n, size int64
}

// Neighbours returns the join of n neighbours of size bytes each.
func (s *Joins) Neighbours(n, size int64) Neighbours {
	j := Neighbours{joins: s, n: n, size: size}
	if s.code != nil && n >= leastAlong {
		j.code = s.code()
	}
	return j
}

// Join joins rows of values, step elements apart, each to the neighbours that begin at its index.
// Negative indices are skipped.
func (j *Neighbours) Join(base unsafe.Pointer, at []int64, step int64, values, frame unsafe.Pointer) {
	for k, i := range at {
		if i >= 0 {
			j.ask(base, at, k+scatterAhead)
			j.along(unsafe.Add(base, i*j.size), unsafe.Add(values, int64(k)*step*j.size), frame)
		}
	}
}

// ask prefetches the elements at index number k.
func (j *Neighbours) ask(base unsafe.Pointer, at []int64, k int) {
	if k < len(at) && at[k] >= 0 {
		machine.Ask(unsafe.Add(base, at[k]*j.size), min(j.n*j.size, scatterAsked))
	}
}

// along joins values to neighbours.
func (j *Neighbours) along(to, values, frame unsafe.Pointer) {
	if j.code == nil {
		j.joins.along(to, values, j.n)
		return
	}
	f := (*jit.Frame)(frame)
	f.Operand(0, to, j.size, 0)
	f.Operand(1, values, j.size, 0)
	f.Operand(2, to, j.size, 0)
	f.Run(j.code.rows, j.n, 1, j.code.mxcsr)
}

// joinMemory makes the scatters of a table join neighbours by machine code.
func joinMemory(t *Table, d ir.Denormals) {
	for dt := ir.Uint8; dt < ir.NumDTypes; dt++ { // a scatter into booleans only sets them
		for how := ir.CombineSet + 1; how < ir.NumCombines; how++ {
			t.DTypes[dt].Joins[how].code = sync.OnceValue(func() *machineFold { return newMachineScatter(how.Op(), dt, d) })
		}
	}
}

func newMachineScatter(op ir.Op, dt ir.DType, d ir.Denormals) *machineFold {
	isa := jit.ISA()
	if isa == nil {
		return nil
	}
	k, err := scatterKernel(op, dt, d)
	if err != nil {
		jit.Refused.Add(1)
		return nil
	}
	f := &machineFold{mxcsr: jit.MXCSR(d)}
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
