package interp

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

// block is a block function, with the number of its primitives and the operations that it computes:
// integer addition ignores signs.
type block struct {
	fn   blockFunc
	work uint16
	does []operation
}

// operation identifies ops by name, because their numbers may change.
type operation struct {
	op     string
	dt, in ir.DType
	of     string // name of the table or sub-program of Lookup and Rare
}

// imm returns the immediate of a Lookup or Rare.
func (o *operation) imm() uint64 {
	if id, ok := ir.TableByName(o.of); ok {
		return id
	}
	id, _ := ir.SubByName(o.of)
	return id
}

var fnIndex = sync.OnceValue(func() map[fnKey]int32 {
	m := make(map[fnKey]int32, 2*len(blocks))
	for i := range blocks {
		for _, o := range blocks[i].does {
			if op, ok := ir.ParseOp(o.op); ok {
				m[fnKey{op, o.dt, o.in, o.imm()}] = fnFirst + int32(i)
			}
		}
	}
	return m
})

var blockFns = func() []blockFunc {
	fns := make([]blockFunc, len(blocks))
	for i := range blocks {
		fns[i] = blocks[i].fn
	}
	return fns
}()

// Prepare builds the index of block functions, which takes about 0.2 ms. Without it, the first Lower
// does.
func Prepare() { fnIndex() }

// blockFn returns the number of a block function, 0 if there is none.
func blockFn(k fnKey) int32 { return fnIndex()[k] }
