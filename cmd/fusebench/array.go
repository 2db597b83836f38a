package main

import (
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
)

// An array is an input of programs, in the host's memory.
type array struct {
	shape shape
	value func(r *rand.Rand, i int) float64
	seed  uint64
	bools bool      // values other than 0 are true
	f32   []float32 // the values are in one of these
	f64   []float64
	f16   []millrace.F16
	bf16  []millrace.BF16
	flags []bool
}

// arrays are the inputs of all variants. Variants with the same input share its array.
type arrays struct {
	dtype dtype
	named map[string]*array
}

func newArrays(dt dtype) *arrays { return &arrays{dtype: dt, named: map[string]*array{}} }

// normal returns an array of normally distributed numbers around 0.
func (as *arrays) normal(name string, deviation float64, dims ...int) *array {
	return as.of(name, dims, func(r *rand.Rand, _ int) float64 { return deviation * r.NormFloat64() })
}

// weight returns an array of weights whose product keeps the deviation of the other operand.
func (as *arrays) weight(name string, sum int, dims ...int) *array {
	return as.normal(name, 1/math.Sqrt(float64(sum)), dims...)
}

// of returns an array with a value for each position. Name and shape identify an array.
func (as *arrays) of(name string, s shape, value func(r *rand.Rand, i int) float64) *array {
	name += " " + shapeText(s)
	a := as.named[name]
	if a == nil {
		h := fnv.New64()
		h.Write([]byte(name))
		a = &array{shape: s, value: value, seed: h.Sum64()}
		as.named[name] = a
	}
	return a
}

// mask returns an array of bools.
func (as *arrays) mask(name string, s shape, value func(i int) bool) *array {
	a := as.of(name, s, func(_ *rand.Rand, i int) float64 {
		if value(i) {
			return 1
		}
		return 0
	})
	a.bools = true
	return a
}

// fill makes the values of all arrays.
func (as *arrays) fill() {
	for _, a := range as.named {
		n, r := a.shape.len(), rand.New(rand.NewPCG(1, a.seed))
		value := func(i int) float64 { return a.value(r, i) }
		switch {
		case a.bools:
			a.flags = listOf(n, func(i int) bool { return value(i) != 0 })
		case as.dtype.DType == millrace.Float64:
			a.f64 = listOf(n, value)
		case as.dtype.DType == millrace.Float16:
			a.f16 = listOf(n, func(i int) millrace.F16 { return millrace.NewF16(float32(value(i))) })
		case as.dtype.DType == millrace.BFloat16:
			a.bf16 = listOf(n, func(i int) millrace.BF16 { return millrace.NewBF16(float32(value(i))) })
		default:
			a.f32 = listOf(n, func(i int) float32 { return float32(value(i)) })
		}
	}
}

func listOf[T any](n int, value func(i int) T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = value(i)
	}
	return list
}

// at is the value that programs get, rounded to the dtype.
func (a *array) at(i int) float64 {
	switch {
	case a.f64 != nil:
		return a.f64[i]
	case a.f16 != nil:
		return float64(a.f16[i].Float32())
	case a.bf16 != nil:
		return float64(a.bf16[i].Float32())
	}
	return float64(a.f32[i])
}

func (a *array) upload(d *millrace.Device) *millrace.Tensor {
	switch {
	case a.bools:
		return millrace.FromSliceOn(d, a.flags, a.shape...)
	case a.f64 != nil:
		return millrace.FromSliceOn(d, a.f64, a.shape...)
	case a.f16 != nil:
		return millrace.FromSliceOn(d, a.f16, a.shape...)
	case a.bf16 != nil:
		return millrace.FromSliceOn(d, a.bf16, a.shape...)
	}
	return millrace.FromSliceOn(d, a.f32, a.shape...)
}

func (a *array) bytes() int {
	return 4*len(a.f32) + 8*len(a.f64) + 2*len(a.f16) + 2*len(a.bf16) + len(a.flags)
}
