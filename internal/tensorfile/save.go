// Package tensorfile is what the packages npy and safetensors share: writing a
// file so that it is there whole or not at all, and reading no more into memory
// than there is.
//
// Engine part: no compatibility promise; use package millrace.
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

// Save makes the file at path what write writes. Until all is on disk the old
// file stays as it is: a temporary one beside it is written and renamed. It has
// the permissions of the old file, or the usual ones. A path that is a symbolic
// link stays one; one that is no regular file (a pipe, a terminal) is written
// as it is.
func Save(path string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	perm, keep := fs.FileMode(0o666), false
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return &fs.PathError{Op: "save", Path: path, Err: errors.New("is a directory")}
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	case err == nil:
		perm, keep = info.Mode().Perm(), true
	}
	f, err := create(path, perm)
	if err != nil {
		return err
	}
	if keep { // create's mode was subject to the umask
		err = f.Chmod(perm)
	}
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = fault.Hit(fault.File)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) // err tells more than a failure to remove would
	}
	return err
}

// create makes a new file beside path. (os.CreateTemp would make one that
// nobody else may read, whatever the umask.)
func create(path string, perm fs.FileMode) (*os.File, error) {
	const tries = 100
	dir, base := filepath.Split(path)
	for range tries {
		name := filepath.Join(dir, fmt.Sprintf(".%s.%08x.tmp", base, rand.Uint32()))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("no name for a temporary file is free")}
}
