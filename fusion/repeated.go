package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// A value that several results are made of is computed once for each of them, if it is
// not written: so is all that it is made of, and where results are a chain, as
// derivatives are, work grows with the square of their number.

// longWork is how many lowered instructions may be repeated before a value is written
// instead: those that lead to it, for each result of those that are made of it.
const longWork = 64

// writeRepeated writes values that several groups compute, at intervals: a group is never
// far from what it starts from. It does so where more is repeated than is not, and still is
// when the groups have joined, where they are few. Groups that join later keep the values in
// registers and then need not write them.
func (x *explorer) writeRepeated() {
	all, once := 0, 0
	for _, g := range x.groups {
		all += x.price(g).weight
	}
	weight := make([]int, len(x.part))
	for i, n := range x.part {
		if t := x.seg.Out[n]; x.needed[t] && !x.isView(t) {
			weight[i] = x.weight(&x.seg.Nodes[n])
			once += weight[i]
		}
	}
	if all <= 2*once || x.joinsShared(2*once) {
		return
	}
	made := x.madeOf()
	work := make(map[int32]int, len(x.part)) // from what is written to a value
	for i, n := range x.part {
		t := x.seg.Out[n]
		if x.stored[t] || !x.needed[t] {
			continue
		}
		work[t] = weight[i]
		x.eachArg(n, func(a int32) { work[t] += work[a] })
		if n := made[t].count(); n > 1 && n*work[t] >= longWork && x.writable(t) {
			x.stored[t], work[t] = true, 0
		}
	}
	x.groups = nil
	x.eachRootOf(x.part)
}

// joinEffort bounds the values that are looked at to find whether groups can share what they
// compute.
const joinEffort = 8192

// joinsShared joins the groups if there are few, and keeps them so where they compute at most
// so many lowered instructions for each element: the mean of a costly value and that of its
// square are one kernel, which computes it once.
func (x *explorer) joinsShared(most int) bool {
	if len(x.groups)*near*len(x.part) > joinEffort {
		return false
	}
	groups, stored, sizes := x.groups, slices.Clone(x.stored), len(x.sizes)
	x.splitOver()
	x.mergeOnce()
	all := 0
	for _, g := range x.groups {
		all += x.price(g).weight
	}
	if all > most {
		x.groups, x.stored, x.sizes = groups, stored, x.sizes[:sizes]
		return false
	}
	return true
}

// madeOf lists, as places in the part, what is written of those of its values that are not.
func (x *explorer) madeOf() map[int32]nodeSet {
	made := make(map[int32]nodeSet, len(x.part))
	for i := len(x.part) - 1; i >= 0; i-- {
		n := x.part[i]
		t := x.seg.Out[n]
		if !x.needed[t] {
			continue
		}
		of := made[t]
		if x.stored[t] {
			of = newNodeSet(len(x.part))
			of.add(int32(i))
		}
		if of != nil {
			x.eachArg(n, func(a int32) {
				if made[a] == nil {
					made[a] = newNodeSet(len(x.part))
				}
				made[a].join(of)
			})
		}
	}
	return made
}

// weight is what a node comes to in lowered instructions.
func (x *explorer) weight(n *ir.Node) int { return x.weights.node(x.seg, n) }

// Work is what a node comes to in lowered instructions, for each element of its result.
func Work(seg *segment.Segment, n *ir.Node) int {
	if n.Op.Class() == ir.ClassView {
		return 0
	}
	return make(weights).node(seg, n)
}

func (w weights) node(seg *segment.Segment, n *ir.Node) int {
	switch n.Op.Class() {
	case ir.ClassMove, ir.ClassGather: // reads, and which of them it is
		return int(n.NArgs)
	}
	var code []ir.Instr
	in := ir.Instr{Op: n.Op, DT: n.DT, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	add := func(dt ir.DType) {
		in.Args[len(code)] = ir.Ref(len(code))
		code = append(code, ir.Instr{Op: ir.Load, DT: dt})
	}
	if n.Op.Info().Indexed {
		add(ir.Uint32)
		add(ir.Uint32)
	}
	for _, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			add(seg.Scalars[a.ID].DT)
		} else {
			add(seg.Tensors[a.ID].DT)
		}
	}
	return w.of(code, in)
}
