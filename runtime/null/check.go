package null

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// check holds a launch against its kernel and its buffers.
func (d *Device) check(k *codegen.Kernel, l *runtime.Launch) error {
	switch {
	case len(l.Args) != len(k.Operands):
		return fmt.Errorf("the launch has %d args, the kernel has %d operands", len(l.Args), len(k.Operands))
	case len(l.Scalars) != len(k.Scalars):
		return fmt.Errorf("the launch has %d scalars, the kernel has %d", len(l.Scalars), len(k.Scalars))
	case l.Rank < 0 || l.Rank > runtime.MaxRank || l.Kept < 0 || l.Kept > l.Rank:
		return fmt.Errorf("a launch has rank %d and %d kept dims", l.Rank, l.Kept)
	case !k.HasRows() && l.Kept != l.Rank:
		return fmt.Errorf("the launch has %d reduced dims, but the kernel reduces nothing", l.Rank-l.Kept)
	}
	guarded := guardedLoads(k)
	for i := range l.Args {
		if k.Operands[i].Kind == codegen.Index || guarded[i] {
			continue
		}
		lo, hi, empty := reach(&l.Args[i], l.Dims[:l.Rank])
		if empty {
			continue
		}
		if err := d.own(l.Args[i].Buf, k.Operands[i].DT, lo, hi-lo+1); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	for i, o := range k.Operands {
		for dim := l.Kept; o.Row && dim < l.Rank; dim++ {
			if l.Args[i].Stride[dim] != 0 {
				return fmt.Errorf("operand %d: it moves along reduced dim %d", i, dim)
			}
		}
	}
	return nil
}

// guardedLoads are the operands that are read only where a value says so: the
// access may reach beyond their memory.
func guardedLoads(k *codegen.Kernel) []bool {
	guarded := make([]bool, len(k.Operands))
	for _, in := range k.Body {
		if in.Op == ir.Load && in.Args[0] != ir.None || in.Op == ir.LoadAt && in.Args[1] != ir.None {
			guarded[uint32(in.Imm)] = true
		}
	}
	return guarded
}

// reach is the lowest and highest element an access touches; for staged
// accesses the bounds of the last stage, which may be wider.
func reach(a *runtime.Access, dims []int64) (lo, hi int64, empty bool) {
	lo, hi, empty = bounds(a.Offset, dims, a.Stride[:len(dims)])
	for _, s := range a.Stages {
		lo, hi, _ = bounds(s.Offset, s.Dims, s.Stride)
	}
	if most := a.IndexStride * (a.IndexSize - 1); most < 0 {
		lo += most
	} else if a.IndexSize > 0 {
		hi += most
	}
	return lo, hi, empty
}

func bounds(off int64, dims, stride []int64) (lo, hi int64, empty bool) {
	lo, hi = off, off
	for i, n := range dims {
		if n == 0 {
			return 0, 0, true
		}
		if step := stride[i] * (n - 1); step < 0 {
			lo += step
		} else {
			hi += step
		}
	}
	return lo, hi, false
}
