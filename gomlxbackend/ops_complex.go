package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Complex is re + im·i; both are float32 or float64, of one shape or one of
// them a scalar.
func (f *Function) Complex(re, im compute.Value) (compute.Value, error) {
	const op = compute.OpTypeComplex
	return f.build(op, []compute.Value{re, im}, func(in []*Node) (*Node, error) {
		x, y := in[0].shape, in[1].shape
		if x.DType != y.DType || complexOf[x.DType] == dtypes.InvalidDType {
			return nil, errors.New("both parts must be float32, or both float64")
		}
		if !x.EqualDimensions(y) && !x.IsScalar() && !y.IsScalar() {
			return nil, errors.New("the parts must be of one shape, or one of them a scalar")
		}
		e := &expansion{f: f}
		re, im := e.spread(in[0], in[1]), e.spread(in[1], in[0])
		if e.err != nil {
			return nil, e.err
		}
		return f.pair(op, re, im), nil
	})
}

// Real is the real part, and x where that is a float.
func (f *Function) Real(x compute.Value) (compute.Value, error) {
	return f.part(compute.OpTypeReal, x, func(_ *expansion, x *Node) *Node {
		if x.isComplex() {
			return x.re
		}
		return x
	})
}

// Imag is the imaginary part, and 0 where x is a float.
func (f *Function) Imag(x compute.Value) (compute.Value, error) {
	return f.part(compute.OpTypeImag, x, func(e *expansion, x *Node) *Node {
		if x.isComplex() {
			return x.im
		}
		return e.zeros(x)
	})
}

func (f *Function) part(op compute.OpType, x compute.Value, take func(*expansion, *Node) *Node) (compute.Value, error) {
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		if dt := in[0].shape.DType; !dt.IsComplex() && !dt.IsFloat() {
			return nil, errors.Errorf("not defined for %s", dt)
		}
		e := &expansion{f: f}
		n := take(e, in[0])
		return n, e.err
	})
}

// Conj is a row of complexOps.
func (f *Function) Conj(x compute.Value) (compute.Value, error) {
	const op = compute.OpTypeConj
	return f.build(op, []compute.Value{x}, func(in []*Node) (*Node, error) {
		return nil, errors.Errorf("not defined for %s", in[0].shape.DType)
	})
}

// convertComplex converts from or to complex elements, or both. A real number
// has the imaginary part 0. What becomes a real number loses its imaginary part;
// what is not 0 is true.
func (f *Function) convertComplex(x *Node, dt dtypes.DType) (*Node, error) {
	const op = compute.OpTypeConvertDType
	e := &expansion{f: f}
	row, ok := complexRows[dt]
	var n *Node
	switch {
	case ok && x.isComplex():
		n = e.pair(op, x.re, x.im, func(e *expansion, a, b *Node) (re, im *Node) {
			return e.get(f.ConvertDType(a, row.part)), e.get(f.ConvertDType(b, row.part))
		})
	case ok:
		re := e.get(f.ConvertDType(x, row.part))
		n = e.pair(op, re, re, func(e *expansion, a, _ *Node) (re, im *Node) { return a, e.zeros(a) })
	case dt == dtypes.Bool:
		n = e.or(e.get(f.ConvertDType(x.re, dt)), e.get(f.ConvertDType(x.im, dt)))
	default:
		n = e.get(f.ConvertDType(x.re, dt))
	}
	return n, e.err
}

// bilinear is an op of two complex operands that is a sum of products of their
// elements, from what it is for real ones.
func (f *Function) bilinear(op compute.OpType, in []*Node, do func(x, y *Node) (compute.Value, error)) (*Node, error) {
	x, y := in[0], in[1]
	if x.shape.DType != y.shape.DType {
		return nil, errors.New("the dtypes differ")
	}
	e := &expansion{f: f}
	of := func(x, y *Node) *Node { return e.get(do(x, y)) }
	n := e.pair(op, x.re, x.im, func(e *expansion, a, b *Node) (re, im *Node) {
		return e.sub(of(a, y.re), of(b, y.im)), e.add(of(a, y.im), of(b, y.re))
	})
	return n, e.err
}

// partConfig is how the products of parts are computed for a DotGeneral of
// complex operands.
func partConfig(config compute.DotGeneralConfig) (compute.DotGeneralConfig, error) {
	for _, dt := range []*dtypes.DType{&config.AccumulatorDType, &config.OutputDType} {
		if row, ok := complexRows[*dt]; ok {
			*dt = row.part
		} else if *dt != dtypes.InvalidDType {
			return config, errors.Errorf("a sum of complex products in %s", *dt)
		}
	}
	return config, nil
}

