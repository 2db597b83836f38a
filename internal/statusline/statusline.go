// Package statusline shows what a program is doing: in one line that changes, where that is
// a terminal, and in a line now and then where it is a file or a pipe.
//
// Engine part: no compatibility promise; use package millrace.
package statusline

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Line is where a program says what it is doing.
type Line struct {
	w     io.Writer
	live  bool // w is a terminal
	every time.Duration
	last  time.Time // when a line was written to what is no terminal
	text  string    // what was said since
}

// New shows on w, and where w is no terminal at most one line in every.
func New(w io.Writer, every time.Duration) *Line {
	l := &Line{w: w, every: every, last: time.Now()}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		l.live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return l
}

// Say shows a text in place of the one before.
func (l *Line) Say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l.live {
		fmt.Fprintf(l.w, "\r\033[K%s", text)
		l.text = text
		return
	}
	if l.text = text; time.Since(l.last) >= l.every {
		l.flush()
	}
}

func (l *Line) flush() {
	fmt.Fprintln(l.w, l.text)
	l.text, l.last = "", time.Now()
}

// Clear takes the text away; elsewhere than on a terminal what was not written never is.
func (l *Line) Clear() {
	if l.live && l.text != "" {
		fmt.Fprint(l.w, "\r\033[K")
	}
	l.text = ""
}

// End leaves the last text where it is, and begins a new line.
func (l *Line) End() {
	switch {
	case l.text == "":
	case l.live:
		fmt.Fprintln(l.w)
	default:
		l.flush()
	}
	l.text = ""
}
