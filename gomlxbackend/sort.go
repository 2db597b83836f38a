package gomlxbackend

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Sort orders its inputs together along an axis, so that the comparator gives
// false for no element and one before it. The comparator's parameters come in
// pairs, an element of each input from either place. Equal elements keep their
// order, whether that is asked for or not.
//
// Comparing one input by less or greater is a sort of Millrace's. Any other
// comparator of elementwise ops is recorded on whole vectors of pairs, in a
// bitonic network.
func (f *Function) Sort(comparator compute.Function, axis int, isStable bool, inputs ...compute.Value) ([]compute.Value, error) {
	const op = compute.OpTypeSort
	return f.buildMany(op, inputs, func(in []*Node) (*Node, error) {
		if len(in) == 0 {
			return nil, errors.New("needs at least one input")
		}
		dims := in[0].shape.Dimensions
		if axis < 0 {
			axis += len(dims)
		}
		if err := checkAxes(in[0].shape, []int{axis}); err != nil {
			return nil, err
		}
		g, err := f.closure("the comparator", comparator, false)
		if err != nil {
			return nil, err
		}
		var pairs []shapes.Shape
		for _, n := range in {
			if !slices.Equal(n.shape.Dimensions, dims) {
				return nil, errors.New("the inputs differ in shape")
			}
			pairs = append(pairs, shapes.Make(n.shape.DType), shapes.Make(n.shape.DType))
		}
		if err := g.takes("the comparator", pairs); err != nil {
			return nil, err
		}
		if err := g.gives("the comparator", []shapes.Shape{shapes.Make(dtypes.Bool)}); err != nil {
			return nil, err
		}
		s := sorter{axis: axis, n: dims[axis], inputs: len(apart(in)), compare: g, position: millrace.Int32}
		for _, n := range in {
			s.parts = append(s.parts, len(n.parts()))
		}
		if s.n > math.MaxInt32/2 {
			s.position = millrace.Int64
		}
		do := s.network
		if key, descending, ok := keyOf(g); ok {
			do = s.byKey(key, descending, apart(in)[key].shape.DType, isStable)
		} else if err := liftable(g); err != nil {
			return nil, err
		}
		return f.addMany(op, shapesOf(in), do, append(in, g.sources()...)...), nil
	})
}

// sorter is what a Sort knows beforehand.
type sorter struct {
	axis, n, inputs int
	parts           []int // of each input: a complex one is two inputs
	compare         *Function
	position        millrace.DType
}

// keyOf recognises comparators that compare the two elements of one input.
func keyOf(g *Function) (key int, descending, ok bool) {
	n := g.outputs[0]
	down := n.op == compute.OpTypeGreaterThan
	if !down && n.op != compute.OpTypeLessThan {
		return 0, false, false
	}
	var first, second []*Node // the elements from either place
	for i := 0; i < len(g.params); i += 2 {
		first, second = append(first, g.params[i].parts()...), append(second, g.params[i+1].parts()...)
	}
	if key = slices.Index(first, n.in[0]); key >= 0 && second[key] == n.in[1] {
		return key, down, true
	}
	if key = slices.Index(first, n.in[1]); key >= 0 && second[key] == n.in[0] {
		return key, !down, true
	}
	return 0, false, false
}

// byKey sorts one input and takes the others in its order. The two zeros are
// equal to the comparator.
func (s sorter) byKey(key int, descending bool, dt dtypes.DType, isStable bool) applyMany {
	return func(r *run, in []*millrace.Tensor) []*millrace.Tensor {
		x := in[key]
		switch {
		case dt == dtypes.Bool:
			x = r.temp(x.Cast(millrace.Int32))
		case s.inputs == 1 && (dt.IsInt() || !isStable) && descending:
			return []*millrace.Tensor{x.SortDescending(s.axis)}
		case s.inputs == 1 && (dt.IsInt() || !isStable):
			return []*millrace.Tensor{x.Sort(s.axis)}
		case dt.IsFloat():
			x = r.temp(x.AddScalar(0))
		}
		order := r.temp(x.ArgSortAs(s.position, s.axis, descending))
		var out []*millrace.Tensor
		for _, t := range in[:s.inputs] {
			out = append(out, t.TakeAlong(order, s.axis, millrace.IndexClamp))
		}
		return out
	}
}

// liftable reports ops of a comparator that cannot be recorded on vectors in
// place of scalars.
func liftable(g *Function) error {
	for _, s := range g.prog.steps {
		op := s.node.op
		_, un := unaryOps[op]
		_, pred := predicates[op]
		_, bin := binaryOps[op]
		_, comp := comparisons[op]
		switch {
		case !s.node.shape.IsScalar():
		case un || pred || bin || comp:
			continue
		case op == compute.OpTypeConstant || op == compute.OpTypeWhere || op == compute.OpTypeClamp || op == compute.OpTypeConvertDType:
			continue
		}
		return errors.Wrapf(compute.ErrNotImplemented, "backend %q has no comparators with %s", Name, op)
	}
	return nil
}

