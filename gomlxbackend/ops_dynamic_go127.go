//go:build go1.27 && !compute_go126

package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// DynamicBroadcastInDim is BroadcastInDim to dimensions as of DynamicReshape. An axis
// of the operand that is dynamic keeps its name.
func (f *Function) DynamicBroadcastInDim(operand compute.Value, axes []int, dimensions ...compute.DynamicDimensionSpec) (compute.Value, error) {
	const op = compute.OpTypeDynamicBroadcastInDim
	own(&axes)
	own(&dimensions)
	x, err := f.builder.node(operand)
	if err != nil {
		return nil, errors.WithMessagef(err, "%s: operand 0", op)
	}
	for i, axis := range axes {
		if i < x.shape.Rank() && x.shape.Dimensions[i] == shapes.DynamicDim && axis >= 0 && axis < len(dimensions) &&
			dimensions[axis].Name != x.shape.AxisName(i) {
			return nil, errors.Errorf("%s: axis %q at %d, and not %q", signature(op, []*Node{x}), x.shape.AxisName(i), axis, dimensions[axis].Name)
		}
	}
	return f.dynamic(op, []compute.Value{operand}, dimensions, func(in []*Node, dims []int) (*Node, error) {
		if err := allKnown(dims, dimensions); err != nil {
			return nil, err
		}
		n, err := f.BroadcastInDim(in[0], shapes.Make(in[0].shape.DType, dims...), axes)
		if err != nil {
			return nil, err
		}
		return n.(*Node), nil
	})
}

// DynamicIota is Iota with dimensions as of DynamicReshape.
func (f *Function) DynamicIota(dt dtypes.DType, axis int, dimensions ...compute.DynamicDimensionSpec) (compute.Value, error) {
	return f.dynamic(compute.OpTypeDynamicIota, nil, dimensions, func(_ []*Node, dims []int) (*Node, error) {
		if err := allKnown(dims, dimensions); err != nil {
			return nil, err
		}
		n, err := f.Iota(shapes.Make(dt, dims...), axis)
		if err != nil {
			return nil, err
		}
		return n.(*Node), nil
	})
}

func allKnown(dims []int, specs []compute.DynamicDimensionSpec) error {
	if i := slices.Index(dims, -1); i >= 0 {
		return errors.Errorf("dimension %d: there is no axis %q, and no value", i, specs[i].Name)
	}
	return nil
}

// DynamicPad is Pad by amounts that are known, or values.
func (f *Function) DynamicPad(x, fill compute.Value, axes ...compute.DynamicPadAxis) (compute.Value, error) {
	const op = compute.OpTypeDynamicPad
	own(&axes)
	vs := []compute.Value{x, fill}
	n, err := f.builder.node(x)
	if err != nil {
		return nil, errors.WithMessagef(err, "%s: operand 0", op)
	}
	if len(axes) > n.shape.Rank() {
		return nil, errors.Errorf("%s: padding of %d axes", signature(op, []*Node{n}), len(axes))
	}
	var names []string
	for i, a := range axes {
		name := a.TargetAxisName
		for _, v := range []compute.Value{a.StartValue, a.EndValue, a.InteriorValue} {
			if v == nil {
				continue
			}
			vs = append(vs, v)
			if name == "" && n.shape.Dimensions[i] != shapes.DynamicDim {
				name = shapes.AnonymousAxis
			}
			if err := f.becomeTemplate(op.String()); err != nil {
				return nil, err
			}
		}
		names = append(names, name)
	}
	list, err := f.addOp(op, len(vs), vs, names, func(in []*Node) ([]*Node, error) {
		values := in[2:]
		pads := make([]compute.PadAxis, len(axes))
		for i, a := range axes {
			p := &pads[i]
			*p = compute.PadAxis{Start: a.Start, End: a.End, Interior: a.Interior}
			for _, amount := range []struct {
				value compute.Value
				to    *int
			}{{a.StartValue, &p.Start}, {a.EndValue, &p.End}, {a.InteriorValue, &p.Interior}} {
				if amount.value == nil {
					continue
				}
				var err error
				if *amount.to, err = f.sizeOf(values[0], ""); err != nil {
					return nil, errors.WithMessagef(err, "padding of axis %d", i)
				}
				values = values[1:]
			}
		}
		padded, err := f.Pad(in[0], in[1], pads...)
		if err != nil {
			return nil, err
		}
		return []*Node{padded.(*Node)}, nil
	})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}
