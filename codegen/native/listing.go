package native

import (
	"fmt"
	"sort"
	"strings"
)

var GPRNames = [...]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"}

// String returns Intel's name of the register.
func (r GPR) String() string {
	if r < R8 {
		return GPRNames[r]
	}
	return fmt.Sprintf("r%d", uint8(r))
}

// String writes the operand as assemblers do.
func (m Mem) String() string {
	if m.Base == NoReg {
		return fmt.Sprintf("[rip+C%d]", m.Disp)
	}
	s := "[" + m.Base.String()
	if m.Index != NoReg {
		s += fmt.Sprintf("+%v*%d", m.Index, m.Scale)
	}
	switch {
	case m.Disp > 0:
		s += fmt.Sprintf("+%#x", m.Disp)
	case m.Disp < 0:
		s += fmt.Sprintf("-%#x", -m.Disp)
	}
	return s + "]"
}

// Listing is code as text, line by line.
type Listing struct {
	Lines []line
}

type line struct {
	at   int
	Text string
	note bool
}

func (l *Listing) Add(at int, text string) { l.Lines = append(l.Lines, line{at, text, false}) }

func (l *Listing) label(at int, name Label) {
	l.Lines = append(l.Lines, line{at, fmt.Sprintf("L%d:", name), true})
}

// note adds a comment on the code that follows.
func (l *Listing) note(at int, text string) { l.Lines = append(l.Lines, line{at, "; " + text, true}) }

func (a *Buffer) Text(begin int, format string, args ...any) {
	if a.Lines != nil {
		a.Lines.Add(begin, fmt.Sprintf(format, args...))
	}
}

func (a *Buffer) note(format string, args ...any) {
	if a.Lines != nil {
		a.Lines.note(len(a.Buf), fmt.Sprintf(format, args...))
	}
}

// String lists all lines in the order of the code, each with its offset.
func (l *Listing) String() string {
	sort.SliceStable(l.Lines, func(i, j int) bool { return l.Lines[i].at < l.Lines[j].at })
	var b strings.Builder
	for _, x := range l.Lines {
		if x.note {
			fmt.Fprintf(&b, "%s\n", x.Text)
		} else {
			fmt.Fprintf(&b, "%6x  %s\n", x.at, x.Text)
		}
	}
	return b.String()
}
