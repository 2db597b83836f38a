package gomlxbackend

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// applyMany records a node with several results, each of them a tensor of its
// own. Closures' captured values are behind the operands.
type applyMany func(r *run, in []*millrace.Tensor) []*millrace.Tensor

// NewFunction starts a function that others can call.
func (b *Builder) NewFunction(name string) (compute.Function, error) {
	switch {
	case b.compiled:
		return nil, errors.Errorf("NewFunction(%q): %q is compiled already", name, b.name)
	case name == "" || b.names[name]:
		return nil, errors.Errorf("NewFunction(%q): the name must be new, and not empty", name)
	}
	b.names[name] = true
	return b.function(name, nil), nil
}

// Closure starts a function without a name that can use this one's values.
func (f *Function) Closure() (compute.Function, error) {
	if err := f.open(); err != nil {
		return nil, errors.WithMessage(err, "Closure")
	}
	return f.builder.function("", f), nil
}

// capture is a value of a function around this one, as a node of this one.
func (f *Function) capture(n *Node) (*Node, error) {
	if n.isComplex() {
		return f.pairOf(compute.OpTypeCapturedValue, func(i int) (*Node, error) { return f.capture(n.parts()[i]) })
	}
	if n.isWide() {
		flat, err := f.capture(n.flat)
		if err != nil {
			return nil, err
		}
		return f.wide(flat, n.shape), nil
	}
	for around := f.parent; ; around = around.parent {
		if around == nil {
			return nil, errors.Errorf("a value of function %q in function %q", n.fn.name, f.name)
		}
		if around == n.fn {
			break
		}
	}
	if n.shape.IsDynamic() {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "backend %q has no closures with dynamic axes, and captures %s", Name, n.shape)
	}
	if n.fn != f.parent {
		outer, err := f.parent.capture(n)
		if err != nil {
			return nil, err
		}
		n = outer
	}
	for _, c := range f.captures {
		if c.source == n {
			return c, nil
		}
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	c := f.append(&Node{op: compute.OpTypeCapturedValue, shape: n.shape, source: n, splat: n.splat})
	f.captures = append(f.captures, c)
	return c, nil
}

// sources are the values that a closure captures, as nodes of the function
// around it.
func (f *Function) sources() []*Node {
	var list []*Node
	for _, c := range f.captures {
		list = append(list, f.parent.current(c.source))
	}
	return list
}

// closure checks a function given to an op: a finished one, around which is
// this one, or none where named is set.
func (f *Function) closure(what string, g compute.Function, named bool) (*Function, error) {
	c, ok := g.(*Function)
	switch {
	case !ok || c == nil:
		return nil, errors.Errorf("%s is a %T and no function of backend %q", what, g, Name)
	case c.builder != f.builder:
		return nil, errors.Errorf("%s is of builder %q, not %q", what, c.builder.name, f.builder.name)
	case !named && c.parent != f:
		return nil, errors.Errorf("%s is not a closure of function %q", what, f.name)
	case named && c.parent != nil && c.parent != f:
		return nil, errors.Errorf("%s is a closure of another function", what)
	case !c.returned:
		return nil, errors.Errorf("%s has not returned", what)
	}
	return c, nil
}

// takes reports parameters of a closure that are not of these shapes.
func (f *Function) takes(what string, want []shapes.Shape) error {
	if len(f.params) != len(want) {
		return errors.Errorf("%s has %d parameters for %d values", what, len(f.params), len(want))
	}
	for i, p := range f.params {
		if !p.shape.Equal(want[i]) {
			return errors.Errorf("%s's parameter %d is a %s, the value a %s", what, i, p.shape, want[i])
		}
	}
	return nil
}

// gives reports results of a closure that are not of these shapes.
func (f *Function) gives(what string, want []shapes.Shape) error {
	if len(f.outputs) != len(want) {
		return errors.Errorf("%s has %d results instead of %d", what, len(f.outputs), len(want))
	}
	for i, p := range f.outputs {
		if !p.shape.Equal(want[i]) {
			return errors.Errorf("%s's result %d is a %s and not a %s", what, i, p.shape, want[i])
		}
	}
	return nil
}

func shapesOf(nodes []*Node) []shapes.Shape {
	var list []shapes.Shape
	for _, n := range nodes {
		list = append(list, n.shape)
	}
	return list
}

// buildMany is build for ops with several results.
func (f *Function) buildMany(op compute.OpType, vs []compute.Value, make func(in []*Node) (*Node, error)) ([]compute.Value, error) {
	nodes, err := f.addOp(op, len(vs), vs, nil, func(in []*Node) ([]*Node, error) {
		if err := unpacked(op, shapesOf(in)...); err != nil {
			return nil, err
		}
		n, err := f.made(op, in, make)
		if err != nil {
			return nil, err
		}
		return n.values, nil
	})
	if err != nil {
		return nil, err
	}
	var list []compute.Value
	for _, n := range nodes {
		list = append(list, n)
	}
	return list, nil
}

