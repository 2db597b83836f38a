package main

import (
	"context"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-go/millrace/examples/models"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func TestRun(t *testing.T) {
	o := options{model: "small", dtype: "float32", batch: 4, steps: 40, write: 5, lr: 3e-3, seed: 1}
	recorded, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !(recorded < 4) {
		t.Errorf("the loss is %v after %d steps", recorded, o.steps)
	}
	o.eager, o.save = true, filepath.Join(t.TempDir(), "gpt.safetensors")
	eager, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if eager != recorded {
		t.Errorf("%v when called, %v when replayed", eager, recorded)
	}
}

// Half precision learns what single precision does.
func TestHalf(t *testing.T) {
	o := options{model: "small", dtype: "float32", batch: 4, steps: 40, lr: 3e-3, seed: 1}
	want, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, dt := range []string{"bfloat16", "float16"} {
		o.dtype = dt
		got, err := run(context.Background(), o)
		if err != nil {
			t.Fatal(dt, err)
		}
		if math.Abs(got-want) > 0.02*want {
			t.Errorf("%s: %v, float32 %v", dt, got, want)
		}
	}
}

func TestBad(t *testing.T) {
	for _, o := range []options{
		{text: "testdata/none.txt", model: "small", dtype: "float32"},
		{model: "large", dtype: "float32"},
		{model: "small", dtype: "int8"},
	} {
		if _, err := run(context.Background(), o); err == nil {
			t.Errorf("%+v works", o)
		}
	}
}

func TestSizes(t *testing.T) {
	if n := models.Count(models.NewGPT(models.SmallGPT(65))); n != 46289 {
		t.Errorf("%d parameters", n)
	}
	if n := models.Count(models.NewGPT(models.NanoGPT(65))); n != 10745088 {
		t.Errorf("%d parameters", n)
	}
}

// Called without a file, from wherever, it has something to learn.
func TestAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	was, args := flag.CommandLine, os.Args
	defer func() { flag.CommandLine, os.Args = was, args }()
	flag.CommandLine, os.Args = flag.NewFlagSet("gpt", flag.ContinueOnError), []string{"gpt", "-steps", "2", "-write", "3"}
	main()
}
