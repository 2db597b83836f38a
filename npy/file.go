package npy

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
	"github.com/millrace-go/millrace/ir"
)

// File is an open .npy file that is read in parts. Its methods are safe for concurrent use.
type File struct {
	path  string
	r     io.ReaderAt
	info  Info
	close func() error
}

// Open opens the .npy file at path and reads its header, not its elements. [File.Rows] reads parts
// of them, so a file may be larger than memory. Errors are those of [Load]. A file with fewer
// elements than its header says is [ErrFormat].
func Open(path string) (*File, error) {
	r, err := sniff.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	f, err := openAll(r, path)
	if err != nil {
		r.Close()
		return nil, named(path, err)
	}
	f.close = r.Close
	return f, nil
}

func openAll(r *os.File, path string) (*File, error) {
	info, err := r.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file, so parts of it cannot be read")
	}
	return newFile(r, info.Size(), path)
}

// NewFile is [Open] of the size bytes of r, such as an embedded file. A nil r is an error.
func NewFile(r io.ReaderAt, size int64) (*File, error) {
	if r == nil {
		return nil, errors.New("npy: the reader is nil")
	}
	f, err := newFile(r, size, "")
	return f, named("", err)
}

func newFile(r io.ReaderAt, size int64, path string) (*File, error) {
	if size < 0 {
		return nil, fmt.Errorf("%w: the file has %d bytes", ErrFormat, size)
	}
	info, err := readHeader(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	if left := size - info.Offset; left < info.Bytes() {
		return nil, cut(fmt.Errorf("%w: the data ends after %d of %d bytes", io.ErrUnexpectedEOF, left, info.Bytes()))
	}
	return &File{path: path, r: r, info: info}, nil
}

// Info returns what the file's header says about the array.
func (f *File) Info() Info {
	if f == nil {
		return Info{}
	}
	info := f.info
	info.Shape = append([]int(nil), info.Shape...)
	return info
}

// Len is the number of rows: the size of the first dimension.
func (f *File) Len() int {
	if f == nil || len(f.info.Shape) == 0 {
		return 0
	}
	return f.info.Shape[0]
}

// Close closes the file. Tensors that were read stay valid; reading more is [os.ErrClosed].
func (f *File) Close() error {
	if f == nil || f.close == nil {
		return nil
	}
	return f.close()
}

// Rows reads n rows from row i on, elements i to i+n along the first dimension: NumPy's a[i:i+n] of
// np.load with mmap_mode. The shape is the array's with n as its first dimension; the dtype is the
// array's. Rows that do not exist are [millrace.ErrIndex]; an array without dimensions is
// [millrace.ErrShape].
//
// Rows of an array in C order are one piece of the file. In Fortran order each element of a row is
// stored in another piece, so reading many rows at once is much faster than reading few. The result
// is then a view, as for [Load].
func (f *File) Rows(i, n int) (*millrace.Tensor, error) {
	d, err := millrace.Default()
	if err != nil {
		return nil, err
	}
	return f.RowsOn(d, i, n)
}

// RowsOn is [File.Rows] in a place. A nil place, or one that was not opened, is an error.
func (f *File) RowsOn(p millrace.Place, i, n int) (*millrace.Tensor, error) {
	if f == nil || f.r == nil {
		return nil, errors.New("npy: the File is nil")
	}
	t, err := f.rows(p, i, n)
	return t, named(f.path, err)
}

func (f *File) rows(p millrace.Place, i, n int) (*millrace.Tensor, error) {
	if len(f.info.Shape) == 0 {
		return nil, fmt.Errorf("%w: an array without dimensions has no rows", millrace.ErrShape)
	}
	all := f.info.Shape[0]
	if i < 0 || n < 0 || i > all || n > all-i {
		return nil, fmt.Errorf("%w: cannot read %d rows from row %d on: there are %d", millrace.ErrIndex, n, i, all)
	}
	info := f.info
	info.Shape = append([]int{n}, info.Shape[1:]...)
	row := int64(ir.Shape(info.Shape[1:]).Elems()) * int64(info.DType.Size())
	if !info.FortranOrder {
		return tensor(p, io.NewSectionReader(f.r, info.Offset+int64(i)*row, int64(n)*row), info)
	}
	size := int64(info.DType.Size())
	return tensor(p, &columns{f.r, info.Offset + int64(i)*size, int64(all) * size, int64(n) * size, 0}, info)
}

// columns reads a piece of each column of an array in Fortran order, one after another.
type columns struct {
	r      io.ReaderAt
	at     int64 // of the piece of this column
	stride int64 // between columns
	size   int64 // of a piece
	done   int64 // of this piece
}

func (c *columns) Read(b []byte) (int, error) {
	total := 0
	for len(b) > 0 && c.size > 0 {
		part := b[:min(int64(len(b)), c.size-c.done)]
		n, err := c.r.ReadAt(part, c.at+c.done)
		total += n
		c.done += int64(n)
		if n < len(part) {
			return total, err
		}
		b = b[n:]
		if c.done == c.size {
			c.at, c.done = c.at+c.stride, 0
		}
	}
	return total, nil
}
