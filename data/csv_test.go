package data_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
)

func TestCSV(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		opt    data.CSVOptions
		fields string
		second string // the second record
		more   string
	}{
		"numbers": {"1,2,3\n4,5.5,-6e3\n", data.CSVOptions{}, "[x float32[3]]", "4 5.5 -6000", "[0 1 2] []"},
		"header, comments, spaces, quotes, no last line end": {
			"\ufeff# made today\n a , \"b\",c\n# more\n1,2,3\n 4 , \"5\",6", data.CSVOptions{Header: true, Comment: '#'},
			"[x float32[3]]", "4 5 6", "[a b c] []"},
		"label by name": {"y,a,b\n0,2,3\n2.0,5,6\n", data.CSVOptions{Header: true, Label: "y", Classes: 3}, "[x float32[2] y int32[]]", "5 6] [2", "[a b] []"},
		"last label":    {"2;3;0\n5;6;1\n", data.CSVOptions{Comma: ';', Label: "-1", Classes: 2}, "[x float32[2] y int32[]]", "5 6] [1", "[0 1] []"},
		"second label":  {"2,0,3\n5,1,6\n", data.CSVOptions{Label: "1", Classes: 2}, "[x float32[2] y int32[]]", "5 6] [1", "[0 2] []"},
		"texts":         {"1,wolf\n2,cat\n3,dog\n4,cat\n", data.CSVOptions{Label: "1"}, "[x float32[1] y int32[]]", "2] [0", "[0] [cat dog wolf]"},
		"target":        {"1,2,0.5\n3,4,0.25\n", data.CSVOptions{Target: "-1"}, "[x float32[2] y float32[]]", "3 4] [0.25", "[0 1] []"},
		"shape":         {"1,2,3,4,9\n5,6,7,8,9\n", data.CSVOptions{Label: "-1", Classes: 10, Shape: []int{1, 2, 2}}, "[x float32[1 2 2] y int32[]]", "5 6 7 8] [9", "[0 1 2 3] []"},
		"one column":    {"1\n2\n", data.CSVOptions{Shape: []int{}}, "[x float32[]]", "2", "[0] []"},
	} {
		s, err := data.CSV(write(t, "x.csv", []byte(c.text)), c.opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(s.Fields()); got != c.fields {
			t.Errorf("%s: fields %s, want %s", name, got, c.fields)
		}
		if got := record(t, s, 1); got != c.second {
			t.Errorf("%s: record 1 is %s, want %s", name, got, c.second)
		}
		if got := fmt.Sprint(s.Columns, s.Classes); got != c.more {
			t.Errorf("%s: columns and classes %s, want %s", name, got, c.more)
		}
	}
}

