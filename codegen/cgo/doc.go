// Package cgo prints kernels as C. The text includes no headers: immintrin.h alone, with the vector
// intrinsics, costs a compiler 300 ms. It uses vector types of the ISA's native width. It gives the
// bits that ir gives: no contraction, no reassociation, fma only where the kernel has one.
//
// A printed kernel is one function of abi.h's type mr_eval, which evaluates a range of points of
// the domain. The caller splits the domain over threads, and folds the values that a kernel
// reduces. So the order of a sum is defined in one place, for every tier.
//
// Input: kernels, and a [Variant] and an [ISA] to print for. Output: C. Read print.go first.
//
// Engine part: no compatibility promise; use package millrace.
package cgo

import (
	_ "embed"
	"strconv"

	"github.com/millrace-go/millrace/codegen"
)

// ABI is the text with which printed kernels begin, and which their callers include.
//
//go:embed abi.h
var ABI string

// Variant is what a text may assume beyond the kernel itself.
type Variant struct {
	// Class holds one class per operand, for the innermost dim of the domain as it is evaluated.
	Class []codegen.AccessClass
	// Guarded says that an output may have stride 0 along an outer dim.
	Guarded bool
	// Streams is the number of operands, the first ones, that may be stored past the caches if a
	// launch asks for it.
	Streams int
}

// String is one letter per operand, then an exclamation mark if outer dims are guarded, and the
// number of operands that may be stored past the caches.
func (v Variant) String() string {
	b := make([]byte, 0, len(v.Class)+1)
	for _, c := range v.Class {
		b = append(b, c.String()...)
	}
	if v.Guarded {
		b = append(b, '!')
	}
	if v.Streams > 0 {
		b = strconv.AppendInt(b, int64(v.Streams), 10)
	}
	return string(b)
}
