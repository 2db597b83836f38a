package acrosstest

import (
	"fmt"
	"math"

	"github.com/millrace-go/millrace"
)

// vector is numbers of float32, float64 or bfloat16. A float32 operation on float64 values that is
// rounded to float32 has the bits of float32: 53 bits are more than twice 24 and two more.
type vector struct {
	dt    millrace.DType
	shape []int
	v     []float64
}

// read makes a vector of a tensor of floats. Those below float32 become float32.
func read(t *millrace.Tensor) (vector, error) {
	if !t.DType().IsFloat() {
		return vector{}, fmt.Errorf("%v is not a float", t.DType())
	}
	v, err := millrace.Values[float64](t.Cast(millrace.Float64))
	dt := millrace.Float32
	if t.DType() == millrace.Float64 {
		dt = millrace.Float64
	}
	return vector{dt, t.Shape(), v}, err
}

// round rounds a number to the vector's dtype. bfloat16 is computed in float32.
func (x vector) round(v float64) float64 {
	if x.dt == millrace.Float64 {
		return v
	}
	bits := math.Float32bits(float32(v))
	if x.dt == millrace.BFloat16 && v == v {
		bits += 0x7fff + bits>>16&1 // to the nearest, of two the even one
		bits &^= 0xffff
	}
	return float64(math.Float32frombits(bits))
}

// as is the vector in another dtype.
func (x vector) as(dt millrace.DType) vector {
	x.dt = dt
	return x.each(func(_ int, v float64) float64 { return v })
}

func (x vector) each(f func(i int, v float64) float64) vector {
	r := vector{x.dt, x.shape, make([]float64, len(x.v))}
	for i, v := range x.v {
		r.v[i] = x.round(f(i, v))
	}
	return r
}

func (x vector) times(k float64) vector {
	return x.each(func(_ int, v float64) float64 { return v * k })
}
func (x vector) over(k float64) vector {
	return x.each(func(_ int, v float64) float64 { return v / k })
}
func (x vector) plus(y vector) vector {
	return x.each(func(i int, v float64) float64 { return v + y.v[i] })
}

// finite reports whether no number is infinite or not a number.
func (x vector) finite() bool {
	for _, v := range x.v {
		if v-v != 0 {
			return false
		}
	}
	return true
}

// tensor makes a tensor of the vector.
func (x vector) tensor(at millrace.Place) *millrace.Tensor {
	if x.dt == millrace.Float64 {
		return millrace.FromSliceOn(at, x.v, x.shape...)
	}
	list := make([]float32, len(x.v))
	for i, v := range x.v {
		list[i] = float32(v)
	}
	return millrace.FromSliceOn(at, list, x.shape...)
}

// tree adds vectors as neighbours in pairs, again and again; an odd one passes.
func tree(list []vector) vector {
	for len(list) > 1 {
		var next []vector
		for i := 0; i+1 < len(list); i += 2 {
			next = append(next, list[i].plus(list[i+1]))
		}
		if len(list)%2 == 1 {
			next = append(next, list[len(list)-1])
		}
		list = next
	}
	return list[0]
}
