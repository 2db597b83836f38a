package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// perfMap is the file that Linux's perf reads names of machine code from.
var perfMap atomic.Pointer[os.File]

// StartPerfMap has Name write to /tmp/perf-PID.map from now on. Perf looks for the
// file there, in a directory that all may write to: so one that exists is an error
// and is left alone, and no link is followed.
var StartPerfMap = sync.OnceValue(func() error {
	f, err := createPerfMap(filepath.Join("/tmp", fmt.Sprintf("perf-%d.map", os.Getpid())))
	if err == nil {
		perfMap.Store(f)
	}
	return err
})

// Name tells perf what n bytes of code from off are. Where no map is written it does
// nothing. Bytes that are freed keep their names until others get theirs: perf takes
// the last.
func Name(c *Code, off, n int, name string) error {
	f := perfMap.Load()
	if f == nil {
		return nil
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, name)
	_, err := fmt.Fprintf(f, "%x %x %s\n", c.Addr(off), n, name) // one write: lines of others stay whole
	return err
}
