package amd64

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen/native"
)

// half names the lower 32 bits.
func half(r native.GPR) string {
	if r < native.R8 {
		return "e" + native.GPRNames[r][1:]
	}
	return fmt.Sprintf("r%dd", uint8(r))
}

func wordName(r native.GPR) string {
	if r < native.R8 {
		return native.GPRNames[r][1:]
	}
	return fmt.Sprintf("r%dw", uint8(r))
}

func byteName(r native.GPR) string {
	if r < native.RSP {
		return native.GPRNames[r][1:2] + "l"
	}
	if r < native.R8 {
		return native.GPRNames[r][1:] + "l"
	}
	return fmt.Sprintf("r%db", uint8(r))
}

// regName names a register of a kind; size is the size of a vector.
func regName(kind uint8, size int, r uint8) string {
	switch kind {
	case mask:
		return fmt.Sprintf("k%d", r)
	case gpr32:
		return half(native.GPR(r))
	case gpr64:
		return native.GPR(r).String()
	}
	return fmt.Sprintf("%cmm%d", map[int]byte{64: 'z', 32: 'y'}[max(size, 16)]|map[bool]byte{true: 'x'}[size < 32], r)
}

// listVector lists an instruction of opTable.
func listVector(l *native.Listing, begin int, t *opInfo, evex bool, size int, x args) {
	full := size
	if t.scalar > 0 && t.scalar < 16 && t.code != 0x18 && t.code != 0x19 && t.code != 0x7c {
		full = 16
	}
	ops := []string{}
	reg := regName(t.reg, full>>t.rhalf, x.reg)
	if t.form != formMR && t.form != formMRI {
		if x.k > 0 && t.form != formRVM4 {
			reg += fmt.Sprintf("{k%d}", x.k)
			if x.zero {
				reg += "{z}"
			}
		}
	}
	v := regName(t.reg, full, x.v)
	if t.reg == mask && t.RM == vec {
		v = regName(vec, full, x.v)
	}
	m := ""
	switch {
	case x.RM.InMem:
		m = x.RM.Mem.String()
		if x.RM.Step > 0 {
			m += fmt.Sprintf("{1to%d}", size/int(t.elem))
		}
	case t.RM == vec && t.scalar > 0:
		m = regName(vec, 16, x.RM.Reg)
	default:
		m = regName(t.RM, full>>t.half, x.RM.Reg)
	}
	if (t.form == formMR || t.form == formMRI) && x.k > 0 {
		m += fmt.Sprintf("{k%d}", x.k)
	}
	switch t.form {
	case formRVM, formRVMI, formRVM4:
		ops = append(ops, reg, v, m)
	case formRM, formRMI:
		ops = append(ops, reg, m)
	case formMR, formMRI:
		ops = append(ops, m, reg)
	case formVMI:
		ops = append(ops, reg, m)
	case formMVR:
		ops = append(ops, m, v, reg)
	}
	if t.form == formRVM4 {
		ops = append(ops, regName(vec, full, x.k))
	} else if x.imm != native.NoImm {
		ops = append(ops, fmt.Sprintf("%#x", byte(x.imm)))
	}
	name := t.name
	if evex && t.evex != "" {
		name = t.evex
	}
	l.Add(begin, name+" "+strings.Join(ops, ","))
}
