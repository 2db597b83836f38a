package gomlxbackend

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"
)

// A function with dynamic axes is a template: it keeps how each op is added, and
// is made into a graph for the sizes that the inputs have. What no size changes is
// in none of it, since Millrace's plans and kernels hold none. What the shape of a
// result is, is found by adding the op to two graphs, the probes, whose axes have
// sizes that nothing else has: a dimension that differs is dynamic, and both
// numbers together say which axis it is.

// template is what a function with dynamic axes is made of.
type template struct {
	mu      sync.Mutex
	prefix  *graph // what was there before the first dynamic axis
	recipes []*recipe
	probes  [2]*graph
	axes    map[[2]int]string // by their sizes in the probes
	declared,
	fresh int // axes with a name, and without one
	// asks says that a size is a number that a program gives.
	asks bool
}

// recipe is how the results of an op are added to a graph.
type recipe struct {
	op    compute.OpType
	in    []*Node // of the template
	out   []*Node
	names []string // of the result's axes, where they are said
	add   func(in []*Node) ([]*Node, error)
}

// variant is what a graph that is made of a template knows besides.
type variant struct {
	size   map[string]int  // of each axis with a name
	values map[*Node]*Node // what stands for the template's nodes
	probe  int             // which, or -1
	// guesses are how many sizes of a probe are made up, and guessed says that one
	// of the op at hand is.
	guesses int
	guessed bool
	inputs  []*content // of one that is no probe
	asked   []int      // sizes that were read from them
}

// isTemplate says that ops are recipes.
func (f *Function) isTemplate() bool { return f.template != nil && f.variant == nil }

// current is what stands for a node in the graph at hand.
func (f *Function) current(n *Node) *Node {
	if f.variant != nil {
		if c := f.variant.values[n]; c != nil {
			return c
		}
	}
	return n
}

// probeSize is a size that the probes' axes have: a prime, each another one.
func probeSize(probe, i int) int {
	const least = 1031 // so that sums and products of few are none of them, and static sizes below it fit in
	n := least
	for k := 2*i + probe; ; n += 2 {
		if prime(n) {
			if k == 0 {
				return n
			}
			k--
		}
	}
}

func prime(n int) bool {
	for d := 3; d*d <= n; d += 2 {
		if n%d == 0 {
			return false
		}
	}
	return n%2 == 1
}

// becomeTemplate makes this main function one, if it is none.
func (f *Function) becomeTemplate(what string) error {
	switch {
	case f.template != nil || f.variant != nil:
		return nil
	case f.parent != nil || f.name != compute.MainName:
		return errors.Wrapf(compute.ErrNotImplemented, "%s: backend %q has no dynamic axes in closures and functions", what, Name)
	}
	t := &template{axes: map[[2]int]string{}}
	g := *f.graph
	g.nodes, g.params, g.known = slices.Clone(g.nodes), slices.Clone(g.params), maps.Clone(g.known)
	t.prefix = &g
	for i := range t.probes {
		t.probes[i] = t.made(map[string]int{})
		t.probes[i].variant.probe = i
	}
	f.template = t
	return nil
}

// made is the beginning of a graph with axes of these sizes.
func (t *template) made(size map[string]int) *graph {
	return &graph{
		nodes: slices.Clone(t.prefix.nodes), params: slices.Clone(t.prefix.params), known: maps.Clone(t.prefix.known),
		variant: &variant{size: size, values: map[*Node]*Node{}, probe: -1},
	}
}

// within does something with a graph in place of the function's own.
func (f *Function) within(g *graph, do func() error) error {
	own := f.graph
	f.graph = g
	defer func() { f.graph = own }()
	return do()
}

