package fusion

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// kernel turns a group's program into the form that devices take. The returned body is valid until
// the next call.
func (x *explorer) kernel(g *group) (*codegen.Kernel, *body, error) {
	b, w := x.body(g)
	if b.err != nil {
		return nil, nil, b.err
	}
	k := &codegen.Kernel{Body: slices.Clone(b.code), Stores: w.stores, Reduces: w.totals, Denormals: x.caps.Denormals}
	for _, o := range b.operands {
		dt := ir.Invalid
		if o.kind != codegen.Index {
			dt = x.seg.Tensors[o.tensor].DT
		}
		k.Operands = append(k.Operands, codegen.Operand{Kind: o.kind, DT: dt, Row: o.row})
	}
	for _, s := range b.scalars {
		k.Scalars = append(k.Scalars, x.seg.Scalars[s].DT)
	}
	// If the reduced dims are 1 at all sizes, a map that drops them can be undone. Such a row has
	// one point, so its store is of a point, not of a row value.
	ls := k.Levels()
	for _, s := range w.stores {
		if ls[s.Value] == codegen.Point {
			k.Operands[s.Operand].Row = false
		}
	}
	return k, b, nil
}

// loweredSize is the number of lowered instructions of a group's kernel.
func (x *explorer) loweredSize(g *group) int {
	k, _, err := x.kernel(g)
	if err != nil {
		return x.price(g).weight
	}
	return x.size(k)
}

func (x *explorer) size(k *codegen.Kernel) int {
	n := size(k)
	x.spend(n)
	return n
}

// size counts the lowered instructions of a kernel that compute something.
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

// step turns a group into a step of the plan, with the guards that the step relies on.
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
	operands := slices.Clone(b.operands)
	k, operands, scalars = dropUnused(k, operands, scalars)
	s := Step{Kernel: k, Domain: x.domainTensor(g), Axes: g.axes}
	if !k.HasRows() { // simplification removed all row ops
		s.Axes = nil
		for i := range k.Operands {
			k.Operands[i].Row = false
		}
	}
	for _, o := range operands {
		s.Operands = append(s.Operands, Operand{Tensor: int(o.tensor), Path: o.at.path()})
	}
	for _, sc := range scalars {
		s.Scalars = append(s.Scalars, int(sc))
	}
	b.nodes.each(func(n int) { s.Nodes = append(s.Nodes, n) })
	s.InPlace = x.inPlace(k, operands)
	return s, guards, nil
}

// domainTensor is a tensor of the domain's shape: the one that row ops go over, else preferably one
// that the group writes.
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

// dropUnused removes the operands and scalars that simplification left without a use. It changes k.
func dropUnused(k *codegen.Kernel, operands []bodyOperand, scalars []int32) (*codegen.Kernel, []bodyOperand, []int32) {
	operandUsed := make([]bool, len(operands))
	scalarUsed := make([]bool, len(scalars))
	for i, o := range operands {
		operandUsed[i] = o.kind == codegen.Output
	}
	for _, in := range k.Body {
		switch in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi, ir.Scatter:
			operandUsed[uint32(in.Imm)] = true
		case ir.Scalar:
			scalarUsed[in.Imm] = true
		}
	}
	operandAt, scalarAt := places(operandUsed), places(scalarUsed)
	for i := range k.Body {
		switch in := &k.Body[i]; in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi, ir.Scatter:
			in.Imm = in.Imm&^math.MaxUint32 | uint64(operandAt[uint32(in.Imm)])
		case ir.Scalar:
			in.Imm = uint64(scalarAt[in.Imm])
		}
	}
	for i := range k.Stores {
		k.Stores[i].Operand = operandAt[k.Stores[i].Operand]
	}
	for i := range k.Reduces {
		k.Reduces[i].Operand = operandAt[k.Reduces[i].Operand]
	}
	k.Operands = filter(k.Operands, operandUsed)
	k.Scalars = filter(k.Scalars, scalarUsed)
	return k, filter(operands, operandUsed), filter(scalars, scalarUsed)
}

// places numbers the elements that stay.
func places(stays []bool) []int {
	at := make([]int, len(stays))
	n := 0
	for i, s := range stays {
		at[i] = n
		if s {
			n++
		}
	}
	return at
}

// filter is a copy of the elements that stay.
func filter[T any](all []T, stays []bool) []T {
	var out []T
	for i, v := range all {
		if stays[i] {
			out = append(out, v)
		}
	}
	return out
}
