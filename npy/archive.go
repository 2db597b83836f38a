package npy

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// extension ends the name of each file in an archive; the array's name comes before it.
const extension = ".npy"

// Archive is an open .npz archive. Its methods are safe for concurrent use.
type Archive struct {
	path  string
	zip   *zip.Reader
	size  int64 // of the archive
	close func() error
	files map[string]*zip.File
	names []string
}

// OpenArchive opens the .npz archive at path, compressed or not, and reads its list of arrays, not
// their elements. Files in the archive that are no arrays are ignored. A file that is no archive,
// an archive with two arrays of one name, and one whose files include no array are [ErrFormat]; the
// error says which format the file seems to have.
func OpenArchive(path string) (*Archive, error) {
	f, err := sniff.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	a, err := openFile(f, path)
	if err != nil {
		f.Close()
		return nil, named(path, err)
	}
	a.close = f.Close
	return a, nil
}

func openFile(f *os.File, path string) (*Archive, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return newArchive(f, info.Size(), path)
}

// NewArchive is [OpenArchive] of the size bytes of r, such as an embedded file. A nil r is an
// error.
func NewArchive(r io.ReaderAt, size int64) (*Archive, error) {
	if r == nil {
		return nil, errors.New("npy: the reader is nil")
	}
	a, err := newArchive(r, size, "")
	return a, named("", err)
}

func newArchive(r io.ReaderAt, size int64, path string) (*Archive, error) {
	z, err := zip.NewReader(within{r, size}, size)
	if err != nil {
		return nil, fmt.Errorf("%w archive: %w", ErrFormat, sniff.With(err, sniff.Head(within{r, size}), sniff.Npz))
	}
	a := &Archive{path: path, zip: z, size: size, files: map[string]*zip.File{}}
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, extension)
		if !ok {
			continue
		}
		if a.files[name] != nil {
			return nil, fmt.Errorf("%w archive: %q occurs twice", ErrFormat, name)
		}
		a.files[name] = f
		a.names = append(a.names, name)
	}
	if len(z.File) > 0 && len(a.names) == 0 {
		err := fmt.Errorf("%w archive: none of its %d files is an array, whose name ends in %s", ErrFormat, len(z.File), extension)
		return nil, sniff.With(err, sniff.Head(within{r, size}), sniff.Npz)
	}
	return a, nil
}

// within reads a file of a known size. A position outside of it means that the archive is damaged,
// not that reading failed.
type within struct {
	r    io.ReaderAt
	size int64
}

func (w within) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > w.size {
		return 0, fmt.Errorf("%w: position %d is not within %d bytes", zip.ErrFormat, at, w.size)
	}
	return w.r.ReadAt(p, at)
}

// Close closes the file and returns the file system's error, if any. Tensors that were read stay
// valid.
func (a *Archive) Close() error {
	if a == nil || a.close == nil {
		return nil
	}
	return a.close()
}

// Names lists the arrays in the order of the archive.
func (a *Archive) Names() []string { return slices.Clone(a.orEmpty().names) }

// orEmpty returns a, or an empty archive if a was not opened.
func (a *Archive) orEmpty() *Archive {
	if a == nil {
		return new(Archive)
	}
	return a
}

// Stat returns what the archive's header says about an array. Its Offset counts from the beginning
// of the array's unpacked file. An unknown name is [fs.ErrNotExist].
func (a *Archive) Stat(name string) (info Info, err error) {
	err = a.open(name, func(r io.Reader) (err error) {
		info, err = readHeader(r)
		return err
	})
	return info, err
}

// Tensor reads an array. An unknown name is [fs.ErrNotExist]. Shape, dtype and other errors are as
// for [Load].
func (a *Archive) Tensor(name string) (*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return a.TensorOn(d, name)
}

// TensorOn is [Archive.Tensor] in a place. A nil place, or one that was not opened, is an error.
func (a *Archive) TensorOn(p millrace.Place, name string) (t *millrace.Tensor, err error) {
	err = a.open(name, func(r io.Reader) (err error) {
		if t, err = read(p, r); err != nil {
			return err
		}
		// Read up to the end of the file, where its checksum is compared.
		if _, err = io.Copy(io.Discard, r); err != nil {
			t.Release()
			t = nil
		}
		return err
	})
	return t, err
}

// open calls use with the bytes of an array's file.
func (a *Archive) open(name string, use func(io.Reader) error) error {
	a = a.orEmpty()
	f := a.files[name]
	if f == nil {
		return named(a.path, fmt.Errorf("%q: %w", name, fs.ErrNotExist))
	}
	r, err := f.Open()
	if err == nil {
		e := &entry{r: r, left: unpromised}
		if f.Method == zip.Store {
			e.left = min(int64(min(f.CompressedSize64, math.MaxInt64)), a.size)
		}
		err = use(e)
		// A decompressor that failed returns its error again when it is closed.
		if end := r.Close(); err == nil {
			err = end
		}
	}
	if damaged(err) && !errors.Is(err, ErrFormat) {
		err = fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if err != nil {
		return named(a.path, fmt.Errorf("%q: %w", name, err))
	}
	return nil
}

// damaged reports whether an error of reading means that the archive is damaged.
func damaged(err error) bool {
	for _, damage := range []error{zip.ErrFormat, zip.ErrAlgorithm, zip.ErrChecksum, io.ErrUnexpectedEOF} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return errors.As(err, new(flate.CorruptInputError))
}

// LoadArchive reads all arrays of the .npz archive at path, by name. Errors are those of
// [OpenArchive] and [Archive.Tensor]; after one, no tensor stays.
func LoadArchive(path string) (map[string]*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return LoadArchiveOn(d, path)
}

// LoadArchiveOn is [LoadArchive] in a place. After an error, no tensor stays.
func LoadArchiveOn(p millrace.Place, path string) (map[string]*millrace.Tensor, error) {
	a, err := OpenArchive(path)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	all := make(map[string]*millrace.Tensor, len(a.names))
	for _, name := range a.names {
		if all[name], err = a.TensorOn(p, name); err != nil {
			delete(all, name)
			for _, t := range all {
				t.Release()
			}
			return nil, err
		}
	}
	return all, nil
}