// addMany is a node with results of these shapes, each a node too. What do is
// given and gives has both parts of complex values, one after the other.
func (f *Function) addMany(op compute.OpType, results []shapes.Shape, do applyMany, in ...*Node) *Node {
	n := f.append(&Node{op: op, shape: shapes.Invalid(), in: apart(in), doMany: do})
	add := func(s shapes.Shape, dt dtypes.DType) *Node {
		r := f.append(&Node{op: op, shape: withDType(s, dt), in: []*Node{n}, name: fmt.Sprint("result ", len(n.results)),
			isView: true}) // it may be one
		n.results = append(n.results, r)
		return r
	}
	for _, s := range results {
		if s.Rank() > maxRank {
			n.values = append(n.values, f.wide(add(shapes.Make(s.DType, s.Size()), s.DType), s))
		} else if row, ok := complexRows[s.DType]; ok {
			n.values = append(n.values, f.pair(op, add(s, row.part), add(s, row.part)))
		} else {
			n.values = append(n.values, add(s, s.DType))
		}
	}
	return n
}

// nested records a closure's graph; its results are tensors of their own. The
// arguments stay the caller's.
func (r *run) nested(g *Function, args []*millrace.Tensor) []*millrace.Tensor {
	temps, site := r.temps, r.site
	r.temps = nil
	outs := r.record(g.prog, args)
	r.at(site)
	r.temps = temps
	for i, t := range outs {
		if slices.Contains(args, t) || slices.Contains(outs[:i], t) {
			outs[i] = t.Reshape(t.Shape()...) // another handle of the same elements
		}
	}
	return outs
}

// Call is the results of another function.
func (f *Function) Call(target compute.Function, inputs ...compute.Value) ([]compute.Value, error) {
	const op = compute.OpTypeCall
	return f.buildMany(op, inputs, func(in []*Node) (*Node, error) {
		g, err := f.closure("the function", target, true)
		if err != nil {
			return nil, err
		}
		if err := g.takes(fmt.Sprintf("function %q", g.name), shapesOf(in)); err != nil {
			return nil, err
		}
		return f.addMany(op, shapesOf(g.outputs), func(r *run, in []*millrace.Tensor) []*millrace.Tensor {
			return r.nested(g, in)
		}, append(in, g.sources()...)...), nil
	})
}

// If is the results of one of two closures. Which one is known when it is
// executed: that waits for the predicate.
func (f *Function) If(pred compute.Value, onTrue, onFalse compute.Function) ([]compute.Value, error) {
	const op = compute.OpTypeIf
	return f.buildMany(op, []compute.Value{pred}, func(in []*Node) (*Node, error) {
		if s := in[0].shape; !s.IsScalar() || s.DType != dtypes.Bool {
			return nil, errors.New("the predicate must be a scalar bool")
		}
		yes, err := f.closure("the true branch", onTrue, false)
		if err != nil {
			return nil, err
		}
		no, err := f.closure("the false branch", onFalse, false)
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(yes.takes("the true branch", nil), no.takes("the false branch", nil)); err != nil {
			return nil, err
		}
		if err := no.gives("the false branch", shapesOf(yes.outputs)); err != nil {
			return nil, err
		}
		split := 1 + len(yes.captures)
		return f.addMany(op, shapesOf(yes.outputs), func(r *run, in []*millrace.Tensor) []*millrace.Tensor {
			taken, err := millrace.Item[bool](in[0])
			switch {
			case err != nil:
				return r.fail(err, len(yes.prog.outputs))
			case taken:
				return r.nested(yes, in[1:split])
			}
			return r.nested(no, in[split:])
		}, slices.Concat(in, yes.sources(), no.sources())...), nil
	})
}

// While runs a closure on a state as long as another one gives true for it.
// Each round waits for that.
func (f *Function) While(cond, body compute.Function, state ...compute.Value) ([]compute.Value, error) {
	const op = compute.OpTypeWhile
	return f.buildMany(op, state, func(in []*Node) (*Node, error) {
		if len(in) == 0 {
			return nil, errors.New("needs at least one value of state")
		}
		test, err := f.closure("the condition", cond, false)
		if err != nil {
			return nil, err
		}
		step, err := f.closure("the body", body, false)
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(test.takes("the condition", shapesOf(in)), step.takes("the body", shapesOf(in))); err != nil {
			return nil, err
		}
		if err := test.gives("the condition", []shapes.Shape{shapes.Make(dtypes.Bool)}); err != nil {
			return nil, err
		}
		if err := step.gives("the body", shapesOf(in)); err != nil {
			return nil, err
		}
		n := len(apart(in))
		split := n + len(test.captures)
		return f.addMany(op, shapesOf(in), func(r *run, in []*millrace.Tensor) []*millrace.Tensor {
			return r.loop(test, step, in[:n], in[n:split], in[split:])
		}, slices.Concat(in, test.sources(), step.sources())...), nil
	})
}

// loop is While at run time. The first state is the caller's, the others are
// released behind the round that used them.
func (r *run) loop(test, step *Function, first, testCaptures, stepCaptures []*millrace.Tensor) []*millrace.Tensor {
	state := make([]*millrace.Tensor, len(first))
	for i, t := range first {
		state[i] = t.Reshape(t.Shape()...)
	}
	for {
		more := r.nested(test, slices.Concat(state, testCaptures))[0]
		again, err := millrace.Item[bool](more)
		more.Release()
		if err != nil {
			return r.fail(err, len(state))
		}
		if !again {
			return state
		}
		next := r.nested(step, slices.Concat(state, stepCaptures))
		if r.err != nil {
			return r.fail(r.err, len(state))
		}
		for _, t := range state {
			t.Release()
		}
		state = next
	}
}

// fail notes why a run cannot go on. What is recorded from then on is of no
// use, and harmless: methods of a nil tensor give one that carries an error.
func (r *run) fail(err error, results int) []*millrace.Tensor {
	if r.err == nil {
		r.err = err
	}
	return make([]*millrace.Tensor, results)
}
