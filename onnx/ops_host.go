package onnx

import (
	"math"

	"github.com/millrace-go/millrace"
)

// arith makes the host function of arithmetic on any number of values of one dtype.
func arith(ints func(a, b int64) int64, floats func(a, b float64) float64) func(c *call) (*host, error) {
	return func(c *call) (*host, error) {
		r := c.h(0)
		for i := 1; i < len(c.in) && c.err == nil; i++ {
			var err error
			if r, err = combine(r, c.h(i), r.dt, ints, floats); r == nil || err != nil {
				return nil, err
			}
		}
		return r, nil
	}
}

// combine applies a function to values that broadcast. Without a function for the dtype, it returns
// nil, and the op runs on the device.
func combine(a, b *host, dt millrace.DType, ints func(a, b int64) int64, floats func(a, b float64) float64) (*host, error) {
	if a.dt != b.dt || a.f == nil && ints == nil || a.f != nil && floats == nil {
		return nil, nil
	}
	dims, at, err := broadcast(a.dims, b.dims)
	if err != nil {
		return nil, err
	}
	r := newHost(dt, dims)
	for k := range at[0] {
		switch {
		case a.f == nil:
			r.i[k] = wrapped(dt, ints(a.i[at[0][k]], b.i[at[1][k]]))
		case dt == millrace.Float32:
			r.f[k] = float64(float32(floats(a.f[at[0][k]], b.f[at[1][k]])))
		default:
			r.f[k] = floats(a.f[at[0][k]], b.f[at[1][k]])
		}
	}
	return r, nil
}

// hostDiv rounds toward zero; the quotient by 0 is 0, as for Tensor.Div.
func hostDiv(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	if b == -1 {
		return -a
	}
	return a / b
}

func hostMod(c *call) (*host, error) {
	if c.int("fmod", 0) != 0 {
		return nil, nil
	}
	return arith(func(a, b int64) int64 {
		if b == 0 || b == -1 {
			return 0
		}
		r := a % b
		if r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return r
	}, nil)(c)
}

// compare makes the host function of a comparison.
func compare(floats func(a, b float64) bool, ints func(a, b int64) bool) func(c *call) (*host, error) {
	return func(c *call) (*host, error) {
		a, b := c.h(0), c.h(1)
		if a.dt != b.dt {
			return nil, nil
		}
		dims, at, err := broadcast(a.dims, b.dims)
		if err != nil {
			return nil, err
		}
		r := newHost(millrace.Bool, dims)
		for k := range at[0] {
			var yes bool
			if a.f != nil {
				yes = floats(a.f[at[0][k]], b.f[at[1][k]])
			} else {
				yes = ints(a.i[at[0][k]], b.i[at[1][k]])
			}
			if yes {
				r.i[k] = 1
			}
		}
		return r, nil
	}
}

// mapped makes the host function of a function of floats.
func mapped(f func(float64) float64) func(c *call) (*host, error) { return mappedInt(nil, f) }

func mappedInt(ints func(int64) int64, floats func(float64) float64) func(c *call) (*host, error) {
	return func(c *call) (*host, error) {
		a := c.h(0)
		if a.f == nil && ints == nil || a.f != nil && floats == nil {
			return nil, nil
		}
		r := newHost(a.dt, a.dims)
		for k := range a.len() {
			switch {
			case a.f == nil:
				r.i[k] = wrapped(a.dt, ints(a.i[k]))
			case a.dt == millrace.Float32:
				r.f[k] = float64(float32(floats(a.f[k])))
			default:
				r.f[k] = floats(a.f[k])
			}
		}
		return r, nil
	}
}

func hostCast(c *call) (*host, error) {
	dt := c.dtypeAttr("to", millrace.Invalid)
	if h := c.h(0); hostDType(dt) && (h.f != nil || isFloat(dt) || dt == millrace.Bool || sizeOf(dt) >= sizeOf(h.dt) && isSigned(dt)) {
		return h.cast(dt), nil
	}
	return nil, nil
}

func hostWhere(c *call) (*host, error) {
	m, a, b := c.h(0), c.h(1), c.h(2)
	if a.dt != b.dt || m.f != nil {
		return nil, nil
	}
	dims, at, err := broadcast(m.dims, a.dims, b.dims)
	if err != nil {
		return nil, err
	}
	r := newHost(a.dt, dims)
	for k := range at[0] {
		from, p := b, at[2][k]
		if m.i[at[0][k]] != 0 {
			from, p = a, at[1][k]
		}
		if a.f != nil {
			r.f[k] = from.f[p]
		} else {
			r.i[k] = from.i[p]
		}
	}
	return r, nil
}

// fold reduces all axes given, or every axis.
func fold(c *call, start int64, ints func(a, b int64) int64) (*host, error) {
	a := c.h(0)
	axes := c.axesOr("axes", 1, map[bool]int{true: 13, false: 18}[c.n.op == "ReduceSum"])
	if a.f != nil || len(a.dims) > 1 || len(axes) == 0 && c.int("noop_with_empty_axes", 0) != 0 {
		return nil, nil
	}
	v := start
	for _, x := range a.i {
		v = wrapped(a.dt, ints(v, x))
	}
	c.axes(axes, len(a.dims))
	if len(a.dims) == 1 && c.int("keepdims", 1) != 0 {
		return &host{dt: a.dt, dims: []int{1}, i: []int64{v}}, nil
	}
	return &host{dt: a.dt, dims: []int{}, i: []int64{v}}, nil
}

// hostRange is Range; its length is that of the specification, max(ceil((limit-start)/delta), 0).
func hostRange(c *call) (*host, error) {
	a, b, d := c.h(0), c.h(1), c.h(2)
	if a.len() != 1 || b.len() != 1 || d.len() != 1 || d.at(0) == 0 {
		c.shapeFail("Range needs three numbers, and a step that is not 0")
		return nil, nil
	}
	n := math.Max(math.Ceil((b.at(0)-a.at(0))/d.at(0)), 0)
	if !(n <= hostLimit) {
		return nil, errLarge
	}
	r := newHost(a.dt, []int{int(n)})
	for k := range int(n) {
		if r.f != nil {
			r.f[k] = a.f[0] + float64(float64(k)*d.f[0])
		} else {
			r.i[k] = a.i[0] + int64(k)*d.i[0]
		}
	}
	return r, nil
}
