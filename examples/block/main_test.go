package main

import (
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// TestCausal: what tokens give does not depend on those behind them, to the last bit, and
// depends on those before.
func TestCausal(t *testing.T) {
	b := newBlock(32, 4)
	x := millrace.Normal(millrace.Float32, 1, 2, 16, 32)
	other := x.Assign(millrace.Zeros(millrace.Float32, 2, 1, 32), millrace.All, millrace.R(9, 10))
	before, after := millrace.R(0, 9), millrace.R(9, 16)
	y, z := b.forward(x), b.forward(other)
	if same, err := millrace.Equal(y.Slice(millrace.All, before), z.Slice(millrace.All, before)); err != nil || !same {
		t.Errorf("tokens see what is behind them: %v", err)
	}
	if same, err := millrace.Equal(y.Slice(millrace.All, after), z.Slice(millrace.All, after)); err != nil || same {
		t.Errorf("tokens do not see what is before them: %v", err)
	}
}
