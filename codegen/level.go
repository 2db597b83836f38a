package codegen

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Level says how often a value of a kernel's body exists.
type Level uint8

const (
	Uniform Level = iota // once
	Row                  // once per point of the kept dims
	Point                // once per point
)

// String names the level.
func (l Level) String() string { return [...]string{"uniform", "row", "point"}[l] }

// HasRows reports a kernel with a row op or a total. Its launches have reduced dims.
func (k *Kernel) HasRows() bool {
	if len(k.Reduces) > 0 {
		return true
	}
	return slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op.Info().RowOp })
}

// Scatter is the scatter of the body, of which there is at most one, or ir.None.
func (k *Kernel) Scatter() ir.Ref {
	return ir.Ref(slices.IndexFunc(k.Body, func(in ir.Instr) bool { return in.Op == ir.Scatter }))
}

// Levels gives the level of every value of the body. In a kernel without row ops a row is a single
// point, and every loaded value counts as a point value.
func (k *Kernel) Levels() []Level {
	ls := make([]Level, len(k.Body))
	for i, in := range k.Body {
		ls[i] = k.level(in, ls)
	}
	return ls
}

func (k *Kernel) level(in ir.Instr, ls []Level) Level {
	l := Uniform
	switch in.Op {
	case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
		l = Point
		if k.Operands[slotOf(in)].Row {
			l = Row
		}
	}
	switch in.Op.Class() {
	case ir.ClassReduce, ir.ClassScatter:
		return Row
	case ir.ClassScan, ir.ClassSort:
		return Point
	}
	for _, a := range in.Args {
		if a != ir.None {
			l = max(l, ls[a])
		}
	}
	return l
}

// depths gives, for every value, the number of row ops that run before the value can be computed:
// those on its longest path from the loads.
func (k *Kernel) depths() []int { return depthsOf(k.Body) }

func depthsOf(body []ir.Instr) []int {
	ds := make([]int, len(body))
	for i, in := range body {
		for _, a := range in.Args {
			if a != ir.None {
				ds[i] = max(ds[i], ds[a])
			}
		}
		if in.Op.Info().RowOp {
			ds[i]++
		}
	}
	return ds
}

// StoresLast reports that an output is stored when the row needs no more reads. Only such an output
// may use the memory of an input. It must be stored in the last phase. If that phase runs over
// points, a row output does not qualify, since it is stored just before that phase.
func (k *Kernel) StoresLast(operand int) bool {
	ds := k.depths()
	last, own, points := 0, -1, false
	for _, d := range ds {
		last = max(last, d)
	}
	for _, s := range k.Stores {
		row := k.Operands[s.Operand].Row
		points = points || !row && ds[s.Value] == last
		if s.Operand == operand {
			own = ds[s.Value]
		}
	}
	for _, r := range k.Reduces {
		points = points || ds[r.Value] == last
	}
	return own == last && !(k.Operands[operand].Row && points)
}

// slotOf is the operand to which a load, index or scatter instruction refers.
func slotOf(in ir.Instr) int { return int(uint32(in.Imm)) }

// ModeOf returns how a LoadAt or a scatter treats an index out of range.
func ModeOf(in ir.Instr) ir.IndexMode { return ir.IndexMode(in.Imm >> 32 & 255) }

// CombineOf is how a scatter combines its values with the elements that indices name.
func CombineOf(in ir.Instr) ir.Combine { return ir.Combine(in.Imm >> 40) }

// MayFault reports a kernel that fails if an index is out of range. The inputs of such a kernel
// must outlive it: it is then run again, op by op, to find the failing op and to compute the
// results that do not depend on it.
func (k *Kernel) MayFault() bool {
	return slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op == ir.LoadAt && ModeOf(in) == ir.IndexError })
}

// parseMode reads the text of IndexMode.String.
func parseMode(s string) (ir.IndexMode, bool) {
	for m := range ir.NumIndexModes {
		if m.String() == s {
			return m, true
		}
	}
	return 0, false
}

// LoadAtImm is the Imm of a LoadAt.
func LoadAtImm(operand int, mode ir.IndexMode) uint64 {
	return uint64(mode)<<32 | uint64(uint32(operand))
}

// ScatterImm is the Imm of a Scatter into an operand.
func ScatterImm(operand int, mode ir.IndexMode, how ir.Combine) uint64 {
	return uint64(how)<<40 | LoadAtImm(operand, mode)
}

// parseCombine reads the text of Combine.String.
func parseCombine(s string) (ir.Combine, bool) {
	for c := range ir.NumCombines {
		if c.String() == s {
			return c, true
		}
	}
	return 0, false
}
