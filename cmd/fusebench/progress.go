package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows on a terminal what is running, in one line that is removed at the end. If the
// output is no terminal, it shows nothing.
type progress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar
	total int // of bar; unknown: there is no share to show
}

const unknown = -1

// newProgress shows progress on w if w is a terminal.
func newProgress(w io.Writer) *progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &progress{w: w}
	}
	return &progress{}
}

// say shows what is running now.
func (p *progress) say(format string, args ...any) { p.show(0, unknown, format, args) }

// part shows what is running now, as part i of as many parts of equal length.
func (p *progress) part(i, of int, format string, args ...any) { p.show(i, of, format, args) }

// show draws once and starts no timer, so nothing else runs while a contestant is timed.
func (p *progress) show(i, of int, format string, args []any) {
	if p.w == nil {
		return
	}
	if p.bar == nil || p.total != of {
		p.clear()
		p.total = of
		p.bar = progressbar.NewOptions(of, progressbar.OptionSetWriter(p.w), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(),
			progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionThrottle(50*time.Millisecond), progressbar.OptionSetElapsedTime(false))
	}
	p.bar.Describe(fmt.Sprintf(format, args...))
	if of != unknown {
		p.bar.Set(i)
	}
}

// clear removes the line.
func (p *progress) clear() {
	if p.bar != nil {
		p.bar.Clear()
		p.bar.Exit()
		p.bar = nil
	}
}
