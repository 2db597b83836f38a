package gomlxbackend

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	"github.com/pkg/errors"
)

// Builder collects the graph of one computation. It is used by one goroutine.
type Builder struct {
	notimplemented.Builder
	backend   *Backend
	name      string
	main      *Function
	names     map[string]bool // of functions
	constants []*millrace.Tensor
	small     map[string]*Node // constants that are worth a look, by what they are
	compiled  bool
}

var _ compute.Builder = (*Builder)(nil)

// Name of the computation.
func (b *Builder) Name() string { return b.name }

// Main is the function that Execute runs.
func (b *Builder) Main() compute.Function { return b.main }

// OpShape is the shape of a value of the builder, whatever function it is of.
func (b *Builder) OpShape(v compute.Value) (shapes.Shape, error) { return b.main.Shape(v) }

// DeviceAssignment accepts device 0, which is where everything runs.
func (b *Builder) DeviceAssignment(devices ...compute.DeviceNum) error {
	if len(devices) != 1 || devices[0] != 0 {
		return errors.Errorf("DeviceAssignment%v: backend %q has device 0 only", devices, Name)
	}
	return nil
}

// Compile ends the builder and gives what can be executed.
func (b *Builder) Compile() (compute.Executable, error) {
	switch {
	case b.compiled:
		return nil, errors.Errorf("Compile: %q is compiled already", b.name)
	case b.backend.closed.Load():
		return nil, errors.Errorf("Compile: backend %q was finalized", Name)
	case !b.main.returned:
		return nil, errors.Errorf("Compile: %q has no results: call Return of its main function first", b.name)
	}
	b.compiled = true
	if b.main.template != nil {
		return newTemplateExecutable(b), nil
	}
	return newExecutable(b, slices.Concat(b.constants, b.kept())), nil
}

func (b *Builder) function(name string, parent *Function) *Function {
	return &Function{
		Function: notimplemented.Function{ErrFn: missing},
		builder:  b, name: name, parent: parent, graph: &graph{known: map[string]*Node{}},
	}
}

// Function is a graph of nodes. An op adds a node unless there is an equal one.
// With dynamic axes it is a template of such graphs.
type Function struct {
	notimplemented.Function
	builder  *Builder
	name     string
	parent   *Function
	*graph   // what ops add nodes to
	template *template
}

type graph struct {
	nodes    []*Node // operands before what uses them
	params   []*Node
	captures []*Node // values of the function around
	outputs  []*Node
	prog     *program // once it has returned
	known    map[string]*Node
	returned bool
	variant  *variant // of one that is made of a template
}

var _ compute.Function = (*Function)(nil)

// Name of the function.
func (f *Function) Name() string { return f.name }

// Builder that the function belongs to.
func (f *Function) Builder() compute.Builder { return f.builder }

// Parent is the function that a closure is in, or nil.
func (f *Function) Parent() compute.Function {
	if f.parent == nil {
		return nil
	}
	return f.parent
}

// Shape of a value of the builder.
func (f *Function) Shape(v compute.Value) (shapes.Shape, error) {
	n, err := f.builder.node(v)
	if err != nil {
		return shapes.Invalid(), errors.WithMessage(err, "Shape")
	}
	return n.shape, nil
}

// Parameter adds an input of the function.
func (f *Function) Parameter(name string, shape shapes.Shape, sharding *compute.ShardingSpec) (compute.Value, error) {
	what := fmt.Sprintf("Parameter %q", name)
	if sharding != nil {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "%s of %s: backend %q has one device and no sharding", what, shape, Name)
	}
	if err := f.open(); err != nil {
		return nil, errors.WithMessage(err, what)
	}
	if shape.IsDynamic() || f.isTemplate() {
		return f.templateParameter(what, name, shape)
	}
	return f.parameter(what, name, shape)
}

// parameter is one of known size.
func (f *Function) parameter(what, name string, shape shapes.Shape) (*Node, error) {
	if err := f.builder.backend.holds(what, shape); err != nil {
		return nil, err
	}
	add := func(dt dtypes.DType) *Node {
		return f.append(&Node{op: compute.OpTypeParameter, shape: withDType(shape, dt), name: name})
	}
	var n *Node
	if shape.Rank() > maxRank {
		n = f.wide(f.append(&Node{op: compute.OpTypeParameter, shape: shapes.Make(shape.DType, shape.Size()), name: name}), shape.Clone())
		n.name = name
	} else if row, ok := complexRows[shape.DType]; ok {
		n = f.pair(compute.OpTypeParameter, add(row.part), add(row.part))
		n.name = name
	} else {
		n = add(shape.DType)
	}
	f.params = append(f.params, n)
	return n, nil
}

// Return says what the function's results are. Nothing can be added afterwards.
func (f *Function) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	if len(shardings) != 0 {
		return errors.Wrapf(compute.ErrNotImplemented, "Return: backend %q has one device and no sharding", Name)
	}
	if len(outputs) == 0 {
		return errors.Errorf("Return: function %q needs at least one result", f.name)
	}
	nodes, err := f.operands(outputs)
	if err != nil {
		return errors.WithMessage(err, "Return")
	}
	f.outputs, f.returned = nodes, true
	if f.template == nil {
		f.prog = compileProgram(f, f.outputs)
	}
	return nil
}

// open reports whether nodes can still be added.
func (f *Function) open() error {
	switch {
	case f.variant != nil: // made of a template, which may be compiled
		return nil
	case f.builder.compiled:
		return errors.Errorf("%q is compiled already", f.builder.name)
	case f.returned:
		return errors.Errorf("function %q of %q has returned already", f.name, f.builder.name)
	}
	return nil
}
