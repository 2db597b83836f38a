//go:build cgo && unix

package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// workDir is a private directory for compiled objects. Its owner holds a lock
// in it, so that others can tell the directories of dead processes.
type workDir struct {
	path string
	root *os.Root // what was made, whatever has the path by now
	lock *os.File
}

const (
	workPrefix = "millrace-cc-"
	newPrefix  = "millrace-new-" // until it is locked
	lockName   = "lock"

	workPattern = workPrefix + "*"
	newPattern  = newPrefix + "*"

	// abandoned is the age from which a directory that was never locked belongs
	// to nobody: locking it takes a moment.
	abandoned = time.Hour
)

// newWorkDir makes one, after removing what dead processes left behind. It has
// its name only when it is locked, so that nobody takes it for one of those.
func newWorkDir() (*workDir, error) {
	sweep(os.TempDir())
	path, err := os.MkdirTemp("", newPattern) // 0700
	if err != nil {
		return nil, err
	}
	d := &workDir{path: path}
	if d.root, err = os.OpenRoot(path); err == nil {
		err = d.check()
	}
	if err == nil {
		d.lock, err = d.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err == nil {
		err = syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		named := filepath.Join(filepath.Dir(path), workPrefix+strings.TrimPrefix(filepath.Base(path), newPrefix))
		if err = os.Rename(path, named); err == nil {
			d.path = named
		}
	}
	if err != nil {
		d.remove()
		return nil, fmt.Errorf("a directory for compiled kernels: %w", err)
	}
	return d, nil
}

// check finds what was put in the directory's place before it was opened.
func (d *workDir) check() error {
	is, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	if st, ok := is.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || is.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s is not what was made there: set TMPDIR to a directory of your own", d.path)
	}
	return nil
}

// maxObject bounds what is read of a compiler's object; kernels take some ten
// kilobytes.
const maxObject = 64 << 20

// take reads a file that was made in the directory, by a compiler, which knows it
// by its path, and removes it. Where the path leads elsewhere by now there is no such
// file. Whoever still writes to it does so to nothing that is used.
func (d *workDir) take(path string) ([]byte, error) {
	name := filepath.Base(path)
	defer d.root.Remove(name)
	is, err := d.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !is.Mode().IsRegular() || is.Size() > maxObject {
		return nil, fmt.Errorf("the compiler's object is %v of %d bytes", is.Mode(), is.Size())
	}
	return d.root.ReadFile(name)
}

// put writes a new file and returns its path.
func (d *workDir) put(name string, data []byte) (string, error) {
	return filepath.Join(d.path, name), d.root.WriteFile(name, data, 0o600)
}

// checkParents refuses paths in the directory where somebody else could give them
// to other files: what is read through an open directory need not ask.
func (d *workDir) checkParents() error {
	for dir := filepath.Dir(d.path); ; dir = filepath.Dir(dir) {
		is, err := os.Stat(dir)
		if err != nil {
			return err
		}
		st, ok := is.Sys().(*syscall.Stat_t)
		switch {
		case !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return fmt.Errorf("no object is loaded from %s: %s belongs to another user; set TMPDIR to a directory of your own", d.path, dir)
		case is.Mode().Perm()&0o022 != 0 && is.Mode()&os.ModeSticky == 0:
			return fmt.Errorf("no object is loaded from %s: others can write to %s; set TMPDIR to a directory of your own", d.path, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (d *workDir) remove() {
	os.RemoveAll(d.path)
	if d.root != nil {
		d.root.Close()
		d.root = nil
	}
	if d.lock != nil {
		d.lock.Close()
		d.lock = nil
	}
}

// sweep removes directories of this user that nobody holds.
func sweep(tmp string) {
	held, _ := filepath.Glob(filepath.Join(tmp, workPattern))
	fresh, _ := filepath.Glob(filepath.Join(tmp, newPattern))
	for i, dir := range append(held, fresh...) {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if i >= len(held) {
			if time.Since(info.ModTime()) > abandoned {
				os.RemoveAll(dir)
			}
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue // it is being removed, or not ours
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
