package ir

import (
	"encoding/binary"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// Meaning is a number for the effect of op on these dtypes, for data that outlives the process: a
// hash of its name, its row of the table and its expansion. It does not depend on the numbers of
// ops and dtypes, nor on any op that is not a part of this one. So a new op changes no meaning, and
// a changed expansion changes those of its op and of ops that contain it.
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
