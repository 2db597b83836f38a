package data

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
)

// Column is one field of records in memory: see [ColumnOf].
type Column struct {
	field Field
	data  any // a slice of the dtype's Go type
	n     int // number of records
	err   error
}

// ColumnOf makes a column from elements in row-major order. shape is that of one record; without a
// shape each element is a record. The slice is not copied and must not change while the column is
// in use. A length that is not a multiple of a record's elements is an error of [FromColumns].
func ColumnOf[T millrace.Element](elems []T, shape ...int) Column {
	var c Column
	for dt, h := range hostTypes {
		if _, ok := h.make(0).([]T); ok {
			c.field = Field{DType: dt, Shape: slices.Clone(shape)}
		}
	}
	c.data = elems
	if c.err = c.field.check(0); c.err != nil {
		return c
	}
	size := c.field.elems()
	if size == 0 || len(elems)%size != 0 {
		c.err = fmt.Errorf("%w: %d elements are not a whole number of records of %v", millrace.ErrShape, len(elems), shape)
		return c
	}
	c.n = len(elems) / size
	return c
}

// columns are a source in memory.
type columns struct {
	fields []Field
	cols   []Column
	n      int
}

// FromColumns makes a source of columns, such as inputs and labels. Columns with different numbers
// of records, a Column that [ColumnOf] did not make, and no columns are millrace.ErrShape. The
// elements are not copied.
func FromColumns(cols ...Column) (Source, error) {
	s := &columns{cols: slices.Clone(cols)}
	for k := range s.cols {
		c := &s.cols[k]
		if c.data == nil && c.err == nil {
			c.err = fmt.Errorf("%w: it was not made by ColumnOf", millrace.ErrShape)
		}
		if c.err != nil {
			return nil, fmt.Errorf("data: column %d: %w", k, c.err)
		}
		if c.n != s.cols[0].n {
			return nil, fmt.Errorf("data: %w: column 0 has %d records, column %d has %d", millrace.ErrShape, s.cols[0].n, k, c.n)
		}
		c.field.Name = usualName(k)
		s.fields = append(s.fields, c.field)
		s.n = c.n
	}
	if err := checkFields(s.fields, 0); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return s, nil
}

// usualName is the default name of field k.
func usualName(k int) string {
	if k < 2 {
		return []string{"x", "y"}[k]
	}
	return fmt.Sprint("field", k)
}

// FromTensors makes a source of tensors with records along their first dimension. It computes the
// tensors and copies their elements to Go's memory. It returns an error that a tensor carries or
// that computing it finds. A 0-d tensor is millrace.ErrShape, and so are tensors with different
// numbers of records.
func FromTensors(ts ...*millrace.Tensor) (Source, error) {
	cols := make([]Column, len(ts))
	for k, t := range ts {
		if err := t.Eval(); err != nil {
			return nil, fmt.Errorf("data: tensor %d: %w", k, err)
		}
		shape := t.Shape()
		if len(shape) == 0 {
			return nil, fmt.Errorf("data: tensor %d: %w: a tensor without dimensions has no records", k, millrace.ErrShape)
		}
		elems, err := hostTypes[t.DType()].values(t)
		if err != nil {
			return nil, fmt.Errorf("data: tensor %d: %w", k, err)
		}
		cols[k] = Column{field: Field{DType: t.DType(), Shape: shape[1:]}, data: elems, n: shape[0]}
	}
	return FromColumns(cols...)
}

func (s *columns) Len() int        { return s.n }
func (s *columns) Fields() []Field { return s.fields }

func (s *columns) Read(i int, dst []any) error {
	for k, f := range s.fields {
		hostTypes[f.DType].copy(dst[k], s.cols[k].data, i*f.elems())
	}
	return nil
}
