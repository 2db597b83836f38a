package main

import (
	"context"
	"flag"
	"os"
	"testing"

	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func TestRun(t *testing.T) {
	part, err := run(context.Background(), "", 3, 32)
	if err != nil {
		t.Fatal(err)
	}
	if part < 0.7 { // of three hundred digits, three times over
		t.Errorf("%.0f %% right", 100*part)
	}
}

// Called without a file, from wherever, it has something to learn.
func TestAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	was, args := flag.CommandLine, os.Args
	defer func() { flag.CommandLine, os.Args = was, args }()
	flag.CommandLine, os.Args = flag.NewFlagSet("digits", flag.ContinueOnError), []string{"digits", "-epochs", "1"}
	main()
}
