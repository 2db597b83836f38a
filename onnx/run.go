package onnx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// run is one run of a model.
type run struct {
	m      *Model
	ctx    context.Context
	place  millrace.Place
	scope  *millrace.Scope // nil in a forward pass
	pass   *nn.Ctx
	number int64 // of this run, from 1
	draws  int   // of random numbers so far
}

// errPanic is in the error of an op that panicked, which is a fault of this package.
var errPanic = errors.New("panic")

// frame has the values of a graph's names during a run.
type frame struct {
	r     *run
	g     *graph
	outer *frame
	attrs map[string]*attr // of the function whose body this is
	vars  map[string]*value
	empty map[string]bool // optional inputs of a function that have no value
}

func (r *run) model(in map[string]*millrace.Tensor) (map[string]*millrace.Tensor, error) {
	r.number = r.m.runs.Add(1)
	g := r.m.graph
	values, sizes := make([]*value, len(g.inputs)), map[string]int{}
	for i, want := range g.inputs {
		t := in[want.name]
		if t == nil {
			return nil, r.fail(fmt.Errorf("input %q is missing", want.name))
		}
		if err := t.Err(); err != nil {
			return nil, r.fail(fmt.Errorf("input %q: %w", want.name, err))
		}
		if err := want.fits(t.DType(), t.Shape(), sizes); err != nil {
			return nil, r.fail(fmt.Errorf("input %q: %w", want.name, err))
		}
		if r.scope != nil {
			t = t.To(r.scope)
		}
		values[i] = &value{t: t, owner: ofModel}
	}
	for name := range in {
		if !slices.ContainsFunc(g.inputs, func(i input) bool { return i.name == name }) {
			return nil, r.fail(fmt.Errorf("the model has no input %q; it has %q", name, r.m.Inputs()))
		}
	}
	results, err := r.graph(g, nil, nil, values)
	if err != nil {
		return nil, r.fail(err)
	}
	out := map[string]*millrace.Tensor{}
	for i, name := range g.outputs {
		t, err := results[i].tensor(r.place)
		if err != nil {
			return nil, r.fail(err)
		}
		if r.scope != nil { // the caller's own handle, also of a weight or an input
			t = r.scope.Keep(t.To(r.scope))
		}
		out[name] = t
	}
	return out, nil
}

func (r *run) fail(err error) error { return fmt.Errorf("onnx: %s: %w", r.m.name, err) }

// graph runs a graph with values for its inputs and returns its outputs.
func (r *run) graph(g *graph, outer *frame, attrs map[string]*attr, in []*value) ([]*value, error) {
	if len(in) != len(g.inputs) {
		return nil, fmt.Errorf("graph %q has %d inputs and gets %d", g.name, len(g.inputs), len(in))
	}
	f := &frame{r: r, g: g, outer: outer, attrs: attrs, vars: map[string]*value{}}
	for i, v := range in {
		f.vars[g.inputs[i].name] = v
	}
	return f.run()
}

// run runs the nodes of a frame whose inputs are set.
func (f *frame) run() ([]*value, error) {
	for i, n := range f.g.nodes {
		if err := f.r.ctx.Err(); err != nil {
			return nil, err
		}
		if err := f.node(n); err != nil {
			return nil, fmt.Errorf("%v: %w", n, err)
		}
		for _, name := range f.g.names[i] {
			f.drop(name)
		}
	}
	out := make([]*value, len(f.g.outputs))
	for i, name := range f.g.outputs {
		if out[i] = f.lookup(name); out[i] == nil {
			return nil, fmt.Errorf("output %q has no value", name)
		}
	}
	return out, nil
}

// lookup finds a name in the frame or around it; nil if it is empty or has no value.
func (f *frame) lookup(name string) *value {
	if name == "" {
		return nil
	}
	for ; f != nil; f = f.outer {
		if v := f.vars[name]; v != nil {
			return v
		}
		if v := f.g.consts[name]; v != nil {
			return v
		}
		if p := f.g.params[name]; p != nil {
			v := &value{t: p.In(f.r.pass), owner: ofModel}
			f.vars[name] = v
			return v
		}
	}
	return nil
}

