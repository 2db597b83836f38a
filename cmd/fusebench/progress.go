package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// progress shows on a terminal what is going on, in one line that is gone when
// it is done. Elsewhere it is silent.
type progress struct {
	w     io.Writer
	width int // of what is shown now
}

// newProgress shows progress on w if w is a terminal.
func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return &progress{}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{w: w}
}

func (p *progress) say(format string, args ...any) {
	if p.w == nil {
		return
	}
	s := fmt.Sprintf(format, args...)
	pad := max(p.width-len(s), 0)
	fmt.Fprintf(p.w, "\r%s%s", s, strings.Repeat(" ", pad))
	p.width = len(s)
}

func (p *progress) clear() {
	p.say("")
	if p.w != nil {
		fmt.Fprint(p.w, "\r")
	}
}
