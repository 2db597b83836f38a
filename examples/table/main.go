// Table learns from a table with gaps, texts and dates which customers leave: a logistic
// regression on a file of comma-separated values.
//
//	go run ./examples/table -csv customers.csv
//
// Without a file it makes do with four hundred customers, invented, which are in the program.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

func main() {
	csv := flag.String("csv", "", "a file with the columns customer, joined, plan, visits, spent and left")
	epochs := flag.Int("epochs", 40, "times to go over the customers")
	flag.Parse()
	if _, err := run(context.Background(), *csv, *epochs); err != nil {
		log.Fatal(err)
	}
}

//go:embed testdata/customers.csv
var customers []byte

// options say what the columns are: the customer's number is none of them.
var options = data.CSVOptions{
	Header:     true,
	Columns:    []string{"joined", "plan", "visits", "spent"},
	Dates:      map[string]string{"joined": "2006-01-02"},
	Categories: []string{"plan"},
	Missing:    data.MissingMean,
	NA:         []string{"?"},
	Label:      "left", // no is 0, yes is 1: texts are sorted
}

// run trains on three quarters of the customers, and returns of which part of the others it
// knows whether they left.
func run(ctx context.Context, path string, epochs int) (float64, error) {
	table, err := read(path)
	if err != nil {
		return 0, err
	}
	train, held, err := data.Split(table, 0.75, 1)
	if err != nil {
		return 0, err
	}
	loader, err := data.NewLoader(train, data.Options{Batch: 50, Shuffle: true, Seed: 1})
	if err != nil {
		return 0, err
	}
	columns := len(table.Columns)
	// BatchNorm brings days, visits and money to one scale, and remembers by how much.
	model := nn.NewSequential(nn.NewBatchNorm1d(columns), nn.NewLinear(columns, len(table.Classes), nn.Seed(1)))
	opt := optim.AdamW(nn.Params(model), optim.LR(0.02))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	})
	defer step.Close()
	for range epochs {
		for b, err := range loader.Batches(ctx) {
			if err != nil {
				return 0, err
			}
			loss, err := step.Run(ctx, b.X, b.Y)
			if err != nil {
				return 0, err
			}
			loss.Release()
			b.Release()
		}
	}
	right, err := accuracy(ctx, model, held)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%d columns: %v\nclasses: %v\n%.1f %% of %d customers right\n", columns, table.Columns, table.Classes, 100*right, held.Len())
	return right, nil
}

func read(path string) (*data.Table, error) {
	if path == "" {
		return data.ReadCSV(bytes.NewReader(customers), "customers.csv", options)
	}
	return data.CSV(path, options)
}

// accuracy is of which part of the records the model knows the class.
func accuracy(ctx context.Context, model nn.Module, src data.Source) (float64, error) {
	loader, err := data.NewLoader(src, data.Options{Batch: src.Len()})
	if err != nil {
		return 0, err
	}
	for b, err := range loader.Batches(ctx) {
		if err != nil {
			return 0, err
		}
		defer b.Release()
		right, err := millrace.Item[float32](model.Forward(nn.Eval(), b.X).ArgMaxAs(millrace.Int32, -1).Eq(b.Y).Cast(millrace.Float32).Mean())
		return float64(right), err
	}
	return 0, nil
}
