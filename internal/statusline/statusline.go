package statusline

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Line shows a program's progress.
type Line struct {
	w     io.Writer
	live  bool // w is a terminal
	every time.Duration
	last  time.Time // time of the last line, if w is no terminal
	text  string    // text since then
}

// New shows progress on w; if w is no terminal, at most one line in every.
func New(w io.Writer, every time.Duration) *Line {
	l := &Line{w: w, every: every, last: time.Now()}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		l.live = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return l
}

// Say replaces the text.
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

// Clear removes the text; elsewhere than on a terminal the unwritten text is dropped.
func (l *Line) Clear() {
	if l.live && l.text != "" {
		fmt.Fprint(l.w, "\r\033[K")
	}
	l.text = ""
}

// End keeps the last text, and begins a new line.
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
