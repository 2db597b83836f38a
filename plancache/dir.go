package plancache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace-go/millrace/internal/fault"
)

// Off disables the cache when it is given in place of a directory.
const Off = "off"

// Variable is the environment variable that names a directory, or Off.
const Variable = "MILLRACE_CACHE"

// Dir returns the directory to use: the one that the environment names, else millrace in the user's
// cache directory. It may be Off. The error says that there is no such directory.
func Dir() (string, error) {
	if dir := os.Getenv(Variable); dir == Off {
		return Off, nil
	} else if dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no directory for the cache was found: %w; set %s to a directory, or to %s for no cache", err, Variable, Off)
	}
	return filepath.Join(dir, "millrace"), nil
}

// RefusedError says why a directory is not used as a cache, and how to change that.
type RefusedError struct {
	Dir string
	Why string // completes "cache directory D ..."
	Fix string // how to correct it
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("cache directory %s %s: %s, or set %s to a directory of your own, or to %s for no cache",
		e.Dir, e.Why, e.Fix, Variable, Off)
}

// folder is the folder of this format version.
var folder = fmt.Sprintf("v%d", FormatVersion)

// openPrivate opens the folder of entries in a directory, and makes both if they are missing. Both
// must belong to the user, be writable by no one else, and be no links. It checks the opened
// directories, since a name can be given to another directory at any time.
func openPrivate(dir string) (*os.Root, error) {
	if err := fault.Hit(fault.File); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if is, bad := os.Stat(dir); bad == nil && !is.IsDir() {
			return nil, refuseFile(dir)
		}
		return nil, err
	}
	named, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	outer, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	if err := check(dir, named, outer); err != nil {
		return nil, err
	}
	if err := outer.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	path := filepath.Join(dir, folder)
	if named, err = outer.Lstat(folder); err != nil {
		return nil, err
	}
	if named.Mode()&os.ModeSymlink != 0 { // the link may lead to something that cannot be opened
		return nil, refuseLink(path)
	}
	if !named.IsDir() {
		return nil, refuseFile(path)
	}
	inner, err := outer.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	if err := check(path, named, inner); err != nil {
		inner.Close()
		return nil, err
	}
	return inner, nil
}

func refuseLink(path string) error {
	return &RefusedError{path, "is a symbolic link", "give the directory that it leads to"}
}

func refuseFile(path string) error {
	return &RefusedError{path, "is a file", "remove it or name a directory"}
}

// check checks an open directory; named is what had its name just before.
func check(path string, named os.FileInfo, open *os.Root) error {
	switch {
	case named.Mode()&os.ModeSymlink != 0:
		return refuseLink(path)
	case !named.IsDir():
		return refuseFile(path)
	}
	is, err := open.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(named, is) {
		return &RefusedError{path, "was replaced while it was opened", "find out which program does that"}
	}
	return checkOwner(path, is)
}
