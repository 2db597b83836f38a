// Package cgo prints kernels as C. What it prints includes no header (the
// vector intrinsics of immintrin.h alone cost a compiler 300 ms), uses vector
// types of the ISA's native width, and gives the bits that ir gives: no
// contraction, no reassociation, fma only where the kernel says so.
//
// A printed kernel is one function of abi.h's type mr_eval. It evaluates a
// range of points of the domain; who splits the domain over threads, and folds
// values that a kernel reduces, is its caller's affair. So the order in which
// a sum is taken is written in one place, for every tier.
//
// Engine part: no compatibility promise; use package millrace.
package cgo

import (
	_ "embed"
	"strconv"

	"github.com/millrace-go/millrace/codegen"
)

// Version is part of the key of everything compiled from this printer's
// output. It grows when the output changes.
const Version = 2

// ABI is the text that printed kernels begin with, and that callers of them
// include.
//
//go:embed abi.h
var ABI string

// Variant is what a print may rely on beyond the kernel itself.
type Variant struct {
	// Class holds one class per operand, for the innermost dim of the domain
	// as it is evaluated.
	Class []codegen.AccessClass
	// Guarded says that an output may have stride 0 along an outer dim.
	Guarded bool
	// Streams is the number of operands, the first ones, that may be stored past
	// the caches where they ask for it.
	Streams int
}

// String is one letter per operand, with an exclamation mark where outer dims
// are guarded, and the number of operands that may be stored past the caches.
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
