package cpu

import (
	"sync"

	"github.com/millrace-go/millrace/ir"
)

// keyOf returns the key of the block function for an operation whose first operand has the given
// dtype.
func keyOf(in ir.Instr, first ir.DType) fnKey {
	k := fnKey{op: in.Op, dt: in.DT}
	info := in.Op.Info()
	switch {
	case in.Op == ir.Lookup, in.Op == ir.Rare:
		k.imm = in.Imm
	case info.Class != ir.ClassCreate && (info.Out == ir.OutBool || info.Out == ir.OutAttr):
		k.in = first
	}
	return k
}

// fnRow is a row of the generated list. It identifies ops by name, because their numbers may
// change.
type fnRow struct {
	op     string
	dt, in ir.DType
	of     string // name of the table or sub-program of Lookup and Rare
	fn     int32  // several rows may share a function: integer addition ignores signs
}

// imm returns the immediate of a Lookup or Rare.
func (r *fnRow) imm() uint64 {
	if id, ok := ir.TableByName(r.of); ok {
		return id
	}
	id, _ := ir.SubByName(r.of)
	return id
}

var fnIndex = sync.OnceValue(func() map[fnKey]int32 {
	m := make(map[fnKey]int32, len(fnRows))
	for _, r := range fnRows {
		if op, ok := ir.ParseOp(r.op); ok {
			m[fnKey{op, r.dt, r.in, r.imm()}] = fnFirst + r.fn
		}
	}
	return m
})

// blockFn returns the number of a block function, 0 if there is none.
func blockFn(k fnKey) int32 { return fnIndex()[k] }