func TestBadCSV(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		opt    data.CSVOptions
		record int // -1: the error names none
		want   string
	}{
		"empty":          {"", data.CSVOptions{}, -1, "no records"},
		"comments only":  {"# a\n\n", data.CSVOptions{Comment: '#'}, -1, "no records"},
		"header only":    {"a,b\n", data.CSVOptions{Header: true}, -1, "no records"},
		"no number":      {"1,2\n3,x\n", data.CSVOptions{}, 1, `line 2, column "1": "x" is not a number`},
		"missing value":  {"a,b\n1,2\n3,\n", data.CSVOptions{Header: true}, 1, `line 3, column "b": "": the value is missing`},
		"header unsaid":  {"a,b\n1,2\n", data.CSVOptions{}, 0, "Header"},
		"too large":      {"1,2\n3,1e39\n", data.CSVOptions{}, 1, "out of range"},
		"long line":      {"1,2\n3,4,5\n", data.CSVOptions{}, 1, "line 2"},
		"short line":     {"1,2\n3\n", data.CSVOptions{}, 1, "line 2"},
		"quote":          {"1,2\n\"3,4\n", data.CSVOptions{}, 1, `"`},
		"label":          {"1,2\n3,10\n", data.CSVOptions{Label: "-1", Classes: 10}, 1, "label 10 is not one of 10 classes"},
		"negative label": {"1,2\n3,-1\n", data.CSVOptions{Label: "-1", Classes: 10}, 1, "label -1 is not one of 10 classes"},
		"half a label":   {"1,2\n3,0.5\n", data.CSVOptions{Label: "-1", Classes: 10}, 1, `"0.5" is not the number of a class`},
		"NaN label":      {"1,2\n3,NaN\n", data.CSVOptions{Label: "-1", Classes: 10}, 1, `"NaN" is not the number of a class`},
		"infinite label": {"1,2\n3,inf\n", data.CSVOptions{Label: "-1", Classes: 10}, 1, "10 classes"},
		"no column":      {"a,b\n3,4\n", data.CSVOptions{Header: true, Label: "c"}, -1, `no column "c"`},
		"no column 2":    {"1,2\n3,4\n", data.CSVOptions{Label: "2"}, -1, `no column "2"`},
		"no column -3":   {"1,2\n3,4\n", data.CSVOptions{Target: "-3"}, -1, `no column "-3"`},
		"two columns":    {"1,2\n3,4\n", data.CSVOptions{Target: "0", Label: "1"}, -1, "both"},
		"shape":          {"1,2,3\n", data.CSVOptions{Shape: []int{2, 2}}, -1, "3 columns"},
		"negative shape": {"1,2\n", data.CSVOptions{Shape: []int{-1, -2}}, -1, "shape"},
		"label only":     {"1\n", data.CSVOptions{Label: "0"}, -1, "0 columns"},
		"classes":        {"1,2\n", data.CSVOptions{Label: "0", Classes: -1}, -1, "-1 classes"},
		"comma":          {"1,2\n", data.CSVOptions{Comma: '\n'}, -1, "delimiter"},
	} {
		path := write(t, "x.csv", []byte(c.text))
		s, err := data.CSV(path, c.opt)
		if _, of := data.ReadCSV(strings.NewReader(c.text), path, c.opt); fmt.Sprint(of) != fmt.Sprint(err) {
			t.Errorf("%s: %v from a reader, %v from a file", name, of, err)
		}
		if s != nil || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		re, ok := errors.AsType[*data.RecordError](err)
		if ok != (c.record >= 0) || ok && (re.Record != c.record || re.File != path || !errors.Is(err, data.ErrFormat)) {
			t.Errorf("%s: record %+v, want %d", name, re, c.record)
		}
	}
	if _, err := data.CSV("none.csv", data.CSVOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestDigits reads the digits as a training program does.
func TestDigits(t *testing.T) {
	digits, err := data.CSV("testdata/digits.csv", data.CSVOptions{Comment: '#', Label: "-1", Classes: 10, Shape: []int{1, 8, 8}})
	if err != nil {
		t.Fatal(err)
	}
	train, held, err := data.Split(digits, 0.8, 1)
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != 240 || held.Len() != 60 {
		t.Errorf("%d and %d records", train.Len(), held.Len())
	}
	for i, want := range map[int]string{0: "0", 1: "1", 299: "7"} {
		if got := record(t, digits, i); !strings.HasSuffix(got, "["+want) {
			t.Errorf("digit %d: %s, want %s", i, got, want)
		}
	}
	l := loader(t, train, data.Options{Batch: 32, Shuffle: true, Seed: 1, DropLast: true})
	classes := make([]int, 10)
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.X.Shape(), []int{32, 1, 8, 8}) || b.X.DType() != millrace.Float32 || b.Y.DType() != millrace.Int32 {
			t.Errorf("a batch of %v%v and %v", b.X.DType(), b.X.Shape(), b.Y.DType())
		}
		for _, y := range values[int32](t, b.Y) {
			classes[y]++
		}
		if most := values[float32](t, b.X.Max()); most[0] != 16 {
			t.Errorf("the brightest pixel is %v", most)
		}
		b.Release()
	}
	if slices.Min(classes) < 5 {
		t.Errorf("classes %v", classes)
	}
}
