package fusion

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// kernel puts a group's program into the form devices take. The second result
// is the segment's slot of each kernel scalar.
func (x *explorer) kernel(g *group) (*codegen.Kernel, *body, error) {
	b, stores, reduces := x.body(g)
	if b.err != nil {
		return nil, nil, b.err
	}
	k := &codegen.Kernel{Body: b.code, Stores: stores, Reduces: reduces}
	for _, o := range b.operands {
		dt := ir.Invalid
		if o.kind != codegen.Index {
			dt = x.seg.Tensors[o.tensor].DT
		}
		k.Operands = append(k.Operands, codegen.Operand{Kind: o.kind, DT: dt})
	}
	for _, s := range b.scalars {
		k.Scalars = append(k.Scalars, x.seg.Scalars[s].DT)
	}
	return k, b, nil
}

// loweredSize is the number of instructions a group's kernel comes to.
func (x *explorer) loweredSize(g *group) int {
	k, _, err := x.kernel(g)
	if err != nil {
		return x.price(g).weight
	}
	return size(k)
}

// size counts the lowered instructions that compute something.
func size(k *codegen.Kernel) int {
	low, err := codegen.Lower(k)
	if err != nil {
		return 0
	}
	n := 0
	for _, in := range low.Body {
		switch in.Op {
		case ir.Load, ir.Scalar, ir.Const:
		default:
			n++
		}
	}
	return n
}

// step is a group in the form plans keep.
func (x *explorer) step(g *group) (Step, []Guard, error) {
	k, b, err := x.kernel(g)
	if err != nil {
		return Step{}, nil, fmt.Errorf("fusion: %w", err)
	}
	scalars := slices.Clone(b.scalars)
	var guards []Guard
	if x.opt.Mode == Best {
		k, scalars, guards = x.mergeScalars(k, scalars)
	}
	if k, err = codegen.Simplify(k); err != nil {
		return Step{}, nil, fmt.Errorf("fusion: %w", err)
	}
	s := Step{Kernel: k, Domain: x.domainTensor(g), Axes: g.axes}
	for _, o := range b.operands {
		s.Operands = append(s.Operands, Operand{Tensor: int(o.tensor), Path: o.path})
	}
	for _, sc := range scalars {
		s.Scalars = append(s.Scalars, int(sc))
	}
	for n := range b.nodes {
		s.Nodes = append(s.Nodes, int(n))
	}
	slices.Sort(s.Nodes)
	s.InPlace = x.inPlace(b)
	return s, guards, nil
}

// domainTensor is a tensor of the domain's shape, preferably one written.
func (x *explorer) domainTensor(g *group) int {
	if g.over >= 0 {
		return int(g.over)
	}
	for _, r := range g.roots {
		if x.class.of[r.tensor] == g.domain {
			return int(r.tensor)
		}
	}
	return int(x.class.rep[g.domain])
}
