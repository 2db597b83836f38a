package gpuchild

import (
	"bytes"
	"strings"
	"sync"
)

// tail keeps the end of a process's output; of Go's long crash report it keeps the beginning.
type tail struct {
	mu    sync.Mutex
	kept  []byte
	crash int // bytes still to keep of a crash report; 0: no crash
}

const (
	maxTail  = 1 << 10
	maxCrash = 256
)

// crashes are the beginnings of Go's crash reports.
var crashes = [][]byte{
	[]byte("panic: "), []byte("fatal error: "), []byte("unexpected fault address "),
	[]byte("SIGABRT: "), []byte("SIGBUS: "), []byte("SIGFPE: "), []byte("SIGILL: "), []byte("SIGSEGV: "), []byte("SIGSYS: "), []byte("SIGTRAP: "),
}

// Write keeps the relevant part of b.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.crash > 0 {
		n := min(len(b), t.crash-1)
		t.kept, t.crash = append(t.kept, b[:n]...), t.crash-n
		return len(b), nil
	}
	t.kept = append(t.kept, b...)
	for _, c := range crashes {
		if i := bytes.Index(t.kept, c); i >= 0 {
			end := min(len(t.kept), i+maxCrash)
			t.crash = maxCrash + 1 - (end - i)
			t.kept = t.kept[max(0, i-maxTail):end]
			return len(b), nil
		}
	}
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(b), nil
}

// text returns the kept output in one line, without registers and stacks.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(string(t.kept), "?")) {
		if t.crash > 0 && (strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "PC=") || strings.HasPrefix(line, "runtime stack:")) {
			break
		}
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