// network sorts positions by comparing what lies there: a bitonic network on a
// power of two of them, of which those that are too many come last. Equal
// elements are told apart by their positions.
func (s sorter) network(r *run, in []*millrace.Tensor) []*millrace.Tensor {
	if in[0].Len() == 0 || s.n == 1 {
		var out []*millrace.Tensor
		for _, t := range in[:s.inputs] {
			out = append(out, t.Reshape(t.Shape()...))
		}
		return out
	}
	// The axis goes to the end, the others become one.
	dims := in[0].Shape()
	order := append(kept(len(dims), []int{s.axis}), s.axis)
	var moved []int
	back := make([]int, len(dims))
	for i, a := range order {
		moved, back[a] = append(moved, dims[a]), i
	}
	rows := in[0].Len() / s.n
	data := make([]*millrace.Tensor, s.inputs)
	for i := range data {
		data[i] = r.temp(r.temp(in[i].Permute(order...)).Reshape(rows, s.n))
	}
	size := 2
	for size < s.n {
		size *= 2
	}
	line := r.temp(millrace.ArangeOn(r.sc, s.position, 0, float64(size), 1))
	at := line.Expand(rows, size)
	for k := 2; k <= size; k *= 2 {
		for j := k / 2; j > 0; j /= 2 {
			mark := len(r.temps)
			r.temp(at)
			at = s.exchange(r, at, data, in[s.inputs:], rows, size, k, j)
			for _, t := range r.temps[mark:] {
				t.Release()
			}
			r.temps = r.temps[:mark]
			// Stages run one after another, so that all have one plan: what reads two
			// places of a stage must not compute both again from the stage before.
			if err := at.Eval(); err != nil {
				at.Release()
				return r.fail(err, s.inputs)
			}
		}
	}
	at = r.temp(r.temp(at).Slice(millrace.All, millrace.R(0, s.n)))
	var out []*millrace.Tensor
	for _, t := range data {
		taken := r.temp(t.TakeAlong(at, 1, millrace.IndexClamp))
		out = append(out, r.temp(taken.Reshape(moved...)).Permute(back...))
	}
	return out
}

// exchange is one stage of the network: positions j apart are put in order,
// which is falling in every other block of k.
func (s sorter) exchange(r *run, at *millrace.Tensor, data, captures []*millrace.Tensor, rows, size, k, j int) *millrace.Tensor {
	blocks := size / (2 * j)
	pairs := r.temp(at.Reshape(rows, blocks, 2, j))
	x := r.temp(pairs.Slice(millrace.All, millrace.All, millrace.At(0)))
	y := r.temp(pairs.Slice(millrace.All, millrace.All, millrace.At(1)))
	first := r.temp(s.precedes(r, x, y, data, captures, rows))
	block := r.temp(millrace.ArangeOn(r.sc, s.position, 0, float64(blocks), 1))
	rising := r.temp(r.temp(r.temp(block.MulScalar(float64(2 * j))).BitAndScalar(float64(k))).EqScalar(0))
	stay := r.temp(first.Eq(r.temp(rising.Reshape(blocks, 1))))
	low, high := r.temp(millrace.Where(stay, x, y)), r.temp(millrace.Where(stay, y, x))
	return r.temp(millrace.Stack(2, low, high)).Reshape(rows, size)
}

// precedes is where the element at a position comes before that at another one.
func (s sorter) precedes(r *run, x, y *millrace.Tensor, data, captures []*millrace.Tensor, rows int) *millrace.Tensor {
	shape := x.Shape()
	at := func(p *millrace.Tensor) []*millrace.Tensor {
		flat := r.temp(p.Reshape(rows, p.Len()/rows))
		var list []*millrace.Tensor
		for _, t := range data {
			list = append(list, r.temp(r.temp(t.TakeAlong(flat, 1, millrace.IndexClamp)).Reshape(shape...)))
		}
		return list
	}
	xs, ys := at(x), at(y)
	compare := func(xs, ys []*millrace.Tensor) *millrace.Tensor {
		var args []*millrace.Tensor
		at := 0
		for _, n := range s.parts {
			args = append(append(args, xs[at:at+n]...), ys[at:at+n]...)
			at += n
		}
		return r.temp(r.nested(s.compare, slices.Concat(args, captures))[0])
	}
	less, greater := compare(xs, ys), compare(ys, xs)
	first := r.temp(x.Lt(y))
	decided := r.temp(less.Ne(greater))
	before := r.temp(millrace.Where(decided, less, first))
	// Positions behind the last element come last.
	real, other := r.temp(x.LtScalar(float64(s.n))), r.temp(y.LtScalar(float64(s.n)))
	return millrace.Where(r.temp(real.Eq(other)), before, real)
}