// complexProducts are the products along axes: elements are multiplied by those
// in the other half, until one is left.
func (f *Function) complexProducts(x *Node, axes []int) (*Node, error) {
	const op = compute.OpTypeReduceProduct
	along, err := reducedAxes(x.shape, axes)
	if err != nil || len(along) == 0 {
		return x, err
	}
	var dims []int
	for _, a := range kept(x.shape.Rank(), along) {
		dims = append(dims, x.shape.Dimensions[a])
	}
	shape := shapes.Make(x.shape.DType, dims...)
	n := f.addMany(op, []shapes.Shape{shape}, func(r *run, in []*tensor) []*tensor {
		rows := func(t *tensor) *tensor { return r.temp(inRows(r, t, along)) }
		re, im := rows(in[0]), rows(in[1])
		count := re.Dim(-1)
		if count == 0 {
			dt := in[0].DType()
			return []*tensor{millrace.FullOn(r.sc, dt, 1, dims...), millrace.FullOn(r.sc, dt, 0, dims...)}
		}
		last := len(dims)
		for count > 1 {
			half := (count + 1) / 2 // of an odd number the middle one stays
			part := func(t *tensor, from, to int) *tensor { return r.temp(rangeOf(t, last, from, to)) }
			a, b := part(re, 0, count-half), part(im, 0, count-half)
			c, d := part(re, half, count), part(im, half, count)
			x := r.temp(a.Mul(c)).Sub(r.temp(b.Mul(d)))
			y := r.temp(a.Mul(d)).Add(r.temp(b.Mul(c)))
			if half > count-half {
				x = millrace.Concat(last, r.temp(x), part(re, half-1, half))
				y = millrace.Concat(last, r.temp(y), part(im, half-1, half))
			}
			re, im, count = r.temp(x), r.temp(y), half
			// Fused, each half would compute the halves before it again.
			for _, t := range []*tensor{re, im} {
				if err := t.Eval(); err != nil {
					return r.fail(err, 2)
				}
			}
		}
		return []*tensor{re.Reshape(dims...), im.Reshape(dims...)}
	}, x)
	return n.values[0], nil
}

// inRows is a view or copy of t whose last axis is all of the axes along, in
// order.
func inRows(r *run, t *tensor, along []int) *tensor {
	order := append(kept(t.Rank(), along), along...)
	dims, n := []int{}, 1
	for _, a := range order[:len(order)-len(along)] {
		dims = append(dims, t.Dim(a))
	}
	for _, a := range along {
		n *= t.Dim(a)
	}
	return r.temp(t.Permute(order...)).Reshape(append(dims, n)...)
}

// rangeOf is part of an axis, with all of those before it.
func rangeOf(t *tensor, axis, from, to int) *tensor {
	ranges := slices.Repeat([]millrace.Range{millrace.All}, axis+1)
	ranges[axis] = millrace.R(from, to)
	return t.Slice(ranges...)
}

// complexBits is Bitcast from or to complex elements, whose bits are those of
// the real part and then those of the imaginary one: the bits of two parts along
// a new last axis.
func (f *Function) complexBits(x *Node, shape shapes.Shape) (*Node, error) {
	const op = compute.OpTypeBitcast
	e := &expansion{f: f}
	if x.isComplex() {
		column := append(slices.Clone(x.shape.Dimensions), 1)
		both := []compute.Value{e.get(f.Reshape(x.re, column...)), e.get(f.Reshape(x.im, column...))}
		x = e.get(f.Concatenate(len(column)-1, both...))
	}
	row, ok := complexRows[shape.DType]
	want, dims := shape.DType, slices.Clone(shape.Dimensions)
	if ok {
		want, dims = row.part, append(dims, 2)
	}
	if e.err == nil && x.shape.DType.Bits() < want.Bits() {
		// Only as many as make up one element may be the last axis.
		x = e.get(f.Reshape(x, append(slices.Clone(dims), want.Bits()/x.shape.DType.Bits())...))
	}
	x = e.get(f.Reshape(e.get(f.Bitcast(x, want)), dims...))
	if !ok || e.err != nil {
		return x, e.err
	}
	last, starts, limits := len(dims)-1, make([]int, len(dims)), slices.Clone(dims)
	return f.pairOf(op, func(i int) (*Node, error) {
		starts[last], limits[last] = i, i+1
		part := e.get(f.Reshape(e.get(f.Slice(x, starts, limits, nil)), shape.Dimensions...))
		return part, e.err
	})
}