// follow adds a recipe's results to a graph.
func (f *Function) follow(g *graph, rc *recipe) (list []*Node, err error) {
	err = f.within(g, func() error {
		in := make([]*Node, len(rc.in))
		for i, n := range rc.in {
			if n != nil {
				in[i] = f.current(n)
			}
		}
		list, err = rc.add(in)
		if err == nil && (complexAmong(in) != 0 || complexAmong(list) != 0) {
			err = errors.Wrapf(compute.ErrNotImplemented, "backend %q has no complex numbers in graphs with dynamic axes", Name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, n := range rc.out {
		g.variant.stand(n, list[i])
	}
	return list, nil
}

// stand notes what stands for a node of the template, and the sizes of axes that
// have a name since.
func (v *variant) stand(n, c *Node) {
	v.values[n] = c
	for i, d := range n.shape.Dimensions {
		if name := n.shape.AxisName(i); d == shapes.DynamicDim && name != shapes.AnonymousAxis {
			if _, ok := v.size[name]; !ok {
				v.size[name] = c.shape.Dimensions[i]
			}
		}
	}
}

// addRecipe adds an op to the template. What is wrong with it the probes tell.
func (f *Function) addRecipe(rc *recipe) ([]*Node, error) {
	t := f.template
	var lists [2][]*Node
	for i, g := range t.probes {
		var err error
		if lists[i], err = f.follow(g, rc); err != nil {
			return nil, withAxes(err, g.variant.size)
		}
	}
	for i := range lists[0] {
		n := &Node{fn: f, op: rc.op, shape: t.shape(lists[0][i].shape, lists[1][i].shape, rc), id: -1}
		rc.out = append(rc.out, n)
		for k, g := range t.probes {
			g.variant.stand(n, lists[k][i])
		}
	}
	t.recipes = append(t.recipes, rc)
	return rc.out, nil
}

// shape is a result's shape, with a name for each dimension that differs.
func (t *template) shape(a, b shapes.Shape, rc *recipe) shapes.Shape {
	s := shapes.Shape{DType: a.DType, Dimensions: slices.Clone(a.Dimensions)}
	for i, d := range a.Dimensions {
		pair := [2]int{d, b.Dimensions[i]}
		if pair[0] == pair[1] {
			continue
		}
		if s.AxisNames == nil {
			s.AxisNames = make([]string, len(a.Dimensions))
		}
		s.Dimensions[i], s.AxisNames[i] = shapes.DynamicDim, t.axis(pair, i, rc)
	}
	return s
}

// axis is the name of one of these sizes: that which is said, or which an operand has,
// or which was first.
func (t *template) axis(pair [2]int, i int, rc *recipe) string {
	name := ""
	if i < len(rc.names) {
		name = rc.names[i]
	}
	for _, n := range rc.in {
		if n == nil || name != "" {
			continue
		}
		for k, d := range n.shape.Dimensions {
			if d == shapes.DynamicDim && pair == t.sizes(n, k) {
				name = n.shape.AxisName(k)
			}
		}
	}
	if name == "" || name == shapes.AnonymousAxis {
		if known := t.axes[pair]; known != "" && name == "" {
			return known
		}
		if name == "" {
			t.fresh++
			name = fmt.Sprint("#", t.fresh)
		}
	}
	if t.axes[pair] == "" && name != shapes.AnonymousAxis {
		t.axes[pair] = name
	}
	return name
}

// sizes are those of an axis in the probes.
func (t *template) sizes(n *Node, axis int) (pair [2]int) {
	for i, g := range t.probes {
		pair[i] = g.variant.values[n].shape.Dimensions[axis]
	}
	return pair
}

// withAxes names the sizes in an error.
func withAxes(err error, size map[string]int) error {
	if len(size) == 0 {
		return err
	}
	return errors.WithMessagef(err, "with axes of %s", sizesText(size))
}

func sizesText(size map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(size)) {
		list = append(list, fmt.Sprintf("%s=%d", name, size[name]))
	}
	return strings.Join(list, ", ")
}

// templateParameter is a parameter of a template, which the function becomes if need be.
func (f *Function) templateParameter(what, name string, shape shapes.Shape) (compute.Value, error) {
	if !shape.Ok() {
		return nil, errors.Errorf("%s: invalid shape %s", what, shape)
	}
	if err := f.becomeTemplate(fmt.Sprintf("%s of %s", what, shape)); err != nil {
		return nil, err
	}
	for i, d := range shape.Dimensions {
		axis := shape.AxisName(i)
		if d != shapes.DynamicDim {
			continue
		}
		if axis == "" || axis == shapes.AnonymousAxis || strings.HasPrefix(axis, "#") || strings.HasPrefix(axis, shapes.SymbolicAxisPrefix) {
			return nil, errors.Errorf("%s of %s: axis %d is dynamic and needs a name", what, shape, i)
		}
		f.declare(axis)
	}
	shape = shape.Clone()
	rc := &recipe{op: compute.OpTypeParameter, names: shape.AxisNames, add: func([]*Node) ([]*Node, error) {
		here, err := f.concrete(shape)
		if err != nil {
			return nil, err
		}
		n, err := f.parameter(what, name, here)
		return []*Node{n}, err
	}}
	list, err := f.addRecipe(rc)
	if err != nil {
		return nil, err
	}
	list[0].name = name
	f.params = append(f.params, list[0])
	return list[0], nil
}

// declare gives an axis that is new sizes in the probes.
func (f *Function) declare(axis string) {
	t := f.template
	if _, ok := t.probes[0].variant.size[axis]; ok {
		return
	}
	var pair [2]int
	for i, g := range t.probes {
		pair[i] = probeSize(i, t.declared)
		g.variant.size[axis] = pair[i]
	}
	t.declared++
	t.axes[pair] = axis
}

// templateConstant is a constant of every graph, which is uploaded once.
func (f *Function) templateConstant(flat any, dims []int) (*Node, error) {
	var first *Node
	list, err := f.addRecipe(&recipe{op: compute.OpTypeConstant, add: func([]*Node) ([]*Node, error) {
		if first != nil {
			return []*Node{f.append(&Node{op: first.op, shape: first.shape, constant: first.constant, splat: first.splat})}, nil
		}
		n, err := f.makeConstant(flat, dims)
		first = n
		return []*Node{n}, err
	}})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// own makes copies of lists: a recipe is followed when the caller may have changed
// them.
func own[T any](lists ...*[]T) {
	for _, l := range lists {
		*l = slices.Clone(*l)
	}
}

// concrete is a shape as it is in the graph at hand.
func (f *Function) concrete(shape shapes.Shape) (shapes.Shape, error) {
	if !shape.IsDynamic() {
		return shape, nil
	}
	here := shape.Clone()
	for i, d := range here.Dimensions {
		if d != shapes.DynamicDim {
			continue
		}
		n, ok := 0, false
		if f.variant != nil {
			n, ok = f.variant.size[shape.AxisName(i)]
		}
		if !ok {
			return shapes.Invalid(), errors.Errorf("axis %q of %s is none of a parameter's", shape.AxisName(i), shape)
		}
		here.Dimensions[i] = n
	}
	here.AxisNames = nil
	return here, nil
}
