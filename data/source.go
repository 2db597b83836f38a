package data

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
)

// Source is a set of records of one kind, numbered from 0: a file, a folder, slices in memory, or a
// combination of other sources.
type Source interface {
	// Len is the number of records. It is constant.
	Len() int
	// Fields describes the parts of each record. The list is constant.
	Fields() []Field
	// Read decodes record i, which is in [0, Len). dst[k] is a slice of field k's Go type
	// ([]float32 for Float32) with the elements of one record, in row-major order. Read must write
	// all elements; before, they hold those of another record. Several goroutines call Read at
	// once, in no fixed order: the result must depend on i alone.
	Read(i int, dst []any) error
}

// Field is a part of every record.
type Field struct {
	Name  string         // for messages
	DType millrace.DType // dtype of the elements
	Shape []int          // shape in one record; in a batch it has one dimension more, in front
}

// ErrFormat says that a file is damaged, truncated, of another format, or has an invalid value,
// such as a label out of range. Test for it with errors.Is.
var ErrFormat = errors.New("malformed")

// RecordError is an error of one record. Test for it with errors.As.
type RecordError struct {
	File   string // empty for sources without files
	Record int    // index from 0 in that file, among a folder's images, or in a source without files
	Err    error
}

// Error names the file and the record.
func (e *RecordError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("record %d: %v", e.Record, e.Err)
	}
	return fmt.Sprintf("%s: record %d: %v", e.File, e.Record, e.Err)
}

// Unwrap returns Err.
func (e *RecordError) Unwrap() error { return e.Err }

// inRecord adds the record's index to err, unless err has one.
func inRecord(i int, err error) error {
	if _, ok := errors.AsType[*RecordError](err); ok {
		return err
	}
	return &RecordError{Record: i, Err: err}
}

// bad wraps ErrFormat with the reason.
func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrFormat, fmt.Errorf(format, args...))
}

// broken marks a decoding error as ErrFormat; errors of the file system stay as they are.
func broken(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return bad("%w", err)
}

// maxRank limits a field's rank: a batch has one dimension more, and tensors have at most 8.
const maxRank = 7

// elems is the number of elements of a field in one record.
func (f Field) elems() int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// check returns the reason why there can be no batches of n records with such a field.
func (f Field) check(n int) error {
	if !f.DType.Tensor() {
		return fmt.Errorf("field %q: %w: %v is not a tensor dtype", f.Name, millrace.ErrDType, f.DType)
	}
	if len(f.Shape) > maxRank {
		return fmt.Errorf("field %q: %w: %v has more than %d dimensions", f.Name, millrace.ErrShape, f.Shape, maxRank)
	}
	size := max(n, 1) * f.DType.Size()
	for _, d := range f.Shape {
		if d < 0 || d > 0 && size > math.MaxInt/d {
			return fmt.Errorf("field %q: %w: %d records of %v are too large", f.Name, millrace.ErrShape, n, f.Shape)
		}
		size *= d
	}
	return nil
}

func checkFields(fields []Field, n int) error {
	if len(fields) == 0 {
		return fmt.Errorf("%w: the records have no fields", millrace.ErrShape)
	}
	for _, f := range fields {
		if err := f.check(n); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether records with either field can be in one batch.
func (f Field) same(g Field) bool { return f.DType == g.DType && slices.Equal(f.Shape, g.Shape) }

// String is the field's name, dtype and shape, such as "image uint8[3 32 32]".
func (f Field) String() string { return fmt.Sprintf("%s %v%v", f.Name, f.DType, f.Shape) }
