package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// File is an open safetensors file. Its methods are safe for concurrent use.
type File struct {
	path   string
	r      io.ReaderAt
	base   int64 // start of the elements
	head   *header
	byName map[string]int
	close  func() error
}

const (
	lengthBytes = 8           // size of the number before the header
	maxHeader   = 100_000_000 // the format's own limit
)

// Open opens the file at path and reads its header. An invalid header is [ErrFormat].
func Open(path string) (*File, error) {
	r, err := sniff.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := openFile(r, path)
	if err != nil {
		r.Close()
		return nil, named(path, err)
	}
	f.close = r.Close
	return f, nil
}

func openFile(r *os.File, path string) (*File, error) {
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	return newFile(r, info.Size(), path)
}

// NewFile is [Open] of the size bytes of r, such as an embedded file. A nil r is an error.
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	if r == nil {
		return nil, errors.New("safetensors: the reader is nil")
	}
	f, err := newFile(r, size, "")
	return f, named("", err)
}

// named adds the file's path to an error, if there is one.
func named(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case path == "":
		return fmt.Errorf("safetensors: %w", err)
	}
	return fmt.Errorf("safetensors: %s: %w", path, err)
}

// newFile reads the header. For a file of another format the error names that format.
func newFile(r io.ReaderAt, size int64, path string) (*File, error) {
	f, err := readHeader(r, size, path)
	if errors.Is(err, ErrFormat) {
		if why := sniff.Explain(sniff.Head(io.NewSectionReader(r, 0, size)), sniff.Safetensors); why != "" {
			return nil, malformed("no safetensors file: %s", why)
		}
	}
	return f, err
}

func readHeader(r io.ReaderAt, size int64, path string) (*File, error) {
	if size < lengthBytes {
		return nil, malformed("%d bytes are no file of this format", size)
	}
	var length [lengthBytes]byte
	if err := readAt(r, length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-lengthBytes {
		return nil, malformed("a header of %d bytes in a file of %d", n, size)
	}
	text := make([]byte, n)
	if err := readAt(r, text, lengthBytes); err != nil {
		return nil, err
	}
	f := &File{path: path, r: r, base: lengthBytes + int64(n)}
	var err error
	if f.head, err = parseHeader(text, size-f.base); err != nil {
		return nil, err
	}
	f.byName = make(map[string]int, len(f.head.tensors))
	for i, t := range f.head.tensors {
		f.byName[t.Name] = i
	}
	return f, nil
}

// readAt fills b. A file that became shorter is malformed.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return malformed("%w at byte %d", io.ErrUnexpectedEOF, at+int64(n))
	}
	return err
}

// Close closes the file. Tensors already read stay valid; reading more is [os.ErrClosed].
func (f *File) Close() error {
	if f == nil || f.close == nil {
		return nil
	}
	return f.close()
}

// Names lists the tensors in the order of their elements in the file.
func (f *File) Names() []string {
	f = f.orEmpty()
	names := make([]string, len(f.head.tensors))
	for i, t := range f.head.tensors {
		names[i] = t.Name
	}
	return names
}

// Info returns the header's entry of a tensor. An unknown name is [fs.ErrNotExist].
func (f *File) Info(name string) (Info, error) {
	f = f.orEmpty()
	i, ok := f.byName[name]
	if !ok {
		return Info{}, named(f.path, fmt.Errorf("%q: %w", name, fs.ErrNotExist))
	}
	t := f.head.tensors[i]
	t.Shape = slices.Clone(t.Shape)
	return t, nil
}

// Metadata returns a copy of the file's strings, such as "format"; nil if there are none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.orEmpty().head.metadata) }

// orEmpty returns f, or an empty file for one that is nil or was not opened.
func (f *File) orEmpty() *File {
	if f == nil || f.head == nil {
		return &File{head: new(header)}
	}
	return f
}

// Tensor reads a tensor, of the entry's shape and dtype, to the default device. An unknown name is
// [fs.ErrNotExist]. A dtype that tensors do not have is [millrace.ErrDType]. More than eight
// dimensions are [millrace.ErrShape]. A file truncated since it was opened is [ErrFormat].
func (f *File) Tensor(name string) (*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return f.TensorOn(d, name)
}

// TensorOn is [File.Tensor] in a given place. A nil place, or one that was not opened, is an error.
func (f *File) TensorOn(p millrace.Place, name string) (*millrace.Tensor, error) {
	f = f.orEmpty()
	i, ok := f.byName[name]
	if !ok {
		_, err := f.Info(name)
		return nil, err
	}
	t, err := f.read(p, f.head.tensors[i])
	if err != nil {
		return nil, named(f.path, fmt.Errorf("%q: %w", name, err))
	}
	return t, nil
}

func (f *File) read(p millrace.Place, info Info) (*millrace.Tensor, error) {
	if info.DType == millrace.Invalid {
		return nil, fmt.Errorf("%w: tensors have no %s", millrace.ErrDType, info.Stored)
	}
	elems := io.NewSectionReader(f.r, f.base+info.begin, info.Bytes())
	t, err := millrace.FromReaderOn(p, elems, info.DType, info.Shape...)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = malformed("elements are missing: %w", err)
	}
	return t, err
}

// Load reads all tensors of the file at path to the default device. Errors are those of [Open] and
// [File.Tensor].
func Load(path string) (map[string]*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return LoadOn(d, path)
}

// LoadOn is [Load] in a given place. A nil place, or one that was not opened, is an error.
func LoadOn(p millrace.Place, path string) (map[string]*millrace.Tensor, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := make(map[string]*millrace.Tensor, len(f.byName))
	for _, name := range f.Names() {
		t, err := f.TensorOn(p, name)
		if err != nil {
			for _, t := range all {
				t.Release()
			}
			return nil, err
		}
		all[name] = t
	}
	return all, nil
}
