package gomlxbackend

import (
	"reflect"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Ops about sizes. In a graph sizes are known: what gives one is a constant, and
// what takes one reads it while the graph is made.

// DynamicDimensionSize is the number of elements along an axis.
func (f *Function) DynamicDimensionSize(operand compute.Value, axis int) (compute.Value, error) {
	return f.build(compute.OpTypeDynamicDimensionSize, []compute.Value{operand}, func(in []*Node) (*Node, error) {
		if err := checkAxes(in[0].shape, []int{axis}); err != nil {
			return nil, err
		}
		return f.sizesConstant(in[0].shape.Dimensions[axis:axis+1], nil)
	})
}

// DynamicShape is the number of elements along each axis.
func (f *Function) DynamicShape(operand compute.Value) (compute.Value, error) {
	return f.build(compute.OpTypeDynamicShape, []compute.Value{operand}, func(in []*Node) (*Node, error) {
		return f.sizesConstant(in[0].shape.Dimensions, []int{in[0].shape.Rank()})
	})
}

// sizeDType is of numbers that are sizes: Int64, or where the device has none, and for
// versions of compute that cannot be told, Int32.
func (b *Backend) sizeDType() dtypes.DType {
	if _, told := reflect.TypeFor[compute.Capabilities]().FieldByName(sizesField); told && b.caps.DTypes[dtypes.Int64] {
		return dtypes.Int64
	}
	return dtypes.Int32
}

func (f *Function) sizesConstant(sizes, dims []int) (*Node, error) {
	dt := f.builder.backend.sizeDType()
	flat := reflect.ValueOf(dtypes.MakeAnySlice(dt, len(sizes)))
	for i, n := range sizes {
		if flat.Index(i).OverflowInt(int64(n)) {
			return nil, errors.Errorf("%d elements, which is no %s", n, dt)
		}
		flat.Index(i).SetInt(int64(n))
	}
	if f.variant != nil {
		return f.sizesNode(dt, sizes, dims), nil
	}
	return f.makeConstant(flat.Interface(), dims)
}

// sizesNode is sizesConstant for one graph of many: it has no memory of its own, which
// would be another one at each size.
func (f *Function) sizesNode(dt dtypes.DType, sizes, dims []int) *Node {
	n := &Node{op: compute.OpTypeConstant, shape: shapes.Make(dt, dims...)}
	own := slices.Clone(sizes)
	if len(own) == 1 {
		x := float64(own[0])
		n.splat = &x
	}
	n.do = func(r *run, _ []*millrace.Tensor) *millrace.Tensor {
		on := dtypeRows[dt].dt
		if len(own) == 0 {
			return millrace.ZerosOn(r.sc, on, dims...)
		}
		var list []*millrace.Tensor
		for _, size := range own {
			list = append(list, r.temp(millrace.FullOn(r.sc, on, float64(size), 1)))
		}
		return r.temp(millrace.Concat(0, list...)).Reshape(dims...)
	}
	return f.append(n)
}

// DynamicReshape is Reshape to dimensions that are known, values, sizes of axes
// by their names, or one of them what is left.
func (f *Function) DynamicReshape(operand compute.Value, dimensions ...compute.DynamicDimensionSpec) (compute.Value, error) {
	return f.dynamic(compute.OpTypeDynamicReshape, []compute.Value{operand}, dimensions, func(in []*Node, dims []int) (*Node, error) {
		from, left, known := in[0].shape, -1, 1
		for i, d := range dims {
			switch {
			case d >= 0:
				known *= d
			case left >= 0:
				return nil, errors.Errorf("dimensions %q and %q are both left open", dimensions[left].Name, dimensions[i].Name)
			default:
				left = i
			}
		}
		if f.variant != nil && f.variant.guessed {
			// Of elements that are made up nothing divides anything.
			if left >= 0 {
				dims[left] = f.variant.guess()
			}
			return f.append(&Node{op: compute.OpTypeDynamicReshape, shape: shapes.Make(from.DType, dims...), in: in[:1]}), nil
		}
		if left >= 0 {
			if known == 0 || from.Size()%known != 0 {
				return nil, errors.Errorf("%d elements are not shared out by %v", from.Size(), dims)
			}
			dims[left] = from.Size() / known
		}
		n, err := f.Reshape(in[0], dims...)
		if err != nil {
			return nil, err
		}
		return n.(*Node), nil
	})
}

// dynamic adds an op whose result has the dimensions that specs say; those that are
// neither known, nor given, nor a known axis's are -1. A name that stands alone is
// open in an op that has an operand to share out.
func (f *Function) dynamic(op compute.OpType, operands []compute.Value, specs []compute.DynamicDimensionSpec, add func(in []*Node, dims []int) (*Node, error)) (compute.Value, error) {
	own(&specs)
	vs, alone := slices.Clone(operands), 0
	names := make([]string, len(specs))
	for i, s := range specs {
		switch {
		case s.Name == "" && s.Value != nil:
			return nil, errors.Errorf("%s: dimension %d is a value and needs a name", op, i)
		case s.Name == "" && s.Static < 0:
			return nil, errors.Errorf("%s: dimension %d is %d", op, i, s.Static)
		case s.Name != "" && s.Value == nil:
			alone++
		case s.Name != "":
			vs = append(vs, s.Value)
			if err := f.becomeTemplate(op.String()); err != nil {
				return nil, err
			}
		}
		names[i] = s.Name
	}
	list, err := f.addOp(op, len(vs), vs, names, func(in []*Node) ([]*Node, error) {
		dims, values := make([]int, len(specs)), in[len(operands):]
		if f.variant != nil {
			f.variant.guessed = false
		}
		for i, s := range specs {
			var err error
			dims[i] = s.Static
			switch {
			case s.Name == "":
			case s.Value != nil:
				dims[i], err = f.sizeOf(values[0], s.Name)
				values = values[1:]
			case alone == 1 && op == compute.OpTypeDynamicReshape:
				dims[i] = -1
			default:
				dims[i] = f.axisSize(s.Name)
			}
			if err != nil {
				return nil, errors.WithMessagef(err, "dimension %d (%q)", i, s.Name)
			}
		}
		n, err := add(in, dims)
		return []*Node{n}, err
	})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// axisSize is the size of an axis with a name, or -1.
func (f *Function) axisSize(name string) int {
	if f.variant != nil {
		if n, ok := f.variant.size[name]; ok {
			return n
		}
	}
	return -1
}

// sizeOf is the number that a node is, the size of an axis that may have a name. One
// that inputs decide is made up in a probe.
func (f *Function) sizeOf(n *Node, name string) (int, error) {
	if !n.shape.IsScalar() || !n.shape.DType.IsInt() {
		return 0, errors.Errorf("a size is a scalar integer and not a %s", n.shape)
	}
	v := f.variant
	if n.splat != nil {
		return int(*n.splat), nil
	}
	read := f.readsInputs(n)
	if read {
		f.template.asks = true
	}
	if read && v.probe >= 0 {
		v.guessed = true
		if known := f.axisSize(name); known >= 0 {
			return known, nil
		}
		return v.guess(), nil
	}
	x, err := f.evaluate(n)
	switch {
	case err != nil:
		return 0, err
	case x < 0:
		return 0, errors.Errorf("the size is %d", x)
	}
	if read {
		v.asked = append(v.asked, x)
	}
	return x, nil
}

// guess is a size that is made up in a probe.
func (v *variant) guess() int {
	const declared = 32 // axes that have the sizes before it
	v.guesses++
	return probeSize(v.probe, declared+v.guesses)
}

// readsInputs says that a node depends on a parameter.
func (f *Function) readsInputs(n *Node) bool {
	if n.op == compute.OpTypeParameter {
		return true
	}
	return slices.ContainsFunc(n.in, f.readsInputs)
}

// evaluate computes a node's number while its graph is being made.
func (f *Function) evaluate(n *Node) (x int, err error) {
	b := f.builder.backend
	p := compileProgram(f, []*Node{n})
	s := b.stream()
	defer b.giveBack(s)
	err = s.Scope(func(sc *millrace.Scope) error {
		args := make([]*millrace.Tensor, len(p.params))
		for i := range args {
			if i >= len(f.variant.inputs) {
				continue // of a node that reads none
			}
			c := f.variant.inputs[i]
			if c.t == nil {
				if c, err = c.onDevice(b, f.params[i].shape); err != nil {
					return err
				}
				defer c.drop()
			}
			args[i] = c.t.To(sc)
		}
		r := &run{backend: b, sc: sc}
		out := r.record(p, args)
		if r.err != nil {
			return r.err
		}
		t := out[0]
		if dt := b.sizeDType(); n.shape.DType != dt {
			t = convert(r, t, n.shape.DType, dt)
		}
		if b.sizeDType() == dtypes.Int32 {
			number, err := millrace.Item[int32](t)
			x = int(number)
			return err
		}
		number, err := millrace.Item[int64](t)
		x = int(number)
		return err
	})
	return x, err
}

// wholeAxes says along which axes of x a dimension of -1 is all there is: those that
// are dynamic in a template.
func (f *Function) wholeAxes(x compute.Value, dims []int) []bool {
	whole := make([]bool, len(dims))
	n, err := f.builder.node(x)
	if err != nil {
		return whole
	}
	for i, d := range dims {
		whole[i] = d == shapes.DynamicDim && i < n.shape.Rank() && n.shape.Dimensions[i] == shapes.DynamicDim
	}
	return whole
}

// filledIn are dims with the sizes of a shape along whole axes.
func filledIn(dims []int, whole []bool, of shapes.Shape) []int {
	dims = slices.Clone(dims)
	for i, w := range whole {
		if w {
			dims[i] = of.Dimensions[i]
		}
	}
	return dims
}

// axesInOrder are the names of the dynamic axes of x.
func (f *Function) axesInOrder(x compute.Value) (names []string) {
	n, err := f.builder.node(x)
	if err != nil {
		return nil
	}
	for i, d := range n.shape.Dimensions {
		if d == shapes.DynamicDim {
			names = append(names, n.shape.AxisName(i))
		}
	}
	return names
}

// inOrder are dims, of which each -1 is the next of these axes.
func (f *Function) inOrder(dims []int, axes []string) ([]int, error) {
	if len(axes) == 0 {
		return dims, nil
	}
	here := slices.Clone(dims)
	for i, d := range dims {
		if d != shapes.DynamicDim {
			continue
		}
		if len(axes) == 0 {
			return nil, errors.Errorf("dimensions %v have more dynamic axes than there are", dims)
		}
		here[i] = f.axisSize(axes[0])
		axes = axes[1:]
	}
	return here, nil
}
