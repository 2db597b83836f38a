package npy

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
	"github.com/millrace-go/millrace/internal/tensorfile"
)

// Load reads the .npy file at path: a tensor of the array's shape and dtype. A damaged file is
// [ErrFormat]. A dtype that tensors do not have is [millrace.ErrDType]; more than eight dimensions
// are [millrace.ErrShape]. If the file holds several arrays, Load reads the first.
//
// An array in Fortran order becomes a view: its elements are stored as in the file, and the view is
// their transpose.
func Load(path string) (*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return LoadOn(d, path)
}

// LoadOn is [Load] in a place. A nil place, or one that was not opened, is an error.
func LoadOn(p millrace.Place, path string) (*millrace.Tensor, error) {
	f, err := sniff.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	defer f.Close()
	t, err := read(p, f)
	return t, named(path, err)
}

// Read reads one array in the format of .npy files from r, and nothing behind it. Shape, dtype and
// errors are as for [Load].
func Read(r io.Reader) (*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return ReadOn(d, r)
}

// ReadOn is [Read] in a place. A nil place, or one that was not opened, is an error.
func ReadOn(p millrace.Place, r io.Reader) (*millrace.Tensor, error) {
	if r == nil {
		return nil, errors.New("npy: the reader is nil")
	}
	t, err := read(p, r)
	return t, named("", err)
}

// Stat reads the header of the .npy file at path, not the elements. Errors are those of [Load].
func Stat(path string) (Info, error) {
	f, err := sniff.Open(path)
	if err != nil {
		return Info{}, fmt.Errorf("npy: %w", err)
	}
	defer f.Close()
	info, err := readHeader(f)
	return info, named(path, err)
}

// named adds the file's path to an error, if the path is known.
func named(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case path == "":
		return fmt.Errorf("npy: %w", err)
	}
	return fmt.Errorf("npy: %s: %w", path, err)
}

// read reads an array from r. It allocates memory for all elements at once only if r can tell that
// it has them.
func read(p millrace.Place, r io.Reader) (*millrace.Tensor, error) {
	info, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	elems, err := tensorfile.Sure(r, info.Bytes(), tensorfile.Left(r))
	if err != nil {
		return nil, cut(err)
	}
	return tensor(p, elems, info)
}

// tensor makes the tensor that info describes from its elements, all of which exist.
func tensor(p millrace.Place, elems io.Reader, info Info) (*millrace.Tensor, error) {
	if info.BigEndian && info.DType.Size() > 1 {
		elems = &swapper{elems, info.DType.Size()}
	}
	if !info.FortranOrder {
		t, err := millrace.FromReaderOn(p, elems, info.DType, info.Shape...)
		return t, cut(err)
	}
	t, err := millrace.FromReaderOn(p, elems, info.DType, reversed(info.Shape)...)
	if err != nil {
		return nil, cut(err)
	}
	defer t.Release() // the view stays
	axes := make([]int, len(info.Shape))
	for k := range axes {
		axes[k] = len(axes) - 1 - k
	}
	v := t.Permute(axes...)
	return v, v.Err()
}

// cut marks missing elements as [ErrFormat].
func cut(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: elements are missing: %w", ErrFormat, err)
	}
	return err
}

// swapper turns the bytes of every element around. It is asked for whole
// elements.
type swapper struct {
	r    io.Reader
	size int
}

func (s *swapper) Read(b []byte) (int, error) {
	n, err := io.ReadFull(s.r, b[:len(b)/s.size*s.size])
	for at := 0; at+s.size <= n; at += s.size {
		slices.Reverse(b[at : at+s.size])
	}
	return n, err
}
