package npy

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/tensorfile"
	"github.com/millrace-go/millrace/ir"
)

// Writer writes an .npy file in parts: [Writer.Append] adds rows, and [Writer.Close] writes their
// number to the header. Only one goroutine may use it at a time.
type Writer struct {
	path  string
	file  *tensorfile.Pending
	out   *bufio.Writer
	descr string
	dt    millrace.DType
	row   []int
	n     int
	err   error // why nothing more can be written
}

var errWriterClosed = errors.New("the Writer is closed")

// Create begins the .npy file at path. Its array has rows of this dtype and shape, and one
// dimension more than a row, in front. The file appears when [Writer.Close] has returned nil; until
// then an old file stays unchanged. A dtype that NumPy does not have is [millrace.ErrDType]; an
// invalid shape is [millrace.ErrShape].
func Create(path string, dt millrace.DType, row ...int) (*Writer, error) {
	w, err := create(path, dt, row)
	return w, named(path, err)
}

func create(path string, dt millrace.DType, row []int) (*Writer, error) {
	descr, err := describe(dt)
	if err != nil {
		return nil, err
	}
	if err := ir.Shape(append([]int{1}, row...)).Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrShape, err)
	}
	f, err := tensorfile.Begin(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, file: f, out: bufio.NewWriter(f), descr: descr, dt: dt, row: slices.Clone(row)}
	if _, err := w.out.Write(w.header()); err != nil {
		f.Discard()
		return nil, err
	}
	return w, nil
}

// header has the same length for every number of rows: it has room for that number to grow.
func (w *Writer) header() []byte {
	return appendHeader(nil, w.descr, append([]int{w.n}, w.row...))
}

// Len is the number of rows so far.
func (w *Writer) Len() int {
	if w == nil {
		return 0
	}
	return w.n
}

// Append computes t and writes its rows. t's shape is that of a row with one more dimension in
// front, of any size; another shape is [millrace.ErrShape]. Another dtype than the file's is
// [millrace.ErrDType]. After these errors, and after an error that t carries, the Writer can still
// be used. An error of the disk ends it: Append and Close then return that error.
func (w *Writer) Append(t *millrace.Tensor) error {
	if w == nil || w.file == nil {
		return errors.New("npy: the Writer is nil")
	}
	return named(w.path, w.append(t))
}

func (w *Writer) append(t *millrace.Tensor) error {
	if w.err != nil {
		return w.err
	}
	if err := t.Eval(); err != nil {
		return err
	}
	switch shape := t.Shape(); {
	case t.DType() != w.dt:
		return fmt.Errorf("%w: rows of %v do not fit a file of %v", millrace.ErrDType, t.DType(), w.dt)
	case len(shape) != len(w.row)+1 || !slices.Equal(shape[1:], w.row):
		return fmt.Errorf("%w: %v does not fit rows of %v: the first dimension is the number of rows", millrace.ErrShape, shape, w.row)
	case t.Dim(0) > math.MaxInt-w.n:
		return fmt.Errorf("%w: there are too many rows", millrace.ErrShape)
	}
	if _, w.err = t.WriteTo(w.out); w.err != nil {
		return w.err
	}
	w.n += t.Dim(0)
	return nil
}

// Close writes the number of rows and moves the file to its path. After an error there is no new
// file. A second call does nothing.
func (w *Writer) Close() error {
	if w == nil || w.file == nil {
		return nil
	}
	if errors.Is(w.err, errWriterClosed) {
		return nil
	}
	err := w.err
	if err == nil {
		err = w.out.Flush()
	}
	if err == nil {
		_, err = w.file.WriteAt(w.header(), 0)
	}
	w.err = errWriterClosed
	if err != nil {
		w.file.Discard()
		return named(w.path, err)
	}
	return named(w.path, w.file.Commit())
}

// Discard ends the Writer without a file. After [Writer.Close] it does nothing, so it can be
// deferred.
func (w *Writer) Discard() {
	if w == nil || w.file == nil || errors.Is(w.err, errWriterClosed) {
		return
	}
	w.err = errWriterClosed
	w.file.Discard()
}
