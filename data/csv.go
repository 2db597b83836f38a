package data

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// CSVOptions describe a file of comma-separated values. The zero value is for numbers only, without
// a line of names. A column is named by its name in the header, or by its number: from 0, or from
// the end if negative ("-1" is the last).
type CSVOptions struct {
	Header  bool // the first line has the columns' names
	Comma   rune // between values; 0: a comma
	Comment rune // lines that begin with it are ignored; 0: none

	// Columns are the columns of X, in this order; nil: all but that of Label or Target. Other
	// columns are ignored.
	Columns []string
	// Label is the column of the class, which becomes Y: Int32. Without Label and Target there is
	// no Y.
	Label string
	// Classes is the number of classes, at most 2^31-1: labels are whole numbers below it. With 0
	// labels are texts, and a class's number is its index among all texts, sorted: see [Table].
	Classes int
	// Target is the column of a number to be predicted, which becomes Y: Float32. It excludes
	// Label.
	Target string

	// Missing says how to treat missing values: empty ones, NaN, and the texts in NA, such as "NA"
	// or "?". By default they are errors.
	Missing Missing
	NA      []string
	// Categories are columns of texts. Each becomes one column of 0 and 1 for each of its texts, at
	// most 65,536, in sorted order. Their names consist of both: "colour=red".
	Categories []string
	// Dates maps columns of dates to their layouts, as in time.Parse. They become days since the
	// beginning of 1970, with fractions; as Float32 they are exact to some minutes.
	Dates map[string]string
	// Like is a table that was read before, usually that of the training data. Its categories,
	// classes and means are used; other texts are errors.
	Like *Table

	// Shape is the shape of X in one record, with one element for each column, in their order; nil:
	// one dimension.
	Shape []int
}

// Missing says how to treat missing values.
type Missing uint8

const (
	MissingError Missing = iota // reading ends with an error
	MissingNaN                  // they become NaN
	MissingMean                 // they become the mean of the column's other values; for categories the shares of the texts
	MissingSkip                 // the line is skipped
)

// Table is a file of comma-separated values as a [Source]. X is Float32.
type Table struct {
	Columns []string            // names of the columns of X: those of the header, else numbers
	Classes []string            // the texts of classes, by class number; nil if labels are numbers
	Texts   map[string][]string // the texts of each column of Categories, in the order of their columns in X
	Skipped int                 // number of lines that MissingSkip skipped

	path   string
	opt    CSVOptions
	cols   []column
	y      int // index of Y among a line's values; -1: none
	x, out Field
	values []float32 // by line, then by cols; for a category the number of the text; NaN: missing
	labels []int32
	target []float32
	means  []float32 // of the columns of X, if MissingMean needs them
	n      int
}

// CSV reads a table from a file and holds it in memory. Invalid numbers, labels out of range,
// missing values, and lines with more or fewer values than the first are errors that name the line
// and the column. Numbers are decimal, as 12, -0.5, 1e-3 or inf; 1_000, 0x10 and "1,000" are
// invalid.
func CSV(path string, opt CSVOptions) (*Table, error) {
	f, err := sniff.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	return ReadCSV(f, path, opt)
}

// ReadCSV is [CSV] of what r holds, with the same errors. Messages call it name.
func ReadCSV(r io.Reader, name string, opt CSVOptions) (*Table, error) {
	t, err := readCSV(r, name, opt)
	if err != nil {
		if _, ok := errors.AsType[*RecordError](err); ok {
			return nil, fmt.Errorf("data: %w", err)
		}
		return nil, fmt.Errorf("data: %s: %w", name, err)
	}
	return t, nil
}

func readCSV(r io.Reader, path string, opt CSVOptions) (*Table, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	t := &Table{path: path, opt: opt, y: -1}
	in := bufio.NewReader(r)
	head, _ := in.Peek(sniff.Len) // an error repeats below
	if why := sniff.NotTable(head); why != "" {
		return nil, bad("no table: %s", why)
	}
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" { // spreadsheets write it
		in.Discard(3)
	}
	lines := csv.NewReader(in)
	lines.Comment, lines.TrimLeadingSpace, lines.ReuseRecord = opt.Comment, true, true
	if opt.Comma != 0 {
		lines.Comma = opt.Comma
	}
	var names []string
	texts := textIDs{}
	for {
		line, err := lines.Read()
		if err == io.EOF {
			break
		}
		if errors.Is(err, csv.ErrFieldCount) && names != nil {
			at, _ := lines.FieldPos(0)
			return nil, t.fault(bad("line %d has %d values, the first line has %d", at, len(line), len(names)))
		}
		if _, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, t.fault(bad("%w", err))
		}
		if err != nil {
			return nil, err
		}
		if names == nil {
			if names, err = t.choose(line); err != nil {
				return nil, err
			}
			if opt.Header {
				continue
			}
		}
		k, err := t.line(line, texts)
		if err != nil {
			at, _ := lines.FieldPos(k)
			return nil, t.fault(bad("line %d, column %q: %w", at, names[k], err))
		}
	}
	switch {
	case t.n == 0 && t.Skipped > 0:
		return nil, bad("a value is missing in each of its %d lines", t.Skipped)
	case t.n == 0:
		return nil, bad("the table has no records")
	}
	return t, t.finish(texts)
}

// check finds options that exclude each other.
func (o *CSVOptions) check() error {
	switch {
	case o.Label != "" && o.Target != "":
		return errors.New("both a label and a target were given")
	case o.Classes < 0 || int64(o.Classes) > maxClasses:
		return fmt.Errorf("there cannot be %d classes", o.Classes)
	case o.Missing > MissingSkip:
		return fmt.Errorf("Missing is %d, which does not exist", o.Missing)
	}
	return nil
}

// fault is an error of the record after those already read.
func (t *Table) fault(err error) error { return &RecordError{t.path, t.n + t.Skipped, err} }

// Len is the number of records: lines with values that were not skipped.
func (t *Table) Len() int { return t.n }

// Fields are X, and Y if there is a label or a target.
func (t *Table) Fields() []Field {
	if t.y < 0 {
		return []Field{t.x}
	}
	return []Field{t.x, t.out}
}

// Read writes record i, a line that was not skipped, to dst: X as Float32; Y as Int32 for a label,
// as Float32 for a target. It returns no error: all lines were checked when the table was read.
func (t *Table) Read(i int, dst []any) error {
	t.record(i, dst[0].([]float32))
	switch {
	case t.y < 0:
	case t.opt.Label != "":
		dst[1].([]int32)[0] = t.labels[i]
	default:
		dst[1].([]float32)[0] = t.target[i]
	}
	return nil
}

// shaped makes the field X from its columns.
func (t *Table) shaped() error {
	t.x = Field{"x", millrace.Float32, slices.Clone(t.opt.Shape)}
	if t.opt.Shape == nil {
		t.x.Shape = []int{len(t.Columns)}
	}
	if err := t.x.check(0); err != nil {
		return err
	}
	if len(t.Columns) == 0 || t.x.elems() != len(t.Columns) {
		return fmt.Errorf("%w: %d columns were given for records of %v", millrace.ErrShape, len(t.Columns), t.x.Shape)
	}
	return nil
}

// trimmed removes spaces around a value.
func trimmed(text string) string { return strings.TrimSpace(text) }
