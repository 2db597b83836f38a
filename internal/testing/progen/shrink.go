package progen

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Shrink looks for a smaller program that still fails: fewer outputs, operands in place of outputs,
// nodes left out, results replaced by earlier tensors or by new inputs, unused inputs dropped.
// fails is called only with programs that verify. The result is a failing program, at worst p
// itself; p is not changed.
func Shrink(p *ir.Graph, fails func(*ir.Graph) bool) *ir.Graph {
	for {
		smaller := shrinkOnce(p, fails)
		if smaller == nil {
			return p
		}
		p = smaller
	}
}

// shrinkOnce returns the first smaller program that fails, or nil.
func shrinkOnce(p *ir.Graph, fails func(*ir.Graph) bool) *ir.Graph {
	try := func(edit func(g *graph) bool) *ir.Graph {
		g := newGraph(p)
		if !edit(g) {
			return nil
		}
		q := g.program()
		if size(q) >= size(p) || q.Verify() != nil || !fails(q) {
			return nil
		}
		return q
	}
	for i := range p.Outputs {
		if q := try(func(g *graph) bool { return g.onlyOutput(i) }); q != nil {
			return q
		}
	}
	for i := range p.Outputs {
		if q := try(func(g *graph) bool { return g.dropOutput(i) }); q != nil {
			return q
		}
		for arg := range 3 {
			if q := try(func(g *graph) bool { return g.outputOperand(i, arg) }); q != nil {
				return q
			}
		}
		if q := try(func(g *graph) bool { return g.outputOperands(i) }); q != nil {
			return q
		}
	}
	// From the end: late nodes depend on much, and little depends on them.
	for i := len(p.Nodes) - 1; i >= 0; i-- {
		for _, edit := range []func(g *graph) bool{
			func(g *graph) bool { return g.outputInstead(i) },
			func(g *graph) bool { return g.dropEntry(i) },
			func(g *graph) bool { return g.bypass(i) },
			func(g *graph) bool { return g.cut(i) },
		} {
			if q := try(edit); q != nil {
				return q
			}
		}
	}
	return try(func(g *graph) bool { return g.dropInputs() })
}

// size orders programs: a node weighs more than an input or an output.
func size(p *ir.Graph) int {
	return 4*len(p.Nodes) + len(p.Inputs) + len(p.Outputs)
}

// graph is a program whose tensors are pointers, so that it can be edited
// without renumbering.
type graph struct {
	scalars []ir.ScalarValue
	inputs  []*handle
	nodes   []gnode
	outputs []*handle
}

type handle struct{ typ ir.TensorType }

type gnode struct {
	n      ir.Node
	args   [3]*handle // nil for scalars
	result *handle    // nil for entries
}

func newGraph(p *ir.Graph) *graph {
	g := &graph{scalars: p.Scalars}
	var byID []*handle
	for _, t := range p.Inputs {
		byID = append(byID, &handle{t})
	}
	g.inputs = slices.Clone(byID)
	for _, n := range p.Nodes {
		gn := gnode{n: n}
		for i, a := range n.Args[:n.NArgs] {
			if !a.Scalar {
				gn.args[i] = byID[a.ID]
			}
		}
		if n.HasResult() {
			gn.result = &handle{ir.TensorType{DT: n.DT, Shape: n.Shape}}
			byID = append(byID, gn.result)
		}
		g.nodes = append(g.nodes, gn)
	}
	for _, id := range p.Outputs {
		g.outputs = append(g.outputs, byID[id])
	}
	return g
}

