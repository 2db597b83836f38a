package codegen

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Size holds the counts that a device limits. Planning and building of kernels count in the same
// way.
type Size struct {
	Memory   int // operands in memory
	Slots    int // operands in all, index operands included
	Scalars  int
	RowOps   int // the most row ops that one phase has
	Bindings int // operands in memory and results of row ops, if there are row ops
}

// Count adds an operand.
func (s *Size) Count(kind OperandKind) {
	s.Slots++
	if kind != Index {
		s.Memory++
	}
}

// Rows counts the row ops of a body and its totals. It is called after Count of all operands.
func (s *Size) Rows(body []ir.Instr, totals []Reduce) {
	results, each := 0, map[int]int{}
	depths := depthsOf(body)
	for i, in := range body {
		if in.Op.Info().RowOp {
			results++
			each[depths[i]-1]++
		}
	}
	for _, t := range totals {
		each[depths[t.Value]]++ // its result is an operand
	}
	for _, n := range each {
		s.RowOps = max(s.RowOps, n)
	}
	if len(each) > 0 {
		s.Bindings = s.Memory + results
	}
}

// Size counts what devices limit. Instructions are counted when the kernel is lowered.
func (k *Kernel) Size() Size {
	s := Size{Scalars: len(k.Scalars)}
	for _, o := range k.Operands {
		s.Count(o.Kind)
	}
	s.Rows(k.Body, k.Reduces)
	return s
}

// Over is the first limit of a device that s exceeds, "" for none.
func (s *Size) Over(caps *runtime.Caps) string {
	for _, l := range [...]struct {
		has, most int
		what      string
	}{
		{s.Memory, caps.MaxOperands, "operands"},
		{s.Slots, caps.MaxSlots, "operands with those of positions alone"},
		{s.Scalars, caps.MaxScalars, "scalars"},
		{s.RowOps, caps.MaxRowOps, "row ops in one phase"},
		{s.Bindings, caps.MaxBindings, "operands and results of row ops"},
	} {
		if l.most > 0 && l.has > l.most {
			return fmt.Sprintf("%d %s, the device takes %d", l.has, l.what, l.most)
		}
	}
	return ""
}
