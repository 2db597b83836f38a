package arm64

import "github.com/millrace-go/millrace/codegen/native"

// One emits an instruction of arm64's table, with all operands in registers. An instruction that
// also reads its destination has that operand in s[2].
func (c *machine) One(it *native.Item) {
	var r [3]uint8
	for i, s := range it.S {
		if s > 0 {
			r[i] = c.InRegister(s)
		}
	}
	s := it.S[2]
	dies := s > 0 && s != it.S[0] && s != it.S[1] && !c.Vals[s].Pinned && c.NextUse(s, c.Pos+1) == native.Forever
	var d uint8
	switch {
	case s == 0:
		c.Release(it)
		d = c.Define(it.D)
	case dies:
		d = r[2]
		c.Vals[s].Reg = -1
		c.Vecs.Owner[d] = it.D
		c.Release(it)
		c.Vals[it.D].Reg = int16(d)
	default:
		d = c.Define(it.D)
		c.Release(it)
		c.copyReg(d, r[2])
	}
	if entryOf(it.O).shape == shape3 || s > 0 {
		c.neon(it.O, d, r[0], r[1], 0)
		return
	}
	c.neon(it.O, d, r[1], 0, int(max(it.Imm, 0))) // see op2
}
