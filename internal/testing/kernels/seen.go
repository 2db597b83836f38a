package kernels

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Seen is the set of ops in a printer's golden texts, as written or after lowering.
type Seen map[ir.Op]bool

// Add notes the ops of a kernel and of the slow paths it calls.
func (s Seen) Add(k *codegen.Kernel) { s.Code(k.Body) }

// Code is Add for part of a kernel.
func (s Seen) Code(code []ir.Instr) {
	for _, in := range code {
		s[in.Op] = true
		if sub := ir.SubByID(in.Imm); in.Op == ir.Rare && sub != nil {
			s.Code(sub.Code)
		}
	}
}

// Missing lists the ops that kernels can hold and that are not seen. Views and moves are absent:
// they become positions, guards and loads. more are ops of some printers only.
func (s Seen) Missing(more ...ir.Op) (ops []ir.Op) {
	for op := ir.Op(1); op < ir.NumOps; op++ {
		held := slices.Contains(more, op)
		switch op.Class() {
		case ir.ClassElementwise, ir.ClassCreate, ir.ClassReduce, ir.ClassScan, ir.ClassSort, ir.ClassPrim:
			held = true
		}
		if held && !s[op] {
			ops = append(ops, op)
		}
	}
	return ops
}
