package interp

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Loads behind a guard and loads through an index. Every lane is checked: if its guard is false or
// its index is out of range, its address may be outside memory.

// laneReads finds the position that each lane of such a load reads.
type laneReads struct {
	a            *operands.Args
	in           *instr
	guard, index *value // nil if the load has none
}

func laneOf(v *value, j int64, size int) unsafe.Pointer {
	return unsafe.Add(v.p, int(j)/GroupLen*v.step+int(j)%GroupLen*size)
}

// find returns the position in memory that lane j reads; it returns false if the lane reads
// nothing.
func (m *laneReads) find(j, p int64) (int64, bool) {
	if m.guard != nil && *(*uint8)(laneOf(m.guard, j, 1)) == 0 {
		return 0, false
	}
	o := &m.a.Ops[m.in.slot]
	beyond := int64(0)
	if m.index != nil {
		i := int64(0)
		if wide := int(m.in.imm >> 8); wide == 4 {
			i = int64(*(*int32)(laneOf(m.index, j, 4)))
		} else {
			i = *(*int64)(laneOf(m.index, j, 8))
		}
		mode := ir.IndexMode(m.in.imm & 255)
		at, ok := ir.ResolveIndex(mode, i, int(o.IndexSize))
		if !ok {
			if mode == ir.IndexError {
				m.a.Fault.Note(int(m.in.slot), i)
			}
			return 0, false
		}
		beyond = int64(at) * o.IndexStride
	}
	for i := range o.Stages {
		p = o.Stages[i].Position(p)
	}
	return p + beyond, true
}

// lanes runs a load of n lanes into a dense block; the first lane is at position e.at.
func (e *evaluation) lanes(in *instr, n int64, buf unsafe.Pointer) {
	m := laneReads{a: e.a, in: in}
	g := in.src[0]
	if in.fn == fnLoadAt {
		m.index, g = &e.v[in.src[0]], in.src[1]
	}
	if g >= 0 {
		m.guard = &e.v[g]
	}
	o, idx, last := &e.a.Ops[in.slot], e.at, e.a.Rank-1
	for to := int64(0); to < n; {
		row, length, step := o.Offset, n-to, int64(0)
		for d := range e.a.Rank {
			row += idx[d] * o.Stride[d]
		}
		if last >= 0 {
			step = o.Stride[last]
			length = min(length, e.a.Dims[last]-idx[last])
		}
		dst := unsafe.Add(buf, to*int64(in.size))
		switch in.size {
		case 1:
			readLanes[uint8](&m, o.Base, dst, to, row, step, length)
		case 2:
			readLanes[uint16](&m, o.Base, dst, to, row, step, length)
		case 4:
			readLanes[uint32](&m, o.Base, dst, to, row, step, length)
		default:
			readLanes[uint64](&m, o.Base, dst, to, row, step, length)
		}
		to += length
		if last >= 0 {
			idx[last] = 0
		}
		for d := last - 1; d >= 0; d-- {
			if idx[d]++; idx[d] < e.a.Dims[d] {
				break
			}
			idx[d] = 0
		}
	}
}

func readLanes[T uint8 | uint16 | uint32 | uint64](m *laneReads, mem, dst unsafe.Pointer, first, row, step, n int64) {
	b := unsafe.Slice((*T)(dst), n)
	for i := range b {
		var x T // written last, because the lane may hold the index
		if from, ok := m.find(first+int64(i), row+int64(i)*step); ok {
			x = *(*T)(unsafe.Add(mem, from*int64(unsafe.Sizeof(x))))
		}
		b[i] = x
	}
}

// laneLoad reports loads that check every lane, and so need positions.
func laneLoad(fn int32) bool { return fn == fnLoadIf || fn == fnLoadAt }
