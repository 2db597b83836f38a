package main

import (
	"context"
	"math"
	"testing"

	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// By hand and from package nn the recurrence gives the same numbers.
func TestRun(t *testing.T) {
	o := options{symbols: 20, length: 10, batch: 6, steps: 6, embed: 8, hidden: 12}
	want, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.byHand = true
	got, err := run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Fatalf("step %d: %v by hand, %v", i, got[i], want[i])
		}
	}
}
