package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// flow says where the tensors of a long segment are made and read. Its order is that of the
// program, with one exception: a node whose result is only written, such as an update of a weight
// after all derivatives, comes right after the last of its operands. Then the two may share a
// kernel, and no operand has to wait in memory.
type flow struct {
	*explorer
	order []int32 // the needed nodes
	place []int32 // place of each node in order, -1 where the node is not needed
	last  []int32 // for each tensor, the place of the last node that reads it, itself or as a view; -1: none
	uses  []int32 // for each tensor, the number of later parts that read it
	work  []int   // for each tensor, the lowered instructions from its leaves to it
	from  [][]int32
}

// maxLeaves is the largest number of tensors in memory from which a value may be recomputed.
const maxLeaves = 4

// costly is the amount of work of a value that is too costly to recompute.
const costly = 1 << 20

func (x *explorer) newFlow() *flow {
	n := len(x.seg.Tensors)
	f := &flow{explorer: x, last: slices.Repeat([]int32{-1}, n), uses: make([]int32, n), work: make([]int, n), from: make([][]int32, n)}
	f.sort()
	for i := len(f.order) - 1; i >= 0; i-- {
		f.eachRead(f.order[i], func(a, at int32) { f.last[a] = max(f.last[a], at) })
	}
	for t := range x.seg.Tensors {
		if x.seg.Tensors[t].Def < 0 {
			f.from[t] = []int32{int32(t)}
		}
	}
	return f
}

// sort computes order and place.
func (f *flow) sort() {
	s := sorter{flow: f, final: f.finals(), free: make([]bool, len(f.seg.Nodes)), readers: make([][]int32, len(f.seg.Tensors))}
	f.place = slices.Repeat([]int32{-1}, len(f.seg.Nodes))
	for n := range f.seg.Nodes {
		if f.needed[f.seg.Out[n]] {
			s.free[n] = s.final[n]
			f.eachArg(int32(n), func(a int32) {
				s.readers[a] = append(s.readers[a], int32(n))
				if d := f.seg.Tensors[a].Def; d >= 0 {
					s.free[n] = s.free[n] && s.free[d]
				}
			})
		}
	}
	for n := range f.seg.Nodes {
		if f.needed[f.seg.Out[n]] && f.place[n] < 0 {
			s.put(int32(n))
		}
	}
}

type sorter struct {
	*flow
	final   []bool
	free    []bool    // final, and computed from inputs and other free nodes only
	readers [][]int32 // the nodes that read each tensor
}

// put places a node whose operands are placed, and after it the final nodes that are ready then.
func (s *sorter) put(n int32) {
	s.place[n] = int32(len(s.order))
	s.order = append(s.order, n)
	next := func(t int32) {
		for _, r := range s.readers[t] {
			if s.final[r] && s.place[r] < 0 && s.ready(r) {
				s.putWith(r)
			}
		}
	}
	next(s.seg.Out[n])
	s.eachArg(n, func(a int32) {
		if s.seg.Tensors[a].Life == segment.LifeInputDying {
			next(a)
		}
	})
}

// ready reports a node whose operands are placed or free. A node that may overwrite an input must
// come after the other nodes that read the input.
func (s *sorter) ready(n int32) bool {
	ok := true
	s.eachArg(n, func(a int32) {
		if d := s.seg.Tensors[a].Def; d >= 0 && s.place[d] < 0 {
			ok = ok && s.free[d]
		}
		if s.seg.Tensors[a].Life == segment.LifeInputDying && s.succeeds(s.seg.Out[n], a) {
			for _, r := range s.readers[a] {
				ok = ok && (s.final[r] || s.place[r] >= 0)
			}
		}
	})
	return ok
}

// putWith places a ready node after those of its operands that are not placed yet.
func (s *sorter) putWith(n int32) {
	s.eachArg(n, func(a int32) {
		if d := s.seg.Tensors[a].Def; d >= 0 && s.place[d] < 0 {
			s.putWith(d)
		}
	})
	if s.place[n] < 0 {
		s.put(n)
	}
}

// finals marks the elementwise nodes whose results are read by no node except other final ones.
func (f *flow) finals() []bool {
	read := make([]bool, len(f.seg.Tensors)) // read by a node that is not final
	final := make([]bool, len(f.seg.Nodes))
	for n := len(f.seg.Nodes) - 1; n >= 0; n-- {
		t := f.seg.Out[n]
		if !f.needed[t] {
			continue
		}
		final[n] = !read[t] && f.seg.Nodes[n].Op.Class() == ir.ClassElementwise
		if !final[n] {
			f.eachArg(int32(n), func(a int32) { read[a] = true })
		}
	}
	return final
}

