package data_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/data"
)

// houses has missing values, categories, dates and an unused column.
const houses = `id,area,kind,built,price
a1,50,flat,1970-01-02,10
a2,,house,1970-01-11,20
a3,70,"flat",NaN,30
a4,90,,1969-12-31,40
a5,30,hut,1970-01-01T,50
`

// table reads a text with a header.
func table(text string, opt data.CSVOptions) (*data.Table, error) {
	opt.Header = true
	return data.ReadCSV(strings.NewReader(text), "houses.csv", opt)
}

func columns(which ...string) data.CSVOptions { return data.CSVOptions{Columns: which} }

func TestCSVColumns(t *testing.T) {
	for name, c := range map[string]struct {
		opt  data.CSVOptions
		want string // columns, then records
	}{
		"one by name":      {columns("price"), "[price] 10, 20, 30, 40, 50"},
		"by number":        {columns("4"), "[price] 10, 20, 30, 40, 50"},
		"from the end":     {columns("-1"), "[price] 10, 20, 30, 40, 50"},
		"target left over": {data.CSVOptions{Columns: []string{"price"}, Target: "-1"}, `column "price" is in both X and Y`},
		"twice":            {columns("price", "4"), `column "4" is named twice`},
		"none such":        {columns("cost"), `there is no column "cost" in ["id" "area" "kind" "built" "price"]`},
		"5":                {columns("5"), `no column "5"`},
		"empty":            {data.CSVOptions{Columns: []string{}}, "0 columns"},
		"means":            {data.CSVOptions{Columns: []string{"price", "area"}, Missing: data.MissingMean}, "[price area] 10 50, 20 60, 30 70, 40 90, 50 30"},
		"NaN":              {data.CSVOptions{Columns: []string{"area"}, Missing: data.MissingNaN}, "[area] 50, NaN, 70, 90, 30"},
		"skip":             {data.CSVOptions{Columns: []string{"area", "price"}, Missing: data.MissingSkip}, "[area price] 50 10, 70 30, 90 40, 30 50"},
		"category": {data.CSVOptions{Columns: []string{"kind", "price"}, Categories: []string{"kind"}, Missing: data.MissingSkip},
			"[kind=flat kind=house kind=hut price] 1 0 0 10, 0 1 0 20, 1 0 0 30, 0 0 1 50"},
		"category NaN": {data.CSVOptions{Columns: []string{"kind"}, Categories: []string{"2"}, Missing: data.MissingNaN},
			"[kind=flat kind=house kind=hut] 1 0 0, 0 1 0, 1 0 0, NaN NaN NaN, 0 0 1"},
		"category shares": {data.CSVOptions{Columns: []string{"kind"}, Categories: []string{"kind"}, Missing: data.MissingMean},
			"[kind=flat kind=house kind=hut] 1 0 0, 0 1 0, 1 0 0, 0.5 0.25 0.25, 0 0 1"},
		"missing":       {columns("area"), `line 3, column "area": "": the value is missing`},
		"no date":       {data.CSVOptions{Columns: []string{"built"}, Dates: map[string]string{"built": "2006-01-02"}, Missing: data.MissingSkip}, `line 6, column "built": "1970-01-01T" is not a date`},
		"not of X":      {data.CSVOptions{Columns: []string{"area"}, Categories: []string{"kind"}}, `Categories: column "kind" is not in X`},
		"both kinds":    {data.CSVOptions{Categories: []string{"kind"}, Dates: map[string]string{"kind": "2006"}}, "in both Categories and Dates"},
		"no layout":     {data.CSVOptions{Dates: map[string]string{"kind": ""}}, "no layout"},
		"texts":         {columns("kind"), `"flat" is not a number; CSVOptions has Categories`},
		"shape":         {data.CSVOptions{Columns: []string{"kind", "price"}, Categories: []string{"kind"}, Missing: data.MissingSkip, Shape: []int{2}}, "4 columns were given for records of [2]"},
		"missing label": {data.CSVOptions{Columns: []string{"price"}, Label: "kind"}, `line 5, column "kind": "": the value of Y is missing`},
		"mode":          {data.CSVOptions{Missing: 9}, "Missing is 9"},
	} {
		s, err := table(houses, c.opt)
		got := ""
		if err != nil {
			got = err.Error()
			if !strings.Contains(got, "houses.csv") {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			var records []string
			for i := range s.Len() {
				records = append(records, record(t, s, i))
			}
			got = fmt.Sprint(s.Columns) + " " + strings.Join(records, ", ")
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestCSVDates: days since 1970, with fractions.
func TestCSVDates(t *testing.T) {
	s, err := data.ReadCSV(strings.NewReader("1970-01-02 00:00\n1969-12-31 12:00\n2026-11-27 06:00\n"), "x", data.CSVOptions{Dates: map[string]string{"0": "2006-01-02 15:04"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1", "-0.5", "20784.25"} {
		if got := record(t, s, i); got != want {
			t.Errorf("line %d: %s, want %s", i+1, got, want)
		}
	}
}

// TestCSVSkipped: skipped lines are counted, and line numbers in errors stay right.
func TestCSVSkipped(t *testing.T) {
	o := data.CSVOptions{Columns: []string{"area"}, Label: "kind", Missing: data.MissingSkip}
	s, err := table(houses, o)
	if err != nil || s.Len() != 3 || s.Skipped != 2 || fmt.Sprint(s.Classes) != "[flat hut]" {
		t.Fatalf("%v, %v", s, err)
	}
	_, err = table(houses+"a6,x,flat,,\n", o)
	if re, ok := errors.AsType[*data.RecordError](err); !ok || re.Record != 5 || !strings.Contains(err.Error(), `line 7, column "area": "x" is not a number`) {
		t.Error(err)
	}
	if _, err := table("a\n\"\"\nNaN\n", data.CSVOptions{Missing: data.MissingSkip}); err == nil || !strings.Contains(err.Error(), "missing in each of its 2 lines") {
		t.Error(err)
	}
	if _, err := table("a\n\"\"\nNaN\n", data.CSVOptions{Missing: data.MissingMean}); err == nil || !strings.Contains(err.Error(), "so it has no mean") {
		t.Error(err)
	}
}

// TestCSVLike: a test table has the columns, means and classes of the training table.
func TestCSVLike(t *testing.T) {
	o := data.CSVOptions{Columns: []string{"area", "kind"}, Categories: []string{"kind"}, Missing: data.MissingMean, Label: "id"}
	train, err := table(houses, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Like = train
	test, err := table("id,area,kind\na4,,hut\na1,1,\n", o)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"60 0 0 1] [3", "1 0.5 0.25 0.25] [0"} {
		if got := record(t, test, i); got != want {
			t.Errorf("line %d: %s, want %s", i, got, want)
		}
	}
	for text, want := range map[string]string{
		"id,area,kind\na1,1,tent\n": `column "kind": "tent" is not one of the 3 texts`, "id,area,kind\na9,1,hut\n": `column "id": "a9" is not one of the 5 texts`,
	} {
		if _, err := table(text, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	o.Columns, o.Categories = []string{"area"}, nil
	if _, err := table("id,area\na1,1\n", o); err == nil || !strings.Contains(err.Error(), "its columns are") {
		t.Error(err)
	}
}

// TestCSVNumbers: valid and invalid numbers.
func TestCSVNumbers(t *testing.T) {
	for text, want := range map[string]float32{
		"1": 1, "-1.5": -1.5, "+2": 2, ".5": 0.5, "5.": 5, "1e3": 1000, "1E-2": 0.01, " 7 ": 7, "0007": 7, "-0": 0, "inf": float32(math.Inf(1)), "-Infinity": float32(math.Inf(-1)), "\"8\"": 8,
	} {
		s, err := data.ReadCSV(strings.NewReader(text+"\n"), "x", data.CSVOptions{})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		dst := room(s)
		if err := s.Read(0, dst); err != nil || dst[0].([]float32)[0] != want {
			t.Errorf("%q: %v, %v", text, dst, err)
		}
	}
	for _, text := range []string{"1_000", "0x10", "0x1p4", "\"1,000\"", "1 000", "1e", "e5", ".", "-", "--1", "+-1", "1.2.3", "1e5.", "१", "−1", "1f", "1e+", "0b1", "infin", "$1", "1%", "true"} {
		for _, o := range []data.CSVOptions{{Header: true}, {Header: true, Target: "0"}, {Header: true, Label: "0", Classes: 1 << 20}} {
			s, err := data.ReadCSV(strings.NewReader("a,b\n"+text+",1\n"), "x", o)
			if err == nil || !strings.Contains(err.Error(), `line 2, column "a"`) || !errors.Is(err, data.ErrFormat) {
				t.Errorf("%q: %v, %v", text, s, err)
			}
		}
	}
	for text, want := range map[string]string{"1_000": "digits are not grouped", "NA": "CSVOptions.NA", "n/a": "CSVOptions.NA", "red": "Categories", "nan": "missing"} {
		if _, err := data.ReadCSV(strings.NewReader("a\n"+text+"\n"), "x", data.CSVOptions{Header: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	s, err := data.ReadCSV(strings.NewReader("NA,1\n?,3\n4,5\n"), "x", data.CSVOptions{NA: []string{"NA", "?"}, Missing: data.MissingMean})
	if err != nil || record(t, s, 0) != "4 1" {
		t.Error(s, err)
	}
}

// TestCSVNames: a name of two columns is ambiguous.
func TestCSVNames(t *testing.T) {
	text := "a,b,a\n1,2,3\n"
	if _, err := table(text, columns("a")); err == nil || !strings.Contains(err.Error(), "several columns have the name") {
		t.Error(err)
	}
	if s, err := table(text, columns("2", "b")); err != nil || record(t, s, 0) != "3 2" {
		t.Error(s, err)
	}
	if _, err := table("a,b\n1,2\n3\n", data.CSVOptions{}); err == nil || !strings.Contains(err.Error(), "line 3 has 1 values, the first line has 2") {
		t.Error(err)
	}
}
