package progen

import "github.com/millrace-go/millrace/ir"

// Group is a set of kinds of ops that programs hold only on request, which lets an engine part be
// tested before it supports all ops.
type Group uint

const (
	Reductions   Group = 1 << iota // beyond Sum and Max, but for Dot
	Contractions                   // Dot over views, as products of matrices record it, and over plain tensors
	Scans
	Sorts
	Windows
	Moves // Pad, Concat, Assign
	Gathers
	Scatters

	AllGroups = 1<<iota - 1
)

var groupOfClass = map[ir.Class]Group{
	ir.ClassReduce:  Reductions,
	ir.ClassScan:    Scans,
	ir.ClassSort:    Sorts,
	ir.ClassMove:    Moves,
	ir.ClassGather:  Gathers,
	ir.ClassScatter: Scatters,
}

// groupOf is the group of an op; 0 for the basic ones.
func groupOf(op ir.Op) Group {
	switch op {
	case ir.Sum, ir.Max:
		return 0
	case ir.Dot:
		return Contractions
	case ir.Window:
		return Windows
	}
	return groupOfClass[op.Class()]
}

// makers append an op of a group, with the ops that make suitable operands.
var makers = map[Group]func(g *generator, op ir.Op, chain int) bool{
	Reductions:   (*generator).reduce,
	Contractions: (*generator).contraction,
	Scans:        (*generator).along,
	Sorts:        (*generator).along,
	Windows:      (*generator).window,
	Moves:        (*generator).move,
	Gathers:      (*generator).gather,
	Scatters:     (*generator).scatter,
}

// basic reports whether an op needs no group.
func basic(op ir.Op) bool { return groupOf(op) == 0 }

var opsOfGroup = func() map[Group][]ir.Op {
	m := map[Group][]ir.Op{}
	for op := ir.Op(1); op < ir.NumOps; op++ {
		if grp := groupOf(op); grp != 0 {
			m[grp] = append(m[grp], op)
		}
	}
	return m
}()

// grouped tries to append an op of one of the requested groups.
func (g *generator) grouped(chain int) bool {
	var on []Group
	for grp := Group(1); grp < AllGroups; grp <<= 1 {
		if g.Groups&grp != 0 {
			on = append(on, grp)
		}
	}
	grp := pick(g.source, on)
	return makers[grp](g, pick(g.source, opsOfGroup[grp]), chain)
}

// node appends n on live tensors: its operands in order, by their index in live. Scalars follow
// them. It returns the index of the result, or -1.
func (g *generator) node(n ir.Node, chain int, scalars []ir.ScalarValue, at ...int) int {
	var operands []ir.Operand
	for _, i := range at {
		t := g.live[i]
		n.Args[len(operands)] = ir.T(t.id)
		operands = append(operands, ir.Operand{DT: t.typ.DT, Shape: t.typ.Shape})
	}
	slots := len(g.p.Scalars)
	for _, s := range scalars {
		n.Args[len(operands)] = ir.S(len(g.p.Scalars))
		g.p.Scalars = append(g.p.Scalars, s)
		operands = append(operands, ir.Operand{DT: s.DT, Scalar: true})
	}
	n.NArgs = uint8(len(operands))
	if !g.append(n, operands, chain, at...) {
		g.p.Scalars = g.p.Scalars[:slots]
		return -1
	}
	return len(g.live) - 1
}

// random is a scalar value.
func (g *generator) random(dt ir.DType) ir.ScalarValue {
	return ir.ScalarValue{DT: dt, Bits: value(g.source, dt)}
}