// absent reports whether a name is an optional input, without a value, of the function around it.
func (f *frame) absent(name string) bool {
	for ; f != nil; f = f.outer {
		if f.empty[name] {
			return true
		}
	}
	return false
}

// node runs a node.
func (f *frame) node(n *node) error {
	c := &call{f: f, n: n}
	for _, name := range n.inputs {
		v := f.lookup(name)
		if name != "" && v == nil && !f.absent(name) {
			return fmt.Errorf("input %q has no value", name)
		}
		c.in = append(c.in, v)
	}
	out, err := c.run()
	if err != nil {
		return err
	}
	for i, name := range n.outputs {
		if name == "" {
			continue
		}
		if i >= len(out) || out[i] == nil {
			return fmt.Errorf("%w: output %d (%q)", millrace.ErrUnsupported, i, name)
		}
		f.bind(name, out[i], c.in)
	}
	return nil
}

// ofModel owns the values that nodes do not make: weights, constants and the inputs of a run.
var ofModel = new(frame)

// bind gives a name its value. The frame owns the values that its nodes make.
func (f *frame) bind(name string, v *value, in []*value) {
	if v.owner == nil && !slices.Contains(in, v) || v.owner != nil && v.owner.outer == f {
		v.owner, v.names = f, 0
	}
	if v.owner == f {
		v.names++
	}
	f.vars[name] = v
}

// drop forgets a name after its last use. The tensor of a run with a scope is released, so that its
// memory can be reused before the run ends.
func (f *frame) drop(name string) {
	v := f.vars[name]
	delete(f.vars, name)
	if v == nil || v.owner != f {
		return
	}
	if v.names--; v.names == 0 && v.h == nil && f.r.scope != nil {
		v.t.Release()
	}
}

// run computes the results: those of a function of the model, of the host, or of ops.
func (c *call) run() (out []*value, err error) {
	if c.n.call != nil {
		return c.function()
	}
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	if c.n.row.host != nil && c.allOnHost() {
		h, err := c.n.row.host(c)
		if err == nil && c.err == nil && h != nil {
			return []*value{onHost(h)}, nil
		}
		if err != nil && !errors.Is(err, errLarge) {
			return nil, err
		}
		if c.err != nil {
			return nil, c.err
		}
	}
	out = c.n.row.run(c)
	if c.err != nil {
		return nil, c.err
	}
	for i, v := range out {
		if v == nil || v.h != nil {
			continue
		}
		if err := v.t.Err(); err != nil {
			return nil, err
		}
		for _, in := range c.in { // one value for each handle
			if in != nil && in.has(v.t) {
				out[i] = in
			}
		}
	}
	return out, nil
}

// function runs the body of a function of the model.
func (c *call) function() ([]*value, error) {
	fn := c.n.call
	if len(c.in) > len(fn.inputs) {
		return nil, fmt.Errorf("the function has %d inputs and gets %d", len(fn.inputs), len(c.in))
	}
	attrs := map[string]*attr{}
	for name, a := range fn.defaults {
		attrs[name] = a
	}
	for name := range c.n.attrs {
		if a := c.attr(name); a != nil {
			attrs[name] = a
		}
	}
	f := &frame{r: c.f.r, g: fn.body, attrs: attrs, vars: map[string]*value{}, empty: map[string]bool{}}
	for i, name := range fn.inputs {
		if i < len(c.in) && c.in[i] != nil {
			f.vars[name] = c.in[i]
		} else {
			f.empty[name] = true
		}
	}
	return f.run()
}

func (c *call) allOnHost() bool {
	for _, v := range c.in {
		if v != nil && v.h == nil {
			return false
		}
	}
	return true
}
