package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// graph is a checked graph, whose nodes are in the order in which they run.
type graph struct {
	name    string
	nodes   []*node
	inputs  []input
	outputs []string
	results []input // what the graph of a node says of its outputs' types
	consts  map[string]*value
	params  map[string]*nn.Param
	last    []int // for each name of names, the last node that reads it
	names   [][]string
}

// input is a graph's input. Dims are nil if its rank is not fixed.
type input struct {
	name  string
	dtype millrace.DType
	dims  []dim
	rank  bool // dims are known
	any   bool // the type is not known, as in graphs of control flow
}

// dim is a fixed size, or a name for a size of any value, or neither.
type dim struct {
	size int
	name string
}

type node struct {
	name, op, domain string
	inputs, outputs  []string
	attrs            map[string]*attr
	row              *op
	call             *function // instead of row
	opset            int
}

// String names a node in errors.
func (n *node) String() string {
	op := n.op
	if n.domain != "" {
		op = n.domain + "." + op
	}
	if n.name != "" {
		return fmt.Sprintf("node %q (%s)", n.name, op)
	}
	if len(n.outputs) > 0 {
		return fmt.Sprintf("the node of %q (%s)", n.outputs[0], op)
	}
	return "a node " + op
}

// attr is a node's attribute with its graph or tensor checked.
type attr struct {
	*protoAttr
	graph *graph
	value *value
}

// function is a function that a model defines itself.
type function struct {
	body     *graph
	inputs   []string
	defaults map[string]*attr
}

type functionKey struct{ domain, name, overload string }

// A builder checks a model and makes its graphs. It collects what is wrong.
type builder struct {
	m         *Model
	store     *storage
	functions map[functionKey]*protoFunction
	made      map[functionKey]*function
	open      map[functionKey]bool
	bad       []error
	missing   map[string]bool // unknown ops that are listed
}

func (b *builder) fail(format string, args ...any) {
	b.bad = append(b.bad, fmt.Errorf(format, args...))
}

// scope is the set of names that a graph's nodes may read.
type scope struct {
	names map[string]bool
	outer *scope
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if s.names[name] {
			return true
		}
	}
	return false
}

// opsets maps a domain to its version. The default domain has two names.
func (b *builder) opsets(list []*protoOpset) map[string]int {
	m := map[string]int{}
	for _, o := range list {
		d := domainOf(o.domain)
		v := int(min(max(o.version, -1), 1<<30))
		m[d] = v
		if d == "" && (v < minOpset || v > maxOpset) {
			b.fail("the model uses opset %d; this package knows %d to %d", o.version, minOpset, maxOpset)
		}
	}
	return m
}

func domainOf(d string) string {
	if d == "ai.onnx" {
		return ""
	}
	return d
}

// graph makes a graph. outer is nil for the model's graph and for functions.
func (b *builder) graph(p *protoGraph, opsets map[string]int, outer *scope, prefix string) *graph {
	g := &graph{name: p.name, consts: map[string]*value{}, params: map[string]*nn.Param{}}
	names := &scope{map[string]bool{}, outer}
	if p.sparse > 0 {
		b.fail("graph %q has sparse initializers, which are not supported", p.name)
	}
	weights := b.weights(p, opsets)
	for _, t := range p.initializers {
		if names.names[t.name] {
			b.fail("initializer %q occurs twice", t.name)
			continue
		}
		names.names[t.name] = true
		b.initializer(g, t, prefix, weights)
	}
	for _, v := range p.inputs {
		if names.names[v.name] { // an initializer that is an input too, as in old models
			b.checkInitializer(g, v)
			continue
		}
		names.names[v.name] = true
		g.inputs = append(g.inputs, b.input(v, outer != nil))
	}
	b.nodes(g, p.nodes, opsets, names, prefix)
	for _, v := range p.outputs {
		if !names.has(v.name) {
			b.fail("output %q of graph %q is the result of no node", v.name, p.name)
		}
		g.outputs = append(g.outputs, v.name)
		if outer != nil {
			g.results = append(g.results, declared(v))
		}
	}
	g.uses()
	return g
}

// nodes appends nodes in an order in which each comes after those whose results it reads.
func (b *builder) nodes(g *graph, nodes []*protoNode, opsets map[string]int, names *scope, prefix string) {
	producers := map[string]bool{}
	for _, p := range nodes {
		for _, o := range p.outputs {
			if o == "" {
				continue
			}
			if producers[o] || names.names[o] {
				b.fail("%q is the result of two nodes", o)
			}
			producers[o] = true
		}
	}
	for _, p := range nodes {
		n := &node{name: p.name, op: p.op, domain: domainOf(p.domain), inputs: p.inputs, outputs: p.outputs, attrs: map[string]*attr{}}
		for _, in := range p.inputs {
			switch {
			case in == "" || names.has(in):
			case producers[in]:
				b.fail("%v reads %q before a node computes it: nodes are out of order or form a cycle", n, in)
			default:
				b.fail("%v reads %q, which nothing computes", n, in)
			}
		}
		b.resolve(n, p, opsets)
		for _, a := range p.attrs {
			n.attrs[a.name] = b.attr(n, a, opsets, names, prefix)
		}
		for _, o := range p.outputs {
			names.names[o] = true
		}
		g.nodes = append(g.nodes, n)
	}
	delete(names.names, "")
}

