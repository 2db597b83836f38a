package progen

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Group is a set of kinds of ops that programs hold only where they are asked
// for, so that an engine part can be tested before it knows them all.
type Group uint

const (
	Reductions   Group = 1 << iota // beyond Sum and Max
	Contractions                   // Dot, over Expand and Permute as a matrix product records it
	Scans
	Sorts
	Windows
	Moves // Pad, Concat, Assign
	Gathers
	Scatters

	AllGroups = 1<<iota - 1
)

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
	return map[ir.Class]Group{
		ir.ClassReduce:  Reductions,
		ir.ClassScan:    Scans,
		ir.ClassSort:    Sorts,
		ir.ClassMove:    Moves,
		ir.ClassGather:  Gathers,
		ir.ClassScatter: Scatters,
	}[op.Class()]
}

// ops lists the ops of a class that the program may hold.
func (g *generator) ops(class ir.Class) []ir.Op {
	return slices.DeleteFunc(slices.Clone(opsOf[class]), func(op ir.Op) bool { return groupOf(op)&^g.Groups != 0 })
}
