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

// Writer writes an .npy file piece by piece: rows are appended, and the header says how
// many there are when [Writer.Close] ends the file. It is for one goroutine at a time.
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

// Create begins the .npy file at path, of rows of a dtype and a shape, which may be none:
// its array has one dimension more, in front. The file is there when [Writer.Close] has
// returned nil; until then an old one stays as it is. A dtype that NumPy does not have is
// [millrace.ErrDType], a shape that cannot be [millrace.ErrShape].
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

// header is as long whatever the number of rows: it has room for that to grow.
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

// Append runs what t needs and writes its rows: its shape is that of a row with any first
// dimension in front, or else it is [millrace.ErrShape]; another dtype than the file's is
// [millrace.ErrDType]. After either, and after an error that t carries, the Writer is as it
// was. An error of the disk ends it: Append and Close then give that error.
func (w *Writer) Append(t *millrace.Tensor) error {
	if w == nil || w.file == nil {
		return errors.New("npy: nil Writer")
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
		return fmt.Errorf("%w: %v rows for a file of %v", millrace.ErrDType, t.DType(), w.dt)
	case len(shape) != len(w.row)+1 || !slices.Equal(shape[1:], w.row):
		return fmt.Errorf("%w: %v for rows of %v, with how many in front", millrace.ErrShape, shape, w.row)
	case t.Dim(0) > math.MaxInt-w.n:
		return fmt.Errorf("%w: too many rows", millrace.ErrShape)
	}
	if _, w.err = t.WriteTo(w.out); w.err != nil {
		return w.err
	}
	w.n += t.Dim(0)
	return nil
}

// Close writes the number of rows and puts the file in its place. After an error there is
// none. A second call does nothing.
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

// Discard ends the Writer and leaves no file, where [Writer.Close] was not called before:
// it is for defer.
func (w *Writer) Discard() {
	if w == nil || w.file == nil || errors.Is(w.err, errWriterClosed) {
		return
	}
	w.err = errWriterClosed
	w.file.Discard()
}
