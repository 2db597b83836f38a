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

// OpenArchive opens the .npz archive at path, compressed or not, and reads its
// list of arrays, not their elements. One that is no archive, or that has two
// arrays of one name, is [ErrFormat], as is one with files of which none is an
// array; the error says what else it seems to be. Files beside arrays are passed
// over.
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

// NewArchive is [OpenArchive] of the size bytes that r reads, such as an
// embedded file's.
func NewArchive(r io.ReaderAt, size int64) (*Archive, error) {
	if r == nil {
		return nil, errors.New("npy: nil reader")
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
			return nil, fmt.Errorf("%w archive: %q is there twice", ErrFormat, name)
		}
		a.files[name] = f
		a.names = append(a.names, name)
	}
	if len(z.File) > 0 && len(a.names) == 0 {
		err := fmt.Errorf("%w archive: none of its %d files is an array (its name would end in %s)", ErrFormat, len(z.File), extension)
		return nil, sniff.With(err, sniff.Head(within{r, size}), sniff.Npz)
	}
	return a, nil
}

// within reads a file of a known size. A directory that points out of it is
// damage, and no failure of the reader.
type within struct {
	r    io.ReaderAt
	size int64
}

func (w within) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at > w.size {
		return 0, fmt.Errorf("%w: position %d of %d bytes", zip.ErrFormat, at, w.size)
	}
	return w.r.ReadAt(p, at)
}

// Close closes the file. Tensors that were read stay.
func (a *Archive) Close() error {
	if a == nil || a.close == nil {
		return nil
	}
	return a.close()
}

// Names lists the arrays in the order of the archive.
func (a *Archive) Names() []string { return slices.Clone(a.orEmpty().names) }

// orEmpty is a, or an archive of nothing for one that was not opened.
func (a *Archive) orEmpty() *Archive {
	if a == nil {
		return new(Archive)
	}
	return a
}

// Stat says of an array what [Stat] says of a file. A name that is not there is
// [fs.ErrNotExist].
func (a *Archive) Stat(name string) (info Info, err error) {
	err = a.open(name, func(r io.Reader) (err error) {
		info, err = readHeader(r)
		return err
	})
	return info, err
}

// Tensor reads an array. A name that is not there is [fs.ErrNotExist]; other
// errors are those of [Load].
func (a *Archive) Tensor(name string) (*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return a.TensorOn(d, name)
}

// TensorOn is [Archive.Tensor] in a place.
func (a *Archive) TensorOn(p millrace.Place, name string) (t *millrace.Tensor, err error) {
	err = a.open(name, func(r io.Reader) (err error) {
		if t, err = read(p, r); err != nil {
			return err
		}
		// The end of the file is where its checksum is compared.
		if _, err = io.Copy(io.Discard, r); err != nil {
			t.Release()
			t = nil
		}
		return err
	})
	return t, err
}

// open gives the bytes of an array's file to use.
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
		// A decompressor that failed says so once more when it is closed.
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

// damaged reports an error of reading an archive that is the archive's fault.
func damaged(err error) bool {
	for _, damage := range []error{zip.ErrFormat, zip.ErrAlgorithm, zip.ErrChecksum, io.ErrUnexpectedEOF} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return errors.As(err, new(flate.CorruptInputError))
}

// LoadArchive reads all arrays of the .npz archive at path. Errors are those of
// [OpenArchive] and [Archive.Tensor].
func LoadArchive(path string) (map[string]*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return LoadArchiveOn(d, path)
}

// LoadArchiveOn is [LoadArchive] in a place.
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
