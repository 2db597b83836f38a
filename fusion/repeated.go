package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// A value that several results depend on is computed once for each of them if it is not written,
// together with everything that it depends on. Where results are a chain, as derivatives are, the
// work then grows with the square of their number.

// longWork is the number of lowered instructions from which on a value is written instead of being
// recomputed. The number counted is the instructions that lead to the value, times the results that
// depend on it.
const longWork = 64

// writeRepeated writes some of the values that several groups compute, so that no group is far from
// the values in memory that it starts from. It writes values only if more than half of all work is
// repeated work, and if (where the groups are few) joining the groups does not remove the
// repetition. Groups that join later keep these values in registers and need not write them.
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
	if all <= 2*once || x.joinsShared(2*once) || x.late() {
		return
	}
	made := x.madeOf()
	work := make(map[int32]int, len(x.part)) // instructions from values in memory to each value
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

// joinEffort bounds the number of values that joinsShared may look at.
const joinEffort = 8192

// joinsShared joins the groups if there are few. It keeps them joined, and reports true, if they
// then compute at most so many lowered instructions per element. Example: the mean of a costly
// value and the mean of its square become one kernel, which computes the value once.
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

// madeOf gives, for each needed value of the part, the set of written values that depend on it. The
// set holds places in the part.
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

// weight is the number of lowered instructions of a node.
func (x *explorer) weight(n *ir.Node) int { return x.weights.node(x.seg, n) }

func (w weights) node(seg *segment.Segment, n *ir.Node) int {
	switch n.Op.Class() {
	case ir.ClassMove, ir.ClassGather: // the reads, and the choice among them
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
