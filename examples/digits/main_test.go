package main

import (
	"context"
	"testing"
)

func TestRun(t *testing.T) {
	part, err := run(context.Background(), "testdata/digits.csv", 3, 32)
	if err != nil {
		t.Fatal(err)
	}
	if part < 0.7 { // of three hundred digits, three times over
		t.Errorf("%.0f %% right", 100*part)
	}
}
