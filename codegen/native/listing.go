package native

import (
	"fmt"
	"sort"
	"strings"
)

var gprNames = [...]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"}

// String returns Intel's name of the register.
func (r gpr) String() string {
	if r < r8 {
		return gprNames[r]
	}
	return fmt.Sprintf("r%d", uint8(r))
}

// half names the lower 32 bits.
func (r gpr) half() string {
	if r < r8 {
		return "e" + gprNames[r][1:]
	}
	return fmt.Sprintf("r%dd", uint8(r))
}

func (r gpr) wordName() string {
	if r < r8 {
		return gprNames[r][1:]
	}
	return fmt.Sprintf("r%dw", uint8(r))
}

func (r gpr) byteName() string {
	if r < rsp {
		return gprNames[r][1:2] + "l"
	}
	if r < r8 {
		return gprNames[r][1:] + "l"
	}
	return fmt.Sprintf("r%db", uint8(r))
}

// String writes the operand as assemblers do.
func (m mem) String() string {
	if m.base == noReg {
		return fmt.Sprintf("[rip+C%d]", m.disp)
	}
	s := "[" + m.base.String()
	if m.index != noReg {
		s += fmt.Sprintf("+%v*%d", m.index, m.scale)
	}
	switch {
	case m.disp > 0:
		s += fmt.Sprintf("+%#x", m.disp)
	case m.disp < 0:
		s += fmt.Sprintf("-%#x", -m.disp)
	}
	return s + "]"
}

// listing is code as text, line by line.
type listing struct {
	lines []line
}

type line struct {
	at   int
	text string
	note bool
}

func (l *listing) add(at int, text string) { l.lines = append(l.lines, line{at, text, false}) }

func (l *listing) label(at int, name label) {
	l.lines = append(l.lines, line{at, fmt.Sprintf("L%d:", name), true})
}

// note adds a comment on the code that follows.
func (l *listing) note(at int, text string) { l.lines = append(l.lines, line{at, "; " + text, true}) }

func (a *asm) text(begin int, format string, args ...any) {
	if a.lines != nil {
		a.lines.add(begin, fmt.Sprintf(format, args...))
	}
}

func (a *asm) note(format string, args ...any) {
	if a.lines != nil {
		a.lines.note(len(a.buf), fmt.Sprintf(format, args...))
	}
}

// regName names a register of a kind; size is the size of a vector.
func regName(kind uint8, size int, r uint8) string {
	switch kind {
	case mask:
		return fmt.Sprintf("k%d", r)
	case gpr32:
		return gpr(r).half()
	case gpr64:
		return gpr(r).String()
	}
	return fmt.Sprintf("%cmm%d", map[int]byte{64: 'z', 32: 'y'}[max(size, 16)]|map[bool]byte{true: 'x'}[size < 32], r)
}

func (l *listing) vector(begin int, t *opInfo, evex bool, size int, x args) {
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
	if t.reg == mask && t.rm == vec {
		v = regName(vec, full, x.v)
	}
	m := ""
	switch {
	case x.rm.inMem:
		m = x.rm.mem.String()
		if x.rm.step > 0 {
			m += fmt.Sprintf("{1to%d}", size/int(t.elem))
		}
	case t.rm == vec && t.scalar > 0:
		m = regName(vec, 16, x.rm.reg)
	default:
		m = regName(t.rm, full>>t.half, x.rm.reg)
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
	} else if x.imm != noImm {
		ops = append(ops, fmt.Sprintf("%#x", byte(x.imm)))
	}
	name := t.name
	if evex && t.evex != "" {
		name = t.evex
	}
	l.add(begin, name+" "+strings.Join(ops, ","))
}

// String lists all lines in the order of the code, each with its offset.
func (l *listing) String() string {
	sort.SliceStable(l.lines, func(i, j int) bool { return l.lines[i].at < l.lines[j].at })
	var b strings.Builder
	for _, x := range l.lines {
		if x.note {
			fmt.Fprintf(&b, "%s\n", x.text)
		} else {
			fmt.Fprintf(&b, "%6x  %s\n", x.at, x.text)
		}
	}
	return b.String()
}
