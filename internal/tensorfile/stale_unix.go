//go:build unix && !solaris && !aix

package tensorfile

import (
	"os"
	"syscall"
)

// movesOpen is true where a file can be renamed while it is open.
const movesOpen = true

// hold locks a new temporary file until it is closed. It returns false if removeUnlocked of another
// process was faster and has removed the file. A file system without locks keeps stale files.
func hold(f *os.File) bool {
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX) != nil {
		return true
	}
	return isAt(f, f.Name())
}

// removeUnlocked removes a temporary file that no process has locked.
func removeUnlocked(name string) {
	f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && isAt(f, name) {
		os.Remove(name)
	}
}
