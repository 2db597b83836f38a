package gomlxbackend

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// A value of more axes than a tensor can have is a value of one axis and a Node
// that says what it stands for, taken apart while the graph is built as complex ones
// are. Few ops tell all their axes apart: neighbours with which an op does the same
// are one axis to it.

// isWide says that a node is such a value.
func (n *Node) isWide() bool { return n.flat != nil }

func wideAmong(in []*Node) bool {
	return slices.ContainsFunc(in, func(n *Node) bool { return n != nil && n.isWide() })
}

// dimsOf are the dimensions that a tensor of a shape has.
func dimsOf(shape shapes.Shape) []int {
	if shape.Rank() > maxRank {
		return []int{shape.Size()}
	}
	return shape.Dimensions
}

// shaped is a value, of which the elements are those of n, of any number of axes.
func (f *Function) shaped(n *Node, dims []int) (*Node, error) {
	if len(dims) <= maxRank {
		v, err := f.Reshape(n, dims...)
		if err != nil {
			return nil, err
		}
		return v.(*Node), nil
	}
	flat := n.flat
	if flat == nil {
		v, err := f.Reshape(n, n.shape.Size())
		if err != nil {
			return nil, err
		}
		flat = v.(*Node)
	}
	return f.wide(flat, shapes.Shape{DType: n.shape.DType, Dimensions: slices.Clone(dims)}), nil
}

// wide is the value of this shape with the elements of a vector.
func (f *Function) wide(flat *Node, shape shapes.Shape) *Node {
	return &Node{fn: f, id: -1, op: flat.op, shape: shape, flat: flat}
}

// takesWide are the ops that are built from wide values as from others: those that
// see to axes themselves, and those that see none.
var takesWide = map[compute.OpType]bool{
	compute.OpTypeIdentity: true, compute.OpTypeSchedulingBarrier: true, compute.OpTypeReshape: true, compute.OpTypeTranspose: true,
	compute.OpTypeBroadcastInDim: true, compute.OpTypeSlice: true, compute.OpTypeConcatenate: true, compute.OpTypeReverse: true,
	compute.OpTypeDotGeneral: true, compute.OpTypeCall: true, compute.OpTypeIf: true, compute.OpTypeWhile: true,
	compute.OpTypeDynamicDimensionSize: true, compute.OpTypeDynamicShape: true, compute.OpTypeDynamicReshape: true,
}

// eachElement are the ops that do the same with every element.
func eachElement(op compute.OpType) bool {
	_, one := unaryOps[op]
	_, is := predicates[op]
	_, two := binaryOps[op]
	_, than := comparisons[op]
	return one || is || two || than || op == compute.OpTypeWhere || op == compute.OpTypeClamp || op == compute.OpTypeConvertDType
}

// madeWide is an op on values some of which are wide.
func (f *Function) madeWide(op compute.OpType, in []*Node, make func(in []*Node) (*Node, error)) (*Node, error) {
	_, folds := reductions[op]
	switch {
	case takesWide[op] || folds:
		return make(in)
	case !eachElement(op):
		return nil, errors.Wrapf(compute.ErrNotImplemented, "backend %q has it for at most %d axes", Name, maxRank)
	}
	var dims []int // of the result
	for _, n := range in {
		switch {
		case n.shape.IsScalar():
		case dims == nil:
			dims = slices.Clone(n.shape.Dimensions)
		case len(dims) != n.shape.Rank():
			return nil, errors.Errorf("operands of %d and of %d axes", len(dims), n.shape.Rank())
		default:
			for i, d := range n.shape.Dimensions {
				if d != 1 && dims[i] != 1 && d != dims[i] {
					return nil, errors.Errorf("axis %d has %d elements and %d", i, dims[i], d)
				}
				if d != 1 {
					dims[i] = d
				}
			}
		}
	}
	groups := together(dims, func(a, b int) bool {
		for _, n := range in {
			if !n.shape.IsScalar() && (n.shape.Dimensions[a] == 1) != (n.shape.Dimensions[b] == 1) {
				return false
			}
		}
		return true
	})
	merged := slices.Clone(in)
	for i, n := range in {
		if n.shape.IsScalar() {
			continue
		}
		var err error
		if merged[i], err = f.merged(n, groups); err != nil {
			return nil, err
		}
	}
	y, err := make(merged)
	if err != nil {
		return nil, err
	}
	return f.shaped(y, dims)
}

