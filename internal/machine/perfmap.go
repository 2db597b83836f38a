package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// perfMap is the file from which Linux's perf reads names of machine code.
var perfMap atomic.Pointer[os.File]

// StartPerfMap makes Name write to /tmp/perf-PID.map from now on. Perf requires the file there, in
// a directory that all users may write to. An existing file is therefore an error and is not
// touched, and no link is followed.
var StartPerfMap = sync.OnceValue(func() error {
	f, err := createPerfMap(filepath.Join("/tmp", fmt.Sprintf("perf-%d.map", os.Getpid())))
	if err == nil {
		perfMap.Store(f)
	}
	return err
})

// Name tells perf the name of n bytes of code from off on. Without a map it does nothing. Freed
// bytes keep their names until others get them: perf uses the last name.
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
	_, err := fmt.Fprintf(f, "%x %x %s\n", c.Addr(off), n, name) // one write keeps the line whole
	return err
}
