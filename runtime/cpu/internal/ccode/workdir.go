//go:build cgo && unix

package ccode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// workDir is a private directory for compiled objects. Its owner holds a lock in it, by which
// others recognize the directories of dead processes.
type workDir struct {
	path string
	root *os.Root // the directory that was made, even if the path changes
	lock *os.File
}

const (
	workPrefix = "millrace-cc-"
	newPrefix  = "millrace-new-" // name until it is locked
	lockName   = "lock"

	workPattern = workPrefix + "*"
	newPattern  = newPrefix + "*"

	// abandoned is the age from which a directory that was never locked has no owner: locking
	// takes a moment only.
	abandoned = time.Hour
)

// newWorkDir makes a private directory, after removing those of dead processes. The directory gets
// its final name only after it is locked, so that no process takes it for a dead one's.
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
		return nil, fmt.Errorf("no directory for compiled kernels can be made: %w", err)
	}
	return d, nil
}

// check detects a directory that was replaced before it was opened.
func (d *workDir) check() error {
	is, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	if st, ok := is.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || is.Mode().Perm() != 0o700 {
		return fmt.Errorf("another user replaced %s: set TMPDIR to a directory of your own", d.path)
	}
	return nil
}

// maxObject bounds the bytes read of a compiler's object; kernels take about ten kilobytes.
const maxObject = 64 << 20

// take reads a file that a compiler made in the directory, by its path, and removes it. If the
// path leads elsewhere by now, the file is not found. Later writes to the file have no effect.
func (d *workDir) take(path string) ([]byte, error) {
	name := filepath.Base(path)
	defer d.root.Remove(name)
	is, err := d.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !is.Mode().IsRegular() || is.Size() > maxObject {
		return nil, fmt.Errorf("the compiler's output has mode %v and %d bytes, it must be a regular file of at most %d bytes", is.Mode(), is.Size(), maxObject)
	}
	return d.root.ReadFile(name)
}

// put writes a new file and returns its path.
func (d *workDir) put(name string, data []byte) (string, error) {
	return filepath.Join(d.path, name), d.root.WriteFile(name, data, 0o600)
}

// checkParents refuses a directory that another user could replace, because objects are loaded by
// path. Reads through the open directory need no such check.
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

// sweep removes directories of this user that no process holds.
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
			continue // it is being removed, or belongs to another user
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
