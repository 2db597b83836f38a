package optable

import (
	"reflect"

	"github.com/millrace-go/millrace"
)

// In has the operands of an example.
type In struct {
	dt     millrace.DType // of the tensors of numbers
	device *millrace.Device

	x, y, p, q, v, a, b                        *T
	signal, taps, image, kernel, volume, block *T
	m                                          *T // bool
	i, at                                      *T // int32
}

// Operands are the tensors of an In by name.
func (o *In) Operands() map[string]**T {
	return map[string]**T{
		"x": &o.x, "y": &o.y, "p": &o.p, "q": &o.q, "v": &o.v, "a": &o.a, "b": &o.b, "m": &o.m, "i": &o.i, "at": &o.at,
		"signal": &o.signal, "taps": &o.taps, "image": &o.image, "kernel": &o.kernel, "volume": &o.volume, "block": &o.block,
	}
}

// NewIn makes operands of a dtype. Those of bool are true where the numbers are odd.
func NewIn(d *millrace.Device, dt millrace.DType) In {
	make := func(v []float64, shape ...int) *T {
		t := millrace.FromSlice(v, shape...)
		if dt == millrace.Bool {
			return t.RemScalar(2).Cast(dt)
		}
		return t.Cast(dt)
	}
	return In{
		dt: dt, device: d,
		x: make([]float64{1, 2, 3, 4, 5, 6}, 2, 3), y: make([]float64{6, 5, 4, 3, 2, 1}, 2, 3), v: make([]float64{3, 1, 3, 0, 2}, 5),
		p: make([]float64{0, 0.25, 0.5}, 3), a: make([]float64{2, 1, 1, 3}, 2, 2), b: make([]float64{4, 7}, 2),
		q:      make([]float64{-2.5, -0.5, 1.25}, 3),
		signal: make([]float64{3, 1, 3, 0, 2}, 1, 1, 5), taps: make([]float64{1, 1}, 1, 1, 2),
		image: make([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 3, 3), kernel: make([]float64{1, 0, 0, 1}, 1, 1, 2, 2),
		volume: make([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 1, 3, 3), block: make([]float64{1, 0, 0, 1}, 1, 1, 1, 2, 2),
		m: millrace.FromSlice([]bool{true, false, true, false, true, false}, 2, 3),
		i: millrace.FromSlice([]int32{2, 0}), at: millrace.FromSlice([]int32{0, 1}),
	}
}

// Masked replaces the mask by numbers.
func (o *In) Masked() { o.m = o.x }

// Run calls the example and returns the tensors of its results.
func (op Op) Run(o In) (all []*T) {
	for _, r := range reflect.ValueOf(op.Example).Call([]reflect.Value{reflect.ValueOf(o)}) {
		switch t := r.Interface().(type) {
		case *T:
			all = append(all, t)
		case []*T:
			all = append(all, t...)
		}
	}
	return all
}
