package onnx

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
)

// hostLimit is the largest number of elements of a value on the host that an op makes.
const hostLimit = 4096

// host is a small value whose elements are known in Go: shapes, indices, axes. Its dtype is
// Float32, Float64, Bool or an integer dtype other than Uint64. A float32 is kept as the float64
// that equals it.
type host struct {
	dt   millrace.DType
	dims []int
	i    []int64   // elements of integers and bools
	f    []float64 // elements of floats
}

func hostDType(dt millrace.DType) bool {
	switch dt {
	case millrace.Float16, millrace.BFloat16, millrace.Uint64, millrace.Invalid:
		return false
	}
	return true
}

// product is the number of elements of a shape, or mostElements if there are more.
func product(dims []int) int {
	if slices.Contains(dims, 0) {
		return 0
	}
	n := 1
	for _, d := range dims {
		if d < 0 || d > mostElements/n {
			return mostElements
		}
		n *= d
	}
	return n
}

const mostElements = 1 << 50

// newHost makes a value of zeros.
func newHost(dt millrace.DType, dims []int) *host {
	h := &host{dt: dt, dims: slices.Clone(dims)}
	if isFloat(dt) {
		h.f = make([]float64, product(dims))
	} else {
		h.i = make([]int64, product(dims))
	}
	return h
}

func hostInts(dt millrace.DType, v ...int) *host {
	h := newHost(dt, []int{len(v)})
	for k, x := range v {
		h.i[k] = int64(x)
	}
	return h
}

func (h *host) len() int { return product(h.dims) }

// hostOf reads elements from little-endian bytes.
func hostOf(dt millrace.DType, dims []int, raw []byte) *host {
	h := newHost(dt, dims)
	size := sizeOf(dt)
	le := binary.LittleEndian
	for k := range h.len() {
		b := raw[k*size:]
		switch dt {
		case millrace.Float32:
			h.f[k] = float64(math.Float32frombits(le.Uint32(b)))
		case millrace.Float64:
			h.f[k] = math.Float64frombits(le.Uint64(b))
		case millrace.Int64:
			h.i[k] = int64(le.Uint64(b))
		case millrace.Int32:
			h.i[k] = int64(int32(le.Uint32(b)))
		case millrace.Uint32:
			h.i[k] = int64(le.Uint32(b))
		case millrace.Int16:
			h.i[k] = int64(int16(le.Uint16(b)))
		case millrace.Uint16:
			h.i[k] = int64(le.Uint16(b))
		case millrace.Int8:
			h.i[k] = int64(int8(b[0]))
		default: // Uint8 and Bool
			h.i[k] = int64(b[0])
		}
	}
	return h
}

// bytes are the elements as little-endian bytes.
func (h *host) bytes() []byte {
	var b []byte
	le := binary.LittleEndian
	for k := range h.len() {
		switch {
		case h.dt == millrace.Float32:
			b = le.AppendUint32(b, math.Float32bits(float32(h.f[k])))
		case h.dt == millrace.Float64:
			b = le.AppendUint64(b, math.Float64bits(h.f[k]))
		case sizeOf(h.dt) == 8:
			b = le.AppendUint64(b, uint64(h.i[k]))
		case sizeOf(h.dt) == 4:
			b = le.AppendUint32(b, uint32(h.i[k]))
		case sizeOf(h.dt) == 2:
			b = le.AppendUint16(b, uint16(h.i[k]))
		default:
			b = append(b, byte(h.i[k]))
		}
	}
	return b
}

// at returns an element as a float.
func (h *host) at(k int) float64 {
	if h.f != nil {
		return h.f[k]
	}
	return float64(h.i[k])
}

// pick makes a value from the elements of h at the given places.
func (h *host) pick(dims []int, places []int) *host {
	r := newHost(h.dt, dims)
	for k, p := range places {
		if h.f != nil {
			r.f[k] = h.f[p]
		} else {
			r.i[k] = h.i[p]
		}
	}
	return r
}

// reshaped is the same elements with other dimensions.
func (h *host) reshaped(dims []int) *host {
	r := *h
	r.dims = slices.Clone(dims)
	return &r
}

// cast converts the elements as Tensor.Cast does.
func (h *host) cast(dt millrace.DType) *host {
	r := newHost(dt, h.dims)
	lo, hi := int64(0), int64(0)
	if !isFloat(dt) {
		lo, hi = limits(dt)
	}
	for k := range h.len() {
		switch {
		case dt == millrace.Float32:
			r.f[k] = float64(float32(h.at(k)))
		case isFloat(dt):
			r.f[k] = h.at(k)
		case dt == millrace.Bool:
			if v := h.at(k); v != 0 {
				r.i[k] = 1
			}
		case h.f != nil:
			r.i[k] = truncated(h.f[k], lo, hi)
		default:
			r.i[k] = wrapped(dt, h.i[k])
		}
	}
	return r
}

// truncated rounds toward zero and limits the result; NaN gives 0.
func truncated(v float64, lo, hi int64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= float64(hi):
		return hi
	case v <= float64(lo):
		return lo
	}
	return int64(v)
}

// wrapped reduces an integer to the dtype's bits, and rounds a float32.
func wrapped(dt millrace.DType, v int64) int64 {
	switch dt {
	case millrace.Int32:
		return int64(int32(v))
	case millrace.Uint32:
		return int64(uint32(v))
	case millrace.Int16:
		return int64(int16(v))
	case millrace.Uint16:
		return int64(uint16(v))
	case millrace.Int8:
		return int64(int8(v))
	case millrace.Uint8:
		return int64(uint8(v))
	}
	return v
}

// broadcast returns the shape of a result, and for each of its elements the place in each operand.
func broadcast(shapes ...[]int) (dims []int, places [][]int, err error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	dims = make([]int, rank)
	for d := range dims {
		dims[d] = 1
		for _, s := range shapes {
			if k := d - rank + len(s); k >= 0 && s[k] != 1 {
				if dims[d] != 1 && dims[d] != s[k] {
					return nil, nil, fmt.Errorf("%w: shapes %v do not broadcast", millrace.ErrShape, shapes)
				}
				dims[d] = s[k]
			}
		}
	}
	n := product(dims)
	if n > hostLimit {
		return dims, nil, errLarge
	}
	places = make([][]int, len(shapes))
	for i, s := range shapes {
		places[i] = make([]int, n)
		for k := range n {
			rest, at, step := k, 0, 1
			for d := rank - 1; d >= 0; d-- {
				pos := rest % dims[d]
				rest /= dims[d]
				if j := d - rank + len(s); j >= 0 {
					if s[j] != 1 {
						at += pos * step
					}
					step *= s[j]
				}
			}
			places[i][k] = at
		}
	}
	return dims, places, nil
}

// readHost reads a tensor's elements, which runs what it needs.
func readHost(ctx context.Context, t *millrace.Tensor) (*host, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	dt, dims := t.DType(), t.Shape()
	if isFloat(dt) {
		if dt != millrace.Float32 && dt != millrace.Float64 {
			t, dt = t.Cast(millrace.Float32), millrace.Float32
		}
		h := &host{dt: dt, dims: dims}
		var err error
		h.f, err = millrace.ValuesContext[float64](ctx, t.Cast(millrace.Float64))
		return h, err
	}
	h := &host{dt: dt, dims: dims}
	if dt == millrace.Uint64 {
		h.dt = millrace.Int64
	}
	var err error
	h.i, err = millrace.ValuesContext[int64](ctx, t.Cast(millrace.Int64))
	return h, err
}