// program numbers the graph again, without nodes whose results are not needed and entries of
// removed tensors. Inputs stay.
func (g *graph) program() *ir.Graph {
	needed := map[*handle]bool{}
	for _, v := range g.outputs {
		needed[v] = true
	}
	keep := make([]bool, len(g.nodes))
	for i := len(g.nodes) - 1; i >= 0; i-- {
		gn := &g.nodes[i]
		if keep[i] = gn.result != nil && needed[gn.result]; keep[i] {
			for _, a := range gn.args {
				needed[a] = true
			}
		}
	}
	p := &ir.Graph{}
	ids := map[*handle]int{}
	for i, v := range g.inputs {
		ids[v] = i
		p.Inputs = append(p.Inputs, v.typ)
	}
	for i := range g.nodes {
		gn := &g.nodes[i]
		if gn.result == nil {
			_, keep[i] = ids[gn.args[0]]
		}
		if !keep[i] {
			continue
		}
		n := gn.n
		for j, a := range n.Args[:n.NArgs] {
			if a.Scalar {
				n.Args[j] = ir.S(len(p.Scalars))
				p.Scalars = append(p.Scalars, g.scalars[a.ID])
			} else {
				n.Args[j] = ir.T(ids[gn.args[j]])
			}
		}
		p.Nodes = append(p.Nodes, n)
		if gn.result != nil {
			ids[gn.result] = len(ids)
		}
	}
	for _, v := range g.outputs {
		p.Outputs = append(p.Outputs, ids[v])
	}
	return p
}

// replace replaces from by to everywhere.
func (g *graph) replace(from, to *handle) {
	for i := range g.nodes {
		for j, a := range g.nodes[i].args {
			if a == from {
				g.nodes[i].args[j] = to
			}
		}
	}
	for i, v := range g.outputs {
		if v == from {
			g.outputs[i] = to
		}
	}
}

func (g *graph) onlyOutput(i int) bool {
	g.outputs = g.outputs[i : i+1]
	return true
}

func (g *graph) dropOutput(i int) bool {
	g.outputs = slices.Delete(g.outputs, i, i+1)
	return len(g.outputs) > 0
}

// outputOperand replaces a computed output by one operand.
func (g *graph) outputOperand(i, arg int) bool {
	for _, n := range g.nodes {
		if n.result != nil && n.result == g.outputs[i] && n.args[arg] != nil {
			g.outputs[i] = n.args[arg]
			return true
		}
	}
	return false
}

// outputOperands replaces a computed output by all its operands: if two results matter, the op that
// joins them does not.
func (g *graph) outputOperands(i int) bool {
	for _, n := range g.nodes {
		if n.result == nil || n.result != g.outputs[i] {
			continue
		}
		g.outputs = slices.Delete(slices.Clone(g.outputs), i, i+1)
		for _, a := range n.args {
			if a != nil && !slices.Contains(g.outputs, a) {
				g.outputs = append(g.outputs, a)
			}
		}
		return len(g.outputs) > 0
	}
	return false
}

// outputInstead makes an intermediate result the only output.
func (g *graph) outputInstead(i int) bool {
	if g.nodes[i].result == nil {
		return false
	}
	g.outputs = []*handle{g.nodes[i].result}
	return true
}

func (g *graph) dropEntry(i int) bool {
	if g.nodes[i].result != nil {
		return false
	}
	g.nodes = slices.Delete(g.nodes, i, i+1)
	return true
}

// bypass replaces the result by an operand of the same type.
func (g *graph) bypass(i int) bool {
	r := g.nodes[i].result
	if r == nil {
		return false
	}
	for _, a := range g.nodes[i].args {
		if a != nil && a.typ.DT == r.typ.DT && a.typ.Shape.Equal(r.typ.Shape) {
			g.replace(r, a)
			return true
		}
	}
	return false
}

// cut replaces the result by a new input.
func (g *graph) cut(i int) bool {
	r := g.nodes[i].result
	if r == nil {
		return false
	}
	in := &handle{r.typ}
	g.replace(r, in)
	g.inputs = append(g.inputs, in)
	return true
}

// dropInputs removes inputs that nothing uses.
func (g *graph) dropInputs() bool {
	used := map[*handle]bool{}
	for i := range g.nodes {
		for _, a := range g.nodes[i].args {
			used[a] = true
		}
	}
	for _, v := range g.outputs {
		used[v] = true
	}
	g.inputs = slices.DeleteFunc(g.inputs, func(v *handle) bool { return !used[v] })
	return true
}
