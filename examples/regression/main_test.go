package main

import (
	"context"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func TestLinear(t *testing.T) {
	w, err := linear(1000)
	if err != nil {
		t.Fatal(err)
	}
	if near, err := millrace.AllClose(w, millrace.FromSlice([]float32{2, -3, 0.5}, 3), 0, 0.02); err != nil || !near {
		t.Errorf("%v: %v", w, err)
	}
}

func TestLogistic(t *testing.T) {
	right, err := logistic(context.Background(), 500)
	if err != nil || right < 0.95 {
		t.Errorf("%.3f of the points: %v", right, err)
	}
}
