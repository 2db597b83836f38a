package main

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/examples/models"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func TestRun(t *testing.T) {
	if err := run(context.Background(), "testdata/names.txt", 16, 8, 12, false); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), "testdata/names.txt", 16, 8, 3, true); err != nil {
		t.Fatal(err)
	}
}

func TestNoNames(t *testing.T) {
	if err := run(context.Background(), "testdata/none.txt", 16, 8, 3, true); err == nil || !strings.Contains(err.Error(), "none.txt") {
		t.Fatal(err)
	}
}

// The parameters are those that BurTorch's authors count.
func TestSizes(t *testing.T) {
	for hidden, want := range map[int]int{4: 5963, 64: 69083, 1024: 1079003} {
		n := models.Count(models.NewMakeMore(27, block, embed, hidden))
		if n != want {
			t.Errorf("hidden %d: %d parameters, want %d", hidden, n, want)
		}
	}
}

// Called without a file, from wherever, it has something to learn.
func TestAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	was, args := flag.CommandLine, os.Args
	defer func() { flag.CommandLine, os.Args = was, args }()
	flag.CommandLine, os.Args = flag.NewFlagSet("makemore", flag.ContinueOnError), []string{"makemore", "-hidden", "8", "-steps", "2"}
	main()
}
