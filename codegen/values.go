package codegen

import "github.com/millrace-go/millrace/ir"

// values maps instructions to their values. It is a table with open addressing: a Go map takes six
// times the memory, and would be most of the time of simplifying a kernel, for which programs wait.
type values struct {
	known []known
	slots []int32 // 1 + index in known, 0 if free; a power of two, at most half of them used
}

type known struct {
	in    ir.Instr
	value ir.Ref
}

// newValues has room for n instructions before it grows.
func newValues(n int) values {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return values{make([]known, 0, size/2), make([]int32, size)}
}

// reset removes everything and keeps the memory.
func (v *values) reset() {
	v.known = v.known[:0]
	clear(v.slots)
}

// find returns the value of an instruction that was added.
func (v *values) find(in ir.Instr) (ir.Ref, bool) {
	if i := v.slots[v.slot(in)]; i != 0 {
		return v.known[i-1].value, true
	}
	return ir.None, false
}

// add stores the value of an instruction, and replaces an earlier one.
func (v *values) add(in ir.Instr, value ir.Ref) {
	at := v.slot(in)
	if i := v.slots[at]; i != 0 {
		v.known[i-1].value = value
		return
	}
	v.known = append(v.known, known{in, value})
	v.slots[at] = int32(len(v.known))
	if 2*len(v.known) <= len(v.slots) {
		return
	}
	v.slots = make([]int32, 2*len(v.slots))
	for i := range v.known {
		v.slots[v.slot(v.known[i].in)] = int32(i + 1)
	}
}

// slot is the slot of an instruction, or the free slot for it.
func (v *values) slot(in ir.Instr) uint64 {
	last := uint64(len(v.slots) - 1)
	for at := hash(in) & last; ; at = (at + 1) & last {
		if i := v.slots[at]; i == 0 || v.known[i-1].in == in {
			return at
		}
	}
}

// hash multiplies all fields by odd constants and mixes the high bits into the low ones, which
// choose a slot.
func hash(in ir.Instr) uint64 {
	pair := func(a, b ir.Ref) uint64 { return uint64(uint32(a)) | uint64(uint32(b))<<32 }
	h := in.Imm*0x9e3779b97f4a7c15 ^ uint64(in.Op)<<8 ^ uint64(in.DT)
	for _, x := range [...]uint64{pair(in.Args[0], in.Args[1]), pair(in.Args[2], in.Args[3])} {
		h = (h ^ h>>32 ^ x) * 0xd6e8feb86659fd93
	}
	return h ^ h>>32
}
