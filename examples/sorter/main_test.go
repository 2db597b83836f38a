package main

import (
	"testing"

	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// small learns to sort five digits in a second or so.
var small = options{length: 5, batch: 64, steps: 200, width: 32, heads: 2, layers: 2, tested: 500, rate: 5e-3, seed: 1}

// TestRun: sequences that it has not seen are sorted, every digit of them.
func TestRun(t *testing.T) {
	right, err := run(t.Context(), small)
	if err != nil {
		t.Fatal(err)
	}
	if right < 0.95 {
		t.Errorf("%.1f %% sorted", 100*right)
	}
}

// Without training next to none are sorted: what TestRun finds was learned.
func TestUntrained(t *testing.T) {
	o := small
	o.steps = 1
	right, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if right > 0.05 {
		t.Errorf("%.1f %% sorted", 100*right)
	}
}

func TestErrors(t *testing.T) {
	for _, change := range []func(*options){
		func(o *options) { o.length = 0 },
		func(o *options) { o.batch = -1 },
		func(o *options) { o.steps = 0 },
		func(o *options) { o.heads = 5 },
	} {
		o := small
		change(&o)
		if _, err := run(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
