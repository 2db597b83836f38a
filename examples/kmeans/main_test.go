package main

import (
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// TestRun: each place that points were drawn around has a centre beside it.
func TestRun(t *testing.T) {
	const groups = 4
	centres, rounds, err := run(2000, groups)
	if err != nil {
		t.Fatal(err)
	}
	places := millrace.Uniform(millrace.Float32, millrace.NewGenerator(1).Seed(), groups, 2).MulScalar(20)
	off, err := millrace.Values[float32](distances(places, centres).Min(1))
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range off {
		if d > 0.01 {
			t.Errorf("place %d is %.3f away (squared) from the nearest centre", i, d)
		}
	}
	if rounds < 1 || rounds > 50 {
		t.Errorf("%d rounds", rounds)
	}
}