// together are the axes in groups of neighbours that are alike, without those of one
// element.
func together(dims []int, alike func(a, b int) bool) (groups [][]int) {
	for i, d := range dims {
		if d == 1 {
			continue
		}
		if n := len(groups); n > 0 && alike(groups[n-1][0], i) {
			groups[n-1] = append(groups[n-1], i)
		} else {
			groups = append(groups, []int{i})
		}
	}
	return groups
}

// merged is a value with an axis for each group.
func (f *Function) merged(n *Node, groups [][]int) (*Node, error) {
	dims := mergedDims(n.shape.Dimensions, groups)
	if len(dims) > maxRank {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "backend %q tells at most %d axes apart, and not the %d of %v", Name, maxRank, len(dims), dims)
	}
	return f.shaped(n, dims)
}

func mergedDims(dims []int, groups [][]int) []int {
	list := []int{}
	for _, g := range groups {
		n := 1
		for _, axis := range g {
			n *= dims[axis]
		}
		list = append(list, n)
	}
	return list
}

// wideReduce folds along axes.
func (f *Function) wideReduce(op compute.OpType, x *Node, along []int, kept []int) (*Node, error) {
	groups := together(x.shape.Dimensions, func(a, b int) bool { return slices.Contains(along, a) == slices.Contains(along, b) })
	if len(groups) > maxRank {
		order := slices.Clone(along)
		for axis := range x.shape.Rank() {
			if !slices.Contains(along, axis) {
				order = append(order, axis)
			}
		}
		v, err := f.Transpose(x, order...)
		if err != nil {
			return nil, err
		}
		first := make([]int, len(along))
		for i := range first {
			first[i] = i
		}
		return f.wideReduce(op, v.(*Node), first, kept)
	}
	var axes []int
	for i, g := range groups {
		if slices.Contains(along, g[0]) {
			axes = append(axes, i)
		}
	}
	y, err := f.merged(x, groups)
	if err != nil {
		return nil, err
	}
	if len(axes) > 0 {
		v, err := f.reduce(op, y, axes)
		if err != nil {
			return nil, err
		}
		y = v.(*Node)
	}
	return f.shaped(y, kept)
}

// wideTranspose puts axes in another order: those that stay beside each other as one,
// and more of them than there can be a few at a time.
func (f *Function) wideTranspose(x *Node, permutation, dims []int) (*Node, error) {
	var order []int // without axes of one element
	for _, axis := range permutation {
		if x.shape.Dimensions[axis] != 1 {
			order = append(order, axis)
		}
	}
	groups := together(x.shape.Dimensions, func(int, int) bool { return false })
	groups = slices.Collect(joined(groups, func(a, b int) bool {
		i := slices.Index(order, a)
		return i+1 < len(order) && order[i+1] == b
	}))
	if len(groups) > maxRank {
		return f.inTurns(x, permutation)
	}
	y, err := f.merged(x, groups)
	if err != nil {
		return nil, err
	}
	var turned []int
	for _, axis := range order {
		if i := slices.IndexFunc(groups, func(g []int) bool { return g[0] == axis }); i >= 0 {
			turned = append(turned, i)
		}
	}
	v, err := f.Transpose(y, turned...)
	if err != nil {
		return nil, err
	}
	return f.shaped(v.(*Node), dims)
}

// inTurns puts some axes where they belong, behind those that are there, and then the
// others.
func (f *Function) inTurns(x *Node, permutation []int) (*Node, error) {
	const some = 3 // what is before, between and behind them is four more, and what is there one
	there := 0
	for permutation[there] == there {
		there++
	}
	first := slices.Clone(permutation[:min(there+some, len(permutation))])
	for axis := range permutation {
		if !slices.Contains(first, axis) {
			first = append(first, axis)
		}
	}
	y, err := f.Transpose(x, first...)
	if err != nil {
		return nil, err
	}
	then := make([]int, len(permutation))
	for i, axis := range permutation {
		then[i] = slices.Index(first, axis)
	}
	if y, err = f.Transpose(y, then...); err != nil {
		return nil, err
	}
	return y.(*Node), nil
}

// joined puts groups together of which the last axis of one and the first of the next
// are to be.
func joined(groups [][]int, join func(a, b int) bool) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		for len(groups) > 0 {
			g := groups[0]
			for groups = groups[1:]; len(groups) > 0 && join(g[len(g)-1], groups[0][0]); groups = groups[1:] {
				g = append(g, groups[0]...)
			}
			if !yield(g) {
				return
			}
		}
	}
}

