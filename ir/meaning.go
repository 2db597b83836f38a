package ir

import (
	"encoding/binary"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Meaning is a number for what op does on these dtypes, for whatever outlives
// the process: a hash of its name, its row of the table and its expansion. It
// does not depend on how ops and dtypes are numbered, nor on any op that this
// one is not made of. So an op that is added changes no meaning, and an expansion
// that changes that of its op and of those made of it.
func Meaning(op Op, dt DType, argDT []DType) uint64 {
	info, s := op.Info(), sums()
	var room [160]byte
	b := append(room[:0], info.Name...)
	b = append(b, '\n')
	b = append(b, info.Class.String()...)
	b = append(b, '\n', byte(info.Arity), byte(info.Optional))
	for _, f := range [...]bool{info.Prim, info.Indexed, info.RowOp, info.Position, info.NeedsElement, info.Commutes} {
		b = append(b, byte(boolBit(f)))
	}
	b = binary.LittleEndian.AppendUint64(b, s.ops[op])
	b = binary.LittleEndian.AppendUint64(b, s.ops[info.Combine])
	b = s.dtype(b, dt)
	for _, d := range argDT {
		b = s.dtype(b, d)
	}
	return xxhash.Sum64(b)
}

// sumTable is expansionSums by number.
type sumTable struct {
	ops    [NumOps]uint64
	dtypes [NumDTypes]uint64
}

var sums = sync.OnceValue(func() *sumTable {
	t := new(sumTable)
	for _, s := range expansionSums {
		if op, ok := ParseOp(s.name); ok {
			t.ops[op] = s.sum
		} else if d, ok := ParseDType(s.name); ok {
			t.dtypes[d] = s.sum
		}
	}
	return t
})

func (t *sumTable) dtype(b []byte, d DType) []byte {
	b = append(append(b, d.String()...), '\n')
	return binary.LittleEndian.AppendUint64(b, t.dtypes[d])
}
