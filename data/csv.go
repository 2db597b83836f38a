package data

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// CSVOptions say what is in a file of comma-separated values. The zero value is for numbers
// only, without a line of names.
type CSVOptions struct {
	Header  bool // the first line has the columns' names
	Comma   rune // between values; 0: a comma
	Comment rune // lines that begin with it are left out; 0: none

	// Label is the column of the class: its name, or its number from 0, or from the end where
	// that is negative ("-1" is the last). It becomes Y: Int32. Without it, and without
	// Target, there is no Y.
	Label string
	// Classes is the number of classes, at most 2^31-1: labels are whole numbers below it. With 0 they are
	// texts, and a class's number is its place among all texts, sorted: see [Table].
	Classes int
	// Target, in place of Label, is the column of a number to be predicted, which becomes Y:
	// Float32.
	Target string
	// Shape of X in one record, which has an element for each of the other columns, in
	// their order; nil: one dimension.
	Shape []int
}

// Table is a file of comma-separated values. X is Float32.
type Table struct {
	Columns []string // names of the columns in X: those of the header, else their numbers
	Classes []string // the texts that are classes, by their numbers; nil where labels are numbers

	path   string
	opt    CSVOptions
	x, y   Field
	values []float32
	labels []int32
	target []float32
	n      int
}

// CSV reads a table of numbers from a file and holds it in memory. A value that is no number,
// a label out of range, and a line with more or fewer values than the first are errors that
// name the line.
func CSV(path string, opt CSVOptions) (*Table, error) {
	f, err := sniff.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	defer f.Close()
	return ReadCSV(f, path, opt)
}

// ReadCSV is [CSV] of what is no file, or none yet. The name is for messages.
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
	t := &Table{path: path, opt: opt}
	in := bufio.NewReader(r)
	head, _ := in.Peek(sniff.Len) // an error comes again below
	if why := sniff.NotTable(head); why != "" {
		return nil, bad("no table: %s", why)
	}
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" { // as spreadsheets write it
		in.Discard(3)
	}
	lines := csv.NewReader(in)
	lines.Comment, lines.TrimLeadingSpace, lines.ReuseRecord = opt.Comment, true, true
	if opt.Comma != 0 {
		lines.Comma = opt.Comma
	}
	var names []string
	last := -1 // the column that is Y
	texts := map[string]int32{}
	for {
		line, err := lines.Read()
		if err == io.EOF {
			break
		}
		if _, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, t.fault(bad("%w", err))
		}
		if err != nil {
			return nil, err
		}
		if names == nil {
			if last, err = t.columns(line, &names); err != nil {
				return nil, err
			}
			if opt.Header {
				continue
			}
		}
		for k, text := range line {
			if err := t.add(strings.TrimSpace(text), k == last, texts); err != nil {
				at, _ := lines.FieldPos(k)
				return nil, t.fault(bad("line %d, column %q: %w", at, names[k], err))
			}
		}
		t.n++
	}
	if t.n == 0 {
		return nil, bad("no records")
	}
	if opt.Label != "" && opt.Classes == 0 {
		t.sortClasses(texts)
	}
	return t, nil
}

// fault is what is wrong with the record after those that were read.
func (t *Table) fault(err error) error { return &RecordError{t.path, t.n, err} }

// columns finds out what there is in each column of the first line.
func (t *Table) columns(line []string, names *[]string) (int, error) {
	for k, name := range line {
		if !t.opt.Header {
			name = strconv.Itoa(k)
		}
		*names = append(*names, strings.TrimSpace(name))
	}
	which, last := t.opt.Label, -1
	if t.opt.Target != "" {
		if which != "" {
			return 0, errors.New("both a label and a target")
		}
		which = t.opt.Target
	}
	if t.opt.Classes < 0 || t.opt.Classes > math.MaxInt32 {
		return 0, fmt.Errorf("%d classes", t.opt.Classes)
	}
	if which != "" {
		last = slices.Index(*names, which)
		if n, err := strconv.Atoi(which); last < 0 && err == nil {
			if n < 0 {
				n += len(line)
			}
			last = n
		}
		if last < 0 || last >= len(line) {
			return 0, bad("no column %q among %q", which, *names)
		}
	}
	for k, name := range *names {
		if k != last {
			t.Columns = append(t.Columns, name)
		}
	}
	t.x = Field{"x", millrace.Float32, slices.Clone(t.opt.Shape)}
	if t.opt.Shape == nil {
		t.x.Shape = []int{len(t.Columns)}
	}
	if err := t.x.check(0); err != nil {
		return 0, err
	}
	if len(t.Columns) == 0 || t.x.elems() != len(t.Columns) {
		return 0, fmt.Errorf("%w: %d columns for a shape of %v", millrace.ErrShape, len(t.Columns), t.x.Shape)
	}
	t.y = Field{"y", millrace.Int32, nil}
	if t.opt.Target != "" {
		t.y.DType = millrace.Float32
	}
	return last, nil
}

// add takes one value.
func (t *Table) add(text string, isY bool, texts map[string]int32) error {
	if isY && t.opt.Label != "" {
		if t.opt.Classes == 0 {
			id, ok := texts[text]
			if !ok {
				id = int32(len(texts))
				texts[strings.Clone(text)] = id
			}
			t.labels = append(t.labels, id)
			return nil
		}
		l, err := strconv.ParseFloat(text, 64) // some programs write 3 as 3.0
		if err != nil || l != math.Trunc(l) {
			return fmt.Errorf("%q is no class's number", text)
		}
		if l < 0 || l >= float64(t.opt.Classes) {
			return fmt.Errorf("label %s of %d classes", text, t.opt.Classes)
		}
		t.labels = append(t.labels, int32(l))
		return nil
	}
	v, err := strconv.ParseFloat(text, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is out of range", text)
	case err != nil && t.n == 0 && !t.opt.Header:
		return fmt.Errorf("%q is no number; say Header where the first line has names", text)
	case err != nil:
		return fmt.Errorf("%q is no number", text)
	case isY:
		t.target = append(t.target, float32(v))
	default:
		t.values = append(t.values, float32(v))
	}
	return nil
}

// sortClasses numbers the classes by their texts rather than by their first appearance.
func (t *Table) sortClasses(texts map[string]int32) {
	t.Classes = make([]string, 0, len(texts))
	for text := range texts {
		t.Classes = append(t.Classes, text)
	}
	slices.Sort(t.Classes)
	place := make([]int32, len(texts))
	for k, text := range t.Classes {
		place[texts[text]] = int32(k)
	}
	for i, l := range t.labels {
		t.labels[i] = place[l]
	}
}

// Len is the number of lines with values.
func (t *Table) Len() int { return t.n }

// Fields are X, and Y where there is a label or a target.
func (t *Table) Fields() []Field {
	if t.labels == nil && t.target == nil {
		return []Field{t.x}
	}
	return []Field{t.x, t.y}
}

// Read gives a line's values.
func (t *Table) Read(i int, dst []any) error {
	size := len(t.Columns)
	copy(dst[0].([]float32), t.values[i*size:(i+1)*size])
	switch {
	case t.labels != nil:
		dst[1].([]int32)[0] = t.labels[i]
	case t.target != nil:
		dst[1].([]float32)[0] = t.target[i]
	}
	return nil
}
