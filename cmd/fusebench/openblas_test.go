//go:build openblas && cgo

package main

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// TestOpenBLAS checks that OpenBLAS computes the same product as the engine.
func TestOpenBLAS(t *testing.T) {
	for _, dt := range []millrace.DType{millrace.Float32, millrace.Float64} {
		as := arraysOf(dt)
		p, err := matmulSuite.of("5x7x3", nil, as)
		if err != nil {
			t.Fatal(err)
		}
		as.fill()
		run, result := p.gemm.openBLAS(2, p.inputs[0], p.inputs[1])
		for range 2 { // a second run must not add to the first
			run()
		}
		off := worst(p.oracle, result.f32)
		if result.f64 != nil {
			off = worst(p.oracle, result.f64)
		}
		if !(off < 1e-5) {
			t.Errorf("%v: off by %v", dt, off)
		}
	}
}
