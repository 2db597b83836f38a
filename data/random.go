package data

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
)

// Uniform draws numbers of dtype Float32, uniform on [0, 1), others at each call: a [*Random],
// or the context of a forward pass of package nn.
type Uniform interface {
	Uniform(shape ...int) *millrace.Tensor
}

// Random are random numbers whose state is tensors, so that a Recording draws others at each
// run, and that can be saved and restored. It is for one goroutine at a time.
type Random struct {
	Key     *millrace.Tensor // a Uint32 number, from the seed
	Counter *millrace.Tensor // a Uint32 number, of the draws so far: Uniform sets it
}

// NewRandom makes random numbers in a place: the stream that draws with it. Draws of one seed
// are the same on every device.
func NewRandom(p millrace.Place, seed uint64) *Random {
	// Seeds that have the key in common begin at other counters.
	return &Random{
		Key:     millrace.ScalarOn(p, uint32(seed)),
		Counter: millrace.ScalarOn(p, uint32(seed>>32)*0x9e3779b9),
	}
}

// Uniform draws numbers: element i of the k-th draw is made of Philox4x32-10 for the counter
// (i, k). Of a shape that cannot be, or has more elements than a Uint32 counts, the result
// carries [millrace.ErrShape].
func (r *Random) Uniform(shape ...int) *millrace.Tensor {
	n := 1.0
	for _, d := range shape {
		n *= float64(d)
	}
	if n > math.MaxUint32 || len(shape) > 0 && slices.Min(shape) < 0 {
		return failed("uniform", fmt.Errorf("%w: %v", millrace.ErrShape, shape), r.Counter)
	}
	at := millrace.ArangeOn(r.Counter.Stream(), millrace.Uint32, 0, n, 1)
	bits := at.Philox(r.Counter, r.Key)
	high := bits.ShrScalar(8)
	whole := high.Cast(millrace.Float32)
	flat := whole.MulScalar(0x1p-24)
	u := flat.Reshape(shape...)
	next := r.Counter.AddScalar(1)
	r.Counter.Set(next)
	release(at, bits, high, whole, flat, next)
	return u
}

func release(ts ...*millrace.Tensor) {
	for _, t := range ts {
		t.Release()
	}
}
