package gpurun

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Limits for the points of one row in one dispatch. A single reduction is cut early: a part must
// outweigh a workgroup's fold, and the parts must spread over the device. Rows that are read
// several times are better kept whole if there are enough other rows to keep the device busy. All
// limits stay far below the 65,535 loop iterations per invocation at which Mesa's software devices
// stop without an error.
const (
	rowSteps   = 16384   // shared by a workgroup
	colSteps   = 1024    // for a single invocation; also bounds its rounding error
	rowPasses  = 1 << 18 // over all passes, with many rows
	rowAlone   = 1 << 16 // over all passes, with few rows
	colPasses  = 1 << 13
	manyRows   = 64
	shortRow   = 32 // points for which a single invocation is as fast
	fewColumns = 64 // with fewer rows single invocations leave a device idle
)

func reducedSize(l *runtime.Launch) int64 { return points(l.Dims[l.Kept:l.Rank]) }

// maxSteps is the largest number of points of a row in one dispatch.
func maxSteps(k *codegen.Kernel, l *runtime.Launch) int64 {
	switch {
	case k.Scatter() != ir.None:
		return colPasses
	case dotOf(k) >= 0:
		return dotApart / 2
	}
	rows, passes := byRows(k, l), int64(shader.Passes(k))
	if folds(k) != nil {
		if rows {
			return rowSteps
		}
		return colSteps
	}
	switch {
	case !rows:
		return colPasses / passes
	case points(l.Dims[:l.Kept]) >= manyRows:
		return rowPasses / passes
	}
	return rowAlone / passes
}

func tooLong(k *codegen.Kernel, l *runtime.Launch) bool {
	return reducedSize(l) > maxSteps(k, l)
}

// byRows reports whether a workgroup shares a row: the points of a row are adjacent in most of the
// memory that is read and written, or rows are few. Otherwise neighbouring invocations take
// neighbouring rows.
func byRows(k *codegen.Kernel, l *runtime.Launch) bool {
	if reducedSize(l) < shortRow {
		return false
	}
	return points(l.Dims[:l.Kept]) < fewColumns || alongRows(k, l)
}

// alongRows reports whether the points of a row are adjacent in most of the memory that is read and
// written.
func alongRows(k *codegen.Kernel, l *runtime.Launch) bool {
	along, across := int64(0), int64(0)
	for i, o := range k.Operands {
		if o.Kind == codegen.Index || o.Row {
			continue
		}
		elements := int64(1) // parameters that all rows share count for little
		for d, n := range l.Dims[:l.Rank] {
			if l.Args[i].Stride[d] != 0 {
				elements *= n
			}
		}
		switch {
		case l.Args[i].Stride[l.Rank-1] == 1:
			along += elements
		case l.Kept > 0 && l.Args[i].Stride[l.Kept-1] == 1:
			across += elements
		}
	}
	return along >= across
}

// fold is a reduction whose result is stored unchanged.
type fold struct {
	in      ir.Instr
	operand int
}

// folds lists the reductions of a kernel that only stores their results, once per output. The rows
// of such a kernel can be cut into segments. It is nil for other kernels.
func folds(k *codegen.Kernel) []fold {
	var list []fold
	for i, in := range k.Body {
		if !in.Op.Info().RowOp {
			continue
		}
		stored := len(list)
		for _, s := range k.Stores {
			if int(s.Value) == i && !k.Operands[s.Operand].Row {
				return nil
			}
			if int(s.Value) == i {
				list = append(list, fold{in, s.Operand})
			}
		}
		if stored == len(list) || in.Op.Class() != ir.ClassReduce {
			return nil
		}
	}
	for _, in := range k.Body {
		for _, a := range in.Args {
			if a != ir.None && k.Body[a].Op.Info().RowOp {
				return nil
			}
		}
	}
	stored := 0
	for _, s := range k.Stores {
		if k.Operands[s.Operand].Row {
			stored++
		}
	}
	if stored != len(list) {
		return nil // a row value besides the reductions
	}
	return list
}

// apart runs a launch whose rows are too long for one dispatch. Its parts can be cut further.
func (s *splitter) apart(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	if list := folds(k); list != nil {
		for _, f := range list {
			if f.in.Op.Info().Position {
				return s.positions(k, l, list, skip)
			}
		}
		return s.partial(k, l, list, skip)
	}
	if scan := loneScan(k); scan >= 0 {
		return s.carry(k, l, scan, skip)
	}
	if dotOf(k) >= 0 {
		return s.epilogue(k, l, skip)
	}
	return s.staged(k, l, skip)
}
