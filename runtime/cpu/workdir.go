//go:build cgo && unix

package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// workDir is a private directory for compiled objects. Its owner holds a lock
// in it, so that others can tell the directories of dead processes.
type workDir struct {
	path string
	lock *os.File
}

const (
	workPattern = "millrace-cc-*"
	lockName    = "lock"
)

// newWorkDir makes one, after removing what dead processes left behind.
func newWorkDir() (*workDir, error) {
	sweep(os.TempDir())
	path, err := os.MkdirTemp("", workPattern) // 0700
	if err != nil {
		return nil, err
	}
	d := &workDir{path: path}
	d.lock, err = os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		d.remove()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return d, nil
}

func (d *workDir) remove() {
	os.RemoveAll(d.path)
	if d.lock != nil {
		d.lock.Close()
		d.lock = nil
	}
}

// sweep removes directories of this user that nobody holds. One without a lock
// file is just being made, or not ours.
func sweep(tmp string) {
	dirs, _ := filepath.Glob(filepath.Join(tmp, workPattern))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
