package plancache

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/millrace-go/millrace/internal/fault"
)

// List lists the entries' files, the last used first.
func (c *Cache) List() ([]File, error) {
	if c == nil {
		return nil, nil
	}
	files, err := c.list()
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f File) bool { return f.temporary() })
	sortByUse(files)
	slices.Reverse(files)
	return files, nil
}

// Read reads one of the files that List returns. The error says why it is not a valid entry.
// Nothing is counted.
func (c *Cache) Read(name string) (Entry, error) {
	e, _, err := c.read(name)
	if err == nil && nameOf(e.Kind, e.Key) != name {
		err = errForeign
	}
	return e, err
}

// Remove removes a file that List returned.
func (c *Cache) Remove(name string) error { return c.root.Remove(name) }

// list lists all files with their sizes, in no order. It omits files that are removed meanwhile.
func (c *Cache) list() ([]File, error) {
	if err := fault.Hit(fault.File); err != nil {
		return nil, err
	}
	d, err := c.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var files []File
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if is, err := c.root.Lstat(name); err == nil && is.Mode().IsRegular() {
				files = append(files, File{name, is.Size(), is.ModTime()})
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, err
		}
	}
}

func sortByUse(files []File) {
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(a.Used.Compare(b.Used), cmp.Compare(a.Name, b.Name))
	})
}

// OpenExisting opens an existing cache, for tools that only read. If there is none, it makes
// nothing, and the error is os.ErrNotExist.
func OpenExisting(dir string) (*Cache, error) {
	if _, err := os.Lstat(filepath.Join(dir, folder)); err != nil {
		return nil, err
	}
	return Open(dir, Options{})
}
