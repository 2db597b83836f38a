//go:build cgo && unix

package ccode

import (
	"bytes"
	"fmt"
	"strings"
)

// logPart is the number of bytes kept of each end of a compiler's output: the beginning shows the
// fault, the end shows how the compiler ended.
const logPart = 16 << 10

// logEnds receives all output of a compiler and keeps its first and last bytes.
type logEnds struct {
	head, tail []byte // tail is a ring once it is full
	at         int    // start of the ring
	left       int64  // number of bytes dropped between head and tail
}

func (l *logEnds) Write(p []byte) (int, error) {
	n := len(p)
	if room := logPart - len(l.head); room > 0 {
		room = min(room, len(p))
		l.head, p = append(l.head, p[:room]...), p[room:]
	}
	if over := len(p) - logPart; over > 0 {
		l.left += int64(over)
		p = p[over:]
	}
	if room := logPart - len(l.tail); room > 0 {
		room = min(room, len(p))
		l.tail, p = append(l.tail, p[:room]...), p[room:]
	}
	l.left += int64(len(p))
	for len(p) > 0 {
		done := copy(l.tail[l.at:], p)
		l.at, p = (l.at+done)%logPart, p[done:]
	}
	return n, nil
}

// String returns the output, with one line in place of the dropped bytes.
func (l *logEnds) String() string {
	b := bytes.NewBuffer(bytes.Clone(l.head))
	if l.left > 0 {
		fmt.Fprintf(b, "\n... %d bytes left out ...\n", l.left)
	}
	b.Write(l.tail[l.at:])
	b.Write(l.tail[:l.at])
	return strings.TrimSpace(strings.ToValidUTF8(b.String(), "\uFFFD"))
}