// wideSlice cuts along the axes that it does not leave whole.
func (f *Function) wideSlice(x *Node, first, last, step, dims []int) (*Node, error) {
	from := x.shape.Dimensions
	whole := func(i int) bool { return first[i] == 0 && last[i] == from[i] && step[i] == 1 }
	counted := slices.Clone(from) // an axis of one element may be cut too
	for i := range counted {
		if counted[i] == 1 && !whole(i) {
			counted[i] = 2
		}
	}
	groups := together(counted, func(a, b int) bool { return whole(a) && whole(b) })
	y, err := f.merged(x, groups)
	if err != nil {
		return nil, err
	}
	var starts, limits, strides []int
	for i, g := range groups {
		if a := g[0]; whole(a) {
			starts, limits, strides = append(starts, 0), append(limits, y.shape.Dimensions[i]), append(strides, 1)
		} else {
			starts, limits, strides = append(starts, first[a]), append(limits, last[a]), append(strides, step[a])
		}
	}
	v, err := f.Slice(y, starts, limits, strides)
	if err != nil {
		return nil, err
	}
	return f.shaped(v.(*Node), dims)
}

// wideReverse turns the order along axes.
func (f *Function) wideReverse(x *Node, axes []int) (*Node, error) {
	turned := func(i int) bool { return slices.Contains(axes, i) }
	groups := together(x.shape.Dimensions, func(a, b int) bool { return turned(a) == turned(b) })
	y, err := f.merged(x, groups)
	if err != nil {
		return nil, err
	}
	var list []int
	for i, g := range groups {
		if turned(g[0]) {
			list = append(list, i)
		}
	}
	v, err := f.Reverse(y, list...)
	if err != nil {
		return nil, err
	}
	return f.shaped(v.(*Node), x.shape.Dimensions)
}

// wideConcatenate knows what is before an axis, along it and behind it.
func (f *Function) wideConcatenate(in []*Node, axis int, dims []int) (*Node, error) {
	var parts []compute.Value
	for _, n := range in {
		d := n.shape.Dimensions
		p, err := f.shaped(n, []int{product(d[:axis]), d[axis], product(d[axis+1:])})
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	v, err := f.Concatenate(1, parts...)
	if err != nil {
		return nil, err
	}
	return f.shaped(v.(*Node), dims)
}

// wideBroadcast repeats x, which has the axes of the result in these columns or 1, along
// those that have 1.
func (f *Function) wideBroadcast(x *Node, column []int, shape shapes.Shape) (*Node, error) {
	dims := shape.Dimensions
	groups := together(dims, func(a, b int) bool { return (column[a] == dims[a]) == (column[b] == dims[b]) })
	y, err := f.shaped(x, column)
	if err == nil {
		y, err = f.merged(y, groups)
	}
	if err != nil {
		return nil, err
	}
	axes := make([]int, len(groups))
	for i := range axes {
		axes[i] = i
	}
	v, err := f.BroadcastInDim(y, shapes.Shape{DType: shape.DType, Dimensions: mergedDims(dims, groups)}, axes)
	if err != nil {
		return nil, err
	}
	return f.shaped(v.(*Node), dims)
}

// wideDot multiplies matrices: of each operand the batch axes are one, those that are
// summed and the others.
func (f *Function) wideDot(in []*Node, batch, contract [2][]int, config compute.DotGeneralConfig, dims []int) (*Node, error) {
	var sides [2]*Node
	for i, n := range in {
		free := kept(n.shape.Rank(), slices.Concat(batch[i], contract[i]))
		v, err := f.Transpose(n, slices.Concat(batch[i], free, contract[i])...)
		if err != nil {
			return nil, err
		}
		if sides[i], err = f.shaped(v.(*Node), mergedDims(n.shape.Dimensions, [][]int{batch[i], free, contract[i]})); err != nil {
			return nil, err
		}
	}
	v, err := f.DotGeneral(sides[0], []int{2}, []int{0}, sides[1], []int{2}, []int{0}, config)
	if err != nil {
		return nil, err
	}
	return f.shaped(v.(*Node), dims)
}

// wideIota counts along an axis.
func (f *Function) wideIota(shape shapes.Shape, axis int) (*Node, error) {
	d := shape.Dimensions
	v, err := f.Iota(shapes.Make(shape.DType, product(d[:axis]), d[axis], product(d[axis+1:])), 1)
	if err != nil {
		return nil, err
	}
	return f.shaped(v.(*Node), d)
}
