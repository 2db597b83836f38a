package gomlxbackend

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// TemplateExecutable is a compiled graph with dynamic axes. It is safe for
// concurrent use. It is one recording, which takes all sizes: a graph is made for the
// first of them, and where others turn out to differ from it by more than sizes. Where
// inputs' values are sizes it keeps the graphs of those that it met last.
type TemplateExecutable struct {
	builder *Builder
	params  *parameters
	outputs []*Node
	own     []*millrace.Tensor // constants that no size changes
	general *Executable        // of all sizes; nil where values decide
	made    map[string]*made
	clock   int64
	closed  atomic.Bool
}

// made is a graph of one size.
type made struct {
	*Executable
	used  int64 // when
	users int
}

// mostSizes is how many sizes' graphs are kept.
const mostSizes = 64

var _ compute.Executable = (*TemplateExecutable)(nil)

func newTemplateExecutable(b *Builder) *TemplateExecutable {
	e := &TemplateExecutable{builder: b, params: parametersOf(b.main.params), outputs: b.main.outputs, own: b.constants, made: map[string]*made{}}
	wide := func(n *Node) bool { return n.shape.Rank() > maxRank } // whose tensors have other axes
	if b.main.template.asks || slices.ContainsFunc(e.params.nodes, wide) || slices.ContainsFunc(e.outputs, wide) {
		return e
	}
	var axes []millrace.Axes
	for _, n := range e.params.nodes {
		names := make(millrace.Axes, n.shape.Rank())
		for i, d := range n.shape.Dimensions {
			if d == shapes.DynamicDim {
				names[i] = n.shape.AxisName(i)
			}
		}
		axes = append(axes, names)
	}
	e.general = &Executable{backend: b.backend, name: b.name, params: e.params, outputs: e.outputs}
	e.general.rec = millrace.NewRecording(e.walk, axes...)
	return e
}

// walk records the graph of the arguments' sizes.
func (e *TemplateExecutable) walk(sc *millrace.Scope, args []*millrace.Tensor) ([]*millrace.Tensor, error) {
	size := map[string]int{}
	for i, n := range e.params.nodes {
		dims := args[i].Shape()
		for k, d := range n.shape.Dimensions {
			if d == shapes.DynamicDim {
				size[n.shape.AxisName(k)] = dims[k]
			}
		}
	}
	t := e.builder.main.template
	t.mu.Lock()
	x, _, err := e.make(size, nil)
	t.mu.Unlock()
	if err != nil {
		return nil, withAxes(err, size)
	}
	defer x.Finalize()
	return x.walk(sc, args)
}

// Finalize gives the memory of constants back.
func (e *TemplateExecutable) Finalize() {
	if e.closed.Swap(true) {
		return
	}
	t := e.builder.main.template
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range e.made {
		m.Finalize()
	}
	if e.general != nil {
		e.general.Finalize()
	}
	for _, c := range append(e.own, e.builder.kept()...) {
		c.Release()
	}
}

// Inputs are the parameters' names and shapes.
func (e *TemplateExecutable) Inputs() (names []string, inputs []shapes.Shape) {
	for _, n := range e.params.nodes {
		names, inputs = append(names, n.name), append(inputs, n.shape.Clone())
	}
	return names, inputs
}

// Outputs are the results' shapes.
func (e *TemplateExecutable) Outputs() (outputs []shapes.Shape) {
	for _, n := range e.outputs {
		outputs = append(outputs, n.shape.Clone())
	}
	return outputs
}

// Execute runs the graph at the sizes that the inputs have. At sizes that are new
// nothing is planned or compiled that there is from others.
func (e *TemplateExecutable) Execute(inputs []compute.Buffer, donate []bool, device compute.DeviceNum) ([]compute.Buffer, error) {
	if e.general != nil {
		return e.general.Execute(inputs, donate, device)
	}
	if err := e.params.check(inputs); err != nil {
		return nil, errors.WithMessagef(err, "Execute of %q", e.builder.name)
	}
	size := e.params.sizes(inputs)
	m, err := e.take(size, inputs)
	if err != nil {
		return nil, errors.WithMessagef(withAxes(err, size), "Execute of %q", e.builder.name)
	}
	defer func() {
		t := e.builder.main.template
		t.mu.Lock()
		m.users--
		t.mu.Unlock()
	}()
	return m.Execute(inputs, donate, device)
}

// take is the graph of these sizes, in use until its users are one less.
func (e *TemplateExecutable) take(size map[string]int, inputs []compute.Buffer) (*made, error) {
	t := e.builder.main.template
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.closed.Load() {
		return nil, errors.New("the executable was finalized")
	}
	key := sizesText(size)
	e.clock++
	m := e.made[key]
	if m == nil || t.asks {
		fresh, asked, err := e.make(size, inputs)
		if err != nil {
			return nil, err
		}
		if t.asks {
			key += fmt.Sprint(asked)
			m = e.made[key]
		}
		if m != nil {
			fresh.Finalize()
		} else {
			m = &made{Executable: fresh}
			e.made[key] = m
		}
	}
	m.used = e.clock
	m.users++
	for len(e.made) > mostSizes && e.drop() {
	}
	return m, nil
}

// drop gives up the graph that was not used for the longest time, if one is not in
// use.
func (e *TemplateExecutable) drop() bool {
	oldest := ""
	for key, m := range e.made {
		if m.users == 0 && (oldest == "" || m.used < e.made[oldest].used) {
			oldest = key
		}
	}
	if oldest == "" {
		return false
	}
	e.made[oldest].Finalize()
	delete(e.made, oldest)
	return true
}

// make is the executable of these sizes, and the sizes that were read from inputs.
func (e *TemplateExecutable) make(size map[string]int, inputs []compute.Buffer) (x *Executable, asked []int, err error) {
	b := e.builder
	f, t := b.main, b.main.template
	here := map[string]int{}
	for name, n := range size {
		here[name] = n
	}
	g := t.made(here)
	for i, in := range inputs {
		buf := in.(*Buffer)
		buf.using.Add(1)
		defer buf.using.Add(-1)
		c, err := buf.content("Execute")
		if err != nil {
			return nil, nil, errors.WithMessagef(err, "input %d (%q)", i, e.params.nodes[i].name)
		}
		g.variant.inputs = append(g.variant.inputs, c)
	}
	b.constants = nil
	defer func() { b.constants = e.own }()
	for _, rc := range t.recipes {
		if _, err = f.follow(g, rc); err != nil {
			for _, c := range b.constants {
				c.Release()
			}
			return nil, nil, errors.WithMessage(err, signature(rc.op, slices.DeleteFunc(slices.Clone(rc.in), func(n *Node) bool { return n == nil })))
		}
	}
	err = f.within(g, func() error {
		for _, n := range e.outputs {
			g.outputs = append(g.outputs, f.current(n))
		}
		g.prog = compileProgram(f, g.outputs)
		x = newExecutable(b, b.constants)
		return nil
	})
	g.variant.inputs = nil
	return x, g.variant.asked, err
}
