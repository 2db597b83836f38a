package data_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/data"
)

// A table with a gap, texts and dates: each becomes numbers.
func ExampleReadCSV() {
	const file = `joined,plan,visits,left
2026-01-02,basic,3,no
2026-01-05,pro,,yes
2026-02-01,basic,8,no
`
	table, err := data.ReadCSV(strings.NewReader(file), "customers", data.CSVOptions{
		Header:     true,
		Columns:    []string{"joined", "plan", "visits"},
		Dates:      map[string]string{"joined": "2006-01-02"},
		Categories: []string{"plan"},
		Missing:    data.MissingMean,
		Label:      "left",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Columns, table.Classes)
	loader, err := data.NewLoader(table, data.Options{Batch: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range loader.Batches(context.Background()) {
		fmt.Printf("%g\n%v %v\n", b.X, b.Y, err)
	}
	// Output:
	// [joined plan=basic plan=pro visits] [no yes]
	// [[20455     1     0     3]
	//  [20458     0     1   5.5]
	//  [20485     1     0     8]]
	// [0 1 0] <nil>
}

// A value that is no number is an error that names the line and the column.
func ExampleCSV() {
	path := "testdata/digits.csv"
	digits, err := data.CSV(path, data.CSVOptions{Comment: '#', Label: "-1", Classes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(digits.Len(), "digits of", len(digits.Columns), "pixels")
	_, err = data.CSV(path, data.CSVOptions{Comment: '#', Label: "-1", Classes: 5})
	fmt.Println(err)
	// Output:
	// 300 digits of 64 pixels
	// data: testdata/digits.csv: record 5: malformed: line 7, column "64": label 5 is not one of 5 classes
}

// Records that are in memory become a source.
func ExampleFromColumns() {
	points := data.ColumnOf([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 2) // records of two numbers
	classes := data.ColumnOf([]int32{0, 1, 1, 0})
	source, err := data.FromColumns(points, classes)
	if err != nil {
		fmt.Println(err)
		return
	}
	loader, err := data.NewLoader(source, data.Options{Batch: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range loader.Batches(context.Background()) {
		fmt.Println(b.X.Shape(), b.Y, err)
	}
	// Output:
	// [3 2] [0 1 1] <nil>
	// [1 2] [0] <nil>
}

// A run that stops within an epoch goes on with the batch that would have been next.
func ExampleLoader_State() {
	source, err := data.FromColumns(data.ColumnOf([]int32{0, 1, 2, 3, 4, 5}))
	if err != nil {
		fmt.Println(err)
		return
	}
	opt := data.Options{Batch: 2, Shuffle: true, Seed: 1}
	first, err := data.NewLoader(source, opt)
	if err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range first.Batches(context.Background()) {
		fmt.Println("before", b.X, err)
		break
	}
	later, err := data.NewLoader(source, opt) // in another process, say
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := later.Restore(first.State()); err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range later.Batches(context.Background()) {
		fmt.Println("after", b.X, err)
	}
	// Output:
	// before [5 1] <nil>
	// after [4 2] <nil>
	// after [0 3] <nil>
}