// resolve finds the op's row, or the model's own function.
func (b *builder) resolve(n *node, p *protoNode, opsets map[string]int) {
	key := functionKey{n.domain, n.op, p.overload}
	if f := b.functions[key]; f != nil {
		n.call = b.function(key, f)
		return
	}
	version, ok := opsets[n.domain]
	if !ok {
		b.unknown(n, "its domain %q is not among the model's opsets", n.domain)
		return
	}
	n.opset = version
	if n.domain != "" {
		b.unknown(n, "domain %q is not supported", n.domain)
		return
	}
	if n.row = find(n.op, version); n.row == nil {
		b.unknown(n, "opset %d of the default domain", version)
		return
	}
	if n.row.check != nil {
		if err := n.row.check(p, version); err != nil {
			b.fail("%v: %w", n, err)
		}
	}
}

func (b *builder) unknown(n *node, format string, args ...any) {
	key := n.domain + "." + n.op
	if b.missing[key] {
		return
	}
	b.missing[key] = true
	b.fail("%v: unknown operator: %w", n, unknownOp{fmt.Sprintf(format, args...)})
}

// unknownOp says which operator a model lacks. It wraps millrace.ErrUnsupported.
type unknownOp struct{ text string }

func (u unknownOp) Error() string { return u.text }
func (u unknownOp) Unwrap() error { return millrace.ErrUnsupported }

// attr checks an attribute.
func (b *builder) attr(n *node, p *protoAttr, opsets map[string]int, names *scope, prefix string) *attr {
	a := &attr{protoAttr: p}
	switch {
	case p.ref != "":
	case p.g != nil:
		a.graph = b.graph(p.g, opsets, names, prefix+n.name+"/")
	case p.t != nil:
		v, err := b.constant(p.t)
		if err != nil {
			b.fail("%v: attribute %q: %w", n, p.name, err)
		}
		a.value = v
	}
	return a
}

// constant makes a value that belongs to the model and is not trained.
func (b *builder) constant(t *protoTensor) (*value, error) {
	if h, err := loadHost(t, b.store); h != nil || err != nil {
		return &value{h: h, on: b.m.place, owner: ofModel}, err
	}
	x, err := load(b.m.place, t, b.store)
	return &value{t: x, owner: ofModel}, err
}

// mostCalls is how deep functions may call each other.
const mostCalls = 1000

// function makes a function of the model, once.
func (b *builder) function(key functionKey, p *protoFunction) *function {
	if f := b.made[key]; f != nil {
		return f
	}
	f := &function{inputs: p.inputs, defaults: map[string]*attr{}}
	if b.open[key] {
		b.fail("function %q calls itself", key.name)
		return f
	}
	if len(b.open) >= mostCalls {
		b.fail("function %q is called through more than %d others", key.name, mostCalls)
		return f
	}
	b.open[key] = true
	defer delete(b.open, key)
	opsets := b.opsets(p.opsets)
	names := &scope{map[string]bool{}, nil}
	g := &graph{name: p.name, consts: map[string]*value{}, outputs: p.outputs}
	for _, in := range p.inputs {
		names.names[in] = true
	}
	for _, a := range p.defaults {
		f.defaults[a.name] = b.attr(&node{op: p.name}, a, opsets, names, "")
	}
	b.nodes(g, p.nodes, opsets, names, "")
	for _, o := range p.outputs {
		if !names.has(o) {
			b.fail("output %q of function %q is the result of no node", o, p.name)
		}
	}
	g.uses()
	f.body = g
	b.made[key] = f
	return f
}

// input checks the type of a graph's input.
func (b *builder) input(v *protoValue, inner bool) input {
	in := input{name: v.name}
	if v.kind == nil || v.kind.tensor == nil || v.kind.tensor.elem == 0 && inner {
		if v.kind != nil && v.kind.other || !inner {
			b.fail("input %q is not a tensor", v.name)
		}
		in.any = true
		return in
	}
	dt, err := dtypeOf(v.kind.tensor.elem)
	if err != nil {
		b.fail("input %q: %w", v.name, err)
	}
	in.dtype = dt
	in.shape(v.kind.tensor)
	return in
}

// declared is the type that a graph gives an output, which only an empty result needs.
func declared(v *protoValue) input {
	in := input{name: v.name, any: true}
	if v.kind == nil || v.kind.tensor == nil {
		return in
	}
	if dt, err := dtypeOf(v.kind.tensor.elem); err == nil {
		in.dtype, in.any = dt, false
		in.shape(v.kind.tensor)
	}
	return in
}

// shape notes the dimensions of a type.
func (in *input) shape(t *protoTensorType) {
	if s := t.shape; s != nil {
		in.rank = true
		for _, d := range s.dims {
			size := -1
			if d.known && d.value >= 0 {
				size = int(d.value)
			}
			in.dims = append(in.dims, dim{size, d.param})
		}
	}
}

// uses finds, for each node, the names that no later node reads.
func (g *graph) uses() {
	last := map[string]int{}
	for i, n := range g.nodes {
		for _, name := range n.reads(nil) {
			last[name] = i
		}
		for _, name := range n.outputs {
			if _, ok := last[name]; !ok {
				last[name] = i
			}
		}
	}
	for _, name := range g.outputs {
		delete(last, name)
	}
	g.names = make([][]string, len(g.nodes))
	for name, i := range last {
		g.names[i] = append(g.names[i], name)
	}
	for _, list := range g.names {
		slices.Sort(list)
	}
}

// reads appends the names that a node reads, also in its graphs.
func (n *node) reads(list []string) []string {
	list = append(list, n.inputs...)
	for _, a := range n.attrs {
		if a.graph != nil {
			for _, inner := range a.graph.nodes {
				list = inner.reads(list)
			}
			list = append(list, a.graph.outputs...)
		}
	}
	return list
}

var errNoGraph = errors.New("the file has no graph")