// eachRead visits the operands of a node, each with the place of its last read through this node. A
// view is read where the last node that uses it is.
func (f *flow) eachRead(n int32, visit func(a, at int32)) {
	out, at := f.seg.Out[n], f.place[n]
	if f.isView(out) && !f.stored[out] && f.alias[out] < 0 {
		at = f.last[out]
	} else if f.isView(out) {
		at = max(at, f.last[out])
	}
	f.eachArg(n, func(a int32) { visit(a, at) })
}

// bytes is the size of a tensor's elements.
func (f *flow) bytes(t int32) int64 { return f.elems(t) * f.elemSize(f.seg.Tensors[t].DT) }

// parts cuts the order at the places where the fewest bytes that a part makes are read after it. It
// returns the number of the part of each node; -1 for nodes that are not needed.
func (f *flow) parts() []int32 {
	partOf := slices.Repeat([]int32{-1}, len(f.seg.Nodes))
	end := len(f.order)
	for from, number := 0, int32(0); from < end; number++ {
		to := f.cut(from, end)
		for _, n := range f.order[from:to] {
			partOf[n] = number
		}
		from = to
	}
	return partOf
}

func (f *flow) cut(from, end int) int {
	size := f.opt.partSize()
	if end-from <= size {
		return end
	}
	crossing := make([]int64, size+1) // bytes that cross each place, counted from the beginning of the part
	for i, n := range f.order[from : from+size] {
		t := f.seg.Out[n]
		if behind := int(f.last[t]) - from; behind > i && !f.isView(t) {
			crossing[i+1] += f.bytes(t)
			if behind < size {
				crossing[behind+1] -= f.bytes(t)
			}
		}
	}
	for i := 1; i <= size; i++ {
		crossing[i] += crossing[i-1]
	}
	to := min(size, end-from-size/2) // leaves enough nodes for the next part
	for at := to - 1; at >= max(1, size/2); at-- {
		if crossing[at] < crossing[to] {
			to = at
		}
	}
	return from + to
}

// partAt is the part that begins at a place of the order.
func (f *flow) partAt(from int) []int32 {
	to := from
	for to < len(f.order) && f.partOf[f.order[to]] == f.partOf[f.order[from]] {
		to++
	}
	return f.order[from:to]
}

// countUses counts the later parts that read each tensor.
func (f *flow) countUses() {
	seen := slices.Repeat([]int32{-1}, len(f.seg.Tensors))
	for i := len(f.order) - 1; i >= 0; i-- {
		f.eachRead(f.order[i], func(a, at int32) {
			if at < 0 {
				return
			}
			k := f.partOf[f.order[at]]
			if def := f.seg.Tensors[a].Def; def >= 0 && seen[a] != k && f.partOf[def] < k {
				seen[a] = k
				f.uses[a]++
			}
		})
	}
}

// keep marks the results that the part must write because later parts read them. Where later parts
// recompute a result instead, the part must write those leaves of it that the part computes.
func (f *flow) keep() {
	for _, n := range f.part {
		t := f.seg.Out[n]
		if !f.stored[t] {
			f.trace(n, t)
			if f.uses[t] > 0 && !f.isView(t) && !f.again(t) {
				f.stored[t] = true
			}
		}
		if f.stored[t] {
			f.work[t], f.from[t] = 0, []int32{t}
		}
		if f.uses[t] > 0 {
			for _, leaf := range f.from[t] {
				f.wanted[leaf] = f.wanted[leaf] || f.node(leaf) != nil
			}
		}
	}
}

// trace finds the leaves of a value, which are the tensors in memory that it is computed from, and
// the work from them to the value.
func (f *flow) trace(n, t int32) {
	node := &f.seg.Nodes[n]
	switch node.Op.Class() {
	case ir.ClassView, ir.ClassCreate, ir.ClassElementwise:
	default:
		f.work[t] = costly
	}
	if !f.isView(t) {
		f.work[t] += f.weight(node)
	}
	for i, a := range node.Args[:node.NArgs] {
		if a.Scalar || slices.Contains(node.Args[:i], a) {
			continue
		}
		f.work[t] += f.work[a.ID]
		for _, leaf := range f.from[a.ID] {
			if !slices.Contains(f.from[t], leaf) {
				f.from[t] = append(f.from[t], leaf)
			}
		}
	}
	if len(f.from[t]) > maxLeaves || f.work[t] >= costly {
		f.work[t], f.from[t] = costly, nil
	}
}

// again reports that recomputing a value in the later parts is predicted to be faster than writing
// and reading it.
func (f *flow) again(t int32) bool {
	if f.work[t] >= costly {
		return false
	}
	elems, bytes := f.elems(t), int64(0)
	for _, leaf := range f.from[t] {
		bytes += min(f.memory(leaf), elems) * f.elemSize(f.seg.Tensors[leaf].DT)
	}
	once := float64(bytes)/f.model.bandwidth + float64(elems)*float64(f.work[t])*f.model.op
	return float64(f.uses[t])*once < float64(1+f.uses[t])*float64(f.bytes(t))/f.model.bandwidth
}
