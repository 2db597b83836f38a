package tensorfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/millrace-go/millrace/internal/fault"
)

// Save makes the file at path from the output of write. The old file stays until everything is on
// disk: a temporary file beside it is written and renamed. The new file has the permissions of the
// old one, or the usual ones. A symbolic link stays a link; a path that is no regular file (a pipe,
// a terminal) is written directly. Temporary files that killed processes left of the same path are
// removed.
func Save(path string, write func(io.Writer) error) error {
	switch info, err := os.Stat(path); {
	case err == nil && !info.IsDir() && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	p, err := Begin(path)
	if err != nil {
		return err
	}
	removeStale(p.path)
	if err := write(p); err != nil {
		p.Discard()
		return err
	}
	return p.Commit()
}

// Pending is a file being written, beside its place.
type Pending struct {
	*os.File
	path string // its place
}

// Begin makes a Pending of the file at path; [Pending.Commit] moves it there. An existing path that
// is no regular file is an error.
func Begin(path string) (*Pending, error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	perm, keep := fs.FileMode(0o666), false
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("is a directory")}
	case err == nil && !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("is not a regular file")}
	case err == nil:
		perm, keep = info.Mode().Perm(), true
	}
	f, err := create(path, perm)
	if err != nil {
		return nil, err
	}
	p := &Pending{f, path}
	if keep { // create's mode was subject to the umask
		if err := f.Chmod(perm); err != nil {
			p.Discard()
			return nil, err
		}
	}
	return p, nil
}

// Commit moves the file to its place when all of it is on disk. After an error it is removed.
func (p *Pending) Commit() error {
	err := fault.Hit(fault.File)
	if err == nil {
		err = p.Sync()
	}
	if err == nil && movesOpen {
		err = os.Rename(p.Name(), p.path) // locked until then, so that no other writer takes it for stale
	}
	err = errors.Join(err, p.Close())
	if err == nil && !movesOpen {
		err = os.Rename(p.Name(), p.path)
	}
	if err != nil {
		os.Remove(p.Name()) // err says more than a failure to remove would
	}
	return err
}

// Discard removes the file.
func (p *Pending) Discard() {
	p.Close()
	os.Remove(p.Name())
}

// create makes a new file beside path. (os.CreateTemp would make one that only its owner may read,
// whatever the umask.)
func create(path string, perm fs.FileMode) (*os.File, error) {
	const tries = 100
	dir, base := filepath.Split(path)
	for range tries {
		name := filepath.Join(dir, fmt.Sprintf(".%s.%08x.tmp", base, rand.Uint32()))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if err == nil && !hold(f) {
			f.Close()
			continue
		}
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("no name for a temporary file is free")}
}
