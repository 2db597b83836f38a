package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// loneScan returns the scan of a kernel that only stores its result, or -1.
func loneScan(k *codegen.Kernel) int {
	if len(k.Stores) != 1 || k.Operands[k.Stores[0].Operand].Row {
		return -1
	}
	scan := int(k.Stores[0].Value)
	if k.Body[scan].Op.Class() != ir.ClassScan {
		return -1
	}
	for i, in := range k.Body {
		if in.Op.Info().RowOp && i != scan {
			return -1
		}
	}
	return scan
}

// carry runs a long scan segment by segment. The running total goes from one segment to the next
// through memory, alternating between two buffers.
func (s *splitter) carry(k *codegen.Kernel, l *runtime.Launch, scan int, skip []bool) error {
	dim, unit := segment(k, l)
	if unit*points(l.Dims[dim+1:l.Rank]) > maxSteps(k, l) {
		return s.errorf("a scan over dims of %v is too long: no common stride joins them", l.Dims[l.Kept:l.Rank])
	}
	var carries [2]runtime.Access
	for i := range carries {
		var err error
		if carries[i], err = s.temp(l, k.Body[scan].DT, true); err != nil {
			return err
		}
	}
	n := len(l.Args)
	for first := int64(0); first < l.Dims[dim]; first += unit {
		prog, ready, err := s.build(carryKernel(k, scan, first > 0))
		if err != nil {
			return err
		}
		c := *l
		c.Prog = prog
		c.Dims[dim] = min(unit, l.Dims[dim]-first)
		c.Args = append(slices.Clone(l.Args), carries[0])
		if first > 0 {
			c.Args = append(c.Args, carries[1])
		}
		carries[0], carries[1] = carries[1], carries[0]
		later := append(slices.Clone(skip), make([]bool, len(c.Args)-n)...)
		for i := range l.Args {
			c.Args[i].Offset += first * c.Args[i].Stride[dim]
			if first > 0 && l.Args[i].Stride[dim] == 0 && k.Operands[i].Kind == codegen.Output {
				later[i] = true
			}
		}
		if err := s.cut(ready, &c, later); err != nil {
			return err
		}
	}
	return nil
}

// carryKernel makes a kernel for one segment of a single scan. It also stores the row's total in
// one more operand. After the first segment (later) it starts from the total in another operand.
func carryKernel(k *codegen.Kernel, scan int, later bool) *codegen.Kernel {
	in, out := k.Body[scan], len(k.Operands)
	c := &codegen.Kernel{Operands: slices.Clone(k.Operands), Scalars: k.Scalars}
	b := body{c}
	c.Body = append(c.Body, k.Body...)
	result := ir.Ref(scan)
	total := b.emit(foldOf(in.Op), in.DT, 0, in.Args[0])
	c.Operands = append(c.Operands, codegen.Operand{Kind: codegen.Output, DT: in.DT, Row: true})
	if later {
		c.Operands = append(c.Operands, codegen.Operand{Kind: codegen.Input, DT: in.DT, Row: true})
		before := b.emit(ir.Load, in.DT, uint64(out+1))
		combine := in.Op.Info().Combine
		result = b.emit(combine, in.DT, 0, before, result)
		total = b.emit(combine, in.DT, 0, before, total)
	}
	c.Stores = []codegen.Store{{Operand: k.Stores[0].Operand, Value: result}, {Operand: out, Value: total}}
	return c
}

// foldOf returns the reduction whose result is the last element of a scan.
func foldOf(scan ir.Op) ir.Op {
	for op := ir.Op(1); op < ir.NumOps; op++ {
		if op.Class() == ir.ClassReduce && op.Info().Combine == scan.Info().Combine {
			return op
		}
	}
	return ir.OpInvalid
}

// body appends instructions to a kernel.
type body struct{ k *codegen.Kernel }

func (b body) emit(op ir.Op, dt ir.DType, imm uint64, args ...ir.Ref) ir.Ref {
	b.k.Body = append(b.k.Body, instr(op, dt, imm, args...))
	return ir.Ref(len(b.k.Body) - 1)
}
