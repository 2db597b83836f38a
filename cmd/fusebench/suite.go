package main

import "github.com/millrace-go/millrace"

// A Suite is a family of programs that compute the same thing in several ways,
// elementwise from one tensor.
type Suite interface {
	Name() string
	Variants() []string
	// Program is a variant, written with package millrace's public operations.
	Program(variant string) func(x *millrace.Tensor) *millrace.Tensor
	// Oracle is what every variant approximates.
	Oracle(x float64) float64
}

// suites are those that fusebench explain knows.
var suites = []Suite{geluSuite{}, chainSuite{ops: 20}}
