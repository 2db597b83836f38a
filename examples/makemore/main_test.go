package main

import (
	"context"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
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
		n := 0
		for _, p := range nn.Params(models.NewMakeMore(27, block, embed, hidden)) {
			n += p.Tensor().Len()
		}
		if n != want {
			t.Errorf("hidden %d: %d parameters, want %d", hidden, n, want)
		}
	}
}
