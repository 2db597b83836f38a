package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Chain is a run of steps [From, To) that pass results only to each other: a contraction, a step on
// its rows, and a contraction of that. Where the sizes suit, the steps run tile by tile, and the
// passed results are never written to memory: see [runtime.Chain]. Each step computes the same
// values, in the same order, as it does alone.
type Chain struct{ From, To int }

// chains finds the runs of groups that may be chained, and moves the groups of each run next to
// each other. A group may always move back to just before its only reader.
func (x *explorer) chains() []Chain {
	if x.opt.Mode != Best {
		return nil
	}
	var found [][]*group
	taken := map[*group]bool{}
	for _, g := range x.groups {
		if !g.contracts() || taken[g] {
			continue
		}
		run := []*group{g}
		for next := x.onlyReader(g); next != nil && len(run) < 3; next = x.onlyReader(next) {
			if next.over < 0 || next.hasTotals() || taken[next] || next.contracts() != (len(run) == 2) || x.updates(next) {
				break
			}
			run = append(run, next)
		}
		if len(run) > 1 {
			found = append(found, run)
			for _, h := range run {
				taken[h] = true
			}
		}
	}
	for _, run := range found {
		last := run[len(run)-1]
		x.groups = slices.DeleteFunc(x.groups, func(g *group) bool { return g != last && slices.Contains(run, g) })
		at := slices.Index(x.groups, last)
		x.groups = slices.Insert(x.groups, at, run[:len(run)-1]...)
	}
	var chains []Chain
	for _, run := range found {
		from := slices.Index(x.groups, run[0])
		chains = append(chains, Chain{from, from + len(run)})
	}
	slices.SortFunc(chains, func(a, b Chain) int { return a.From - b.From })
	return chains
}

// updates reports a group that may overwrite an operand that ends with the segment. In a chain it
// could not overwrite it: the whole operand is read until the last tile.
func (x *explorer) updates(g *group) bool {
	return slices.ContainsFunc(x.price(g).reads, func(t int32) bool { return x.seg.Tensors[t].Life == segment.LifeInputDying && x.overwrites(g, t) })
}

// onlyReader is the only group that reads the result of g; nil if there are other readers, or if
// the result is needed after the segment.
func (x *explorer) onlyReader(g *group) *group {
	if len(g.roots) != 1 || g.roots[0].at.pieced() {
		return nil
	}
	t := g.roots[0].tensor
	if x.seg.Tensors[t].Life == segment.LifeWrite || slices.Contains(x.alias, t) {
		return nil
	}
	var reader *group
	for _, h := range x.groups {
		if h != g && slices.Contains(x.price(h).reads, t) {
			if reader != nil {
				return nil
			}
			reader = h
		}
	}
	return reader
}

// A chain is used if the passed results would not stay in a cache, and if the operand that every
// tile of a contraction reads again does.
const (
	chainBytes = 1 << 20 // smallest total of the passed results
	chainSide  = 1 << 20 // largest operand that a contraction reads in every tile
)

// chain turns the launches of a chain into one launch that runs tile by tile. It reports whether
// the sizes allow that.
func (p *Plan) chain(c Chain, seg *segment.Segment, ls []runtime.Launch) bool {
	steps, ls := p.Steps[c.From:c.To], ls[c.From:c.To]
	lead := ls[0].Kept
	for i := range ls {
		lead = min(lead, ls[i].Kept)
		for d := range lead {
			if ls[i].Dims[d] != ls[0].Dims[d] {
				lead = d
				break
			}
		}
	}
	for ; lead > 0; lead-- {
		if rc := chained(steps, seg, ls, lead); rc != nil {
			ls[0].Chain = rc
			return true
		}
	}
	return false
}

// chained is the chain over the given number of leading dims, or nil. It marks accesses as local
// only if the result is not nil.
func chained(steps []Step, seg *segment.Segment, ls []runtime.Launch, lead int) *runtime.Chain {
	points := int64(1)
	for _, n := range ls[0].Dims[:lead] {
		points *= n
	}
	if points < 2 {
		return nil
	}
	rc := &runtime.Chain{N: len(steps), Lead: lead}
	type local struct{ step, operand, number int }
	var locals []local
	total := int64(0)
	for i := range steps[:len(steps)-1] {
		t := steps[i].written()
		bytes := int64(seg.Tensors[t].Shape.Elems()) * int64(seg.Tensors[t].DT.Size())
		total += bytes
		row := int64(seg.Tensors[t].Shape.Elems()) / points
		number := len(rc.Local) // shared with the step's input where the step overwrites it
		if i == 0 || !overwrites(&steps[i], &ls[i], steps[i-1].written(), t) {
			rc.Local = append(rc.Local, bytes/points)
			number++
		}
		for j := i; j <= i+1; j++ {
			for o := range steps[j].Operands {
				if steps[j].Operands[o].Tensor != t || steps[j].Kernel.Operands[o].Kind == codegen.Index {
					continue
				}
				if !withinRows(&ls[j], o, lead, row) {
					return nil
				}
				locals = append(locals, local{j, o, number})
			}
		}
	}
	if total < chainBytes {
		return nil
	}
	for i := range steps {
		if steps[i].contracts() && sideBytes(&steps[i], &ls[i], lead) > chainSide {
			return nil
		}
	}
	for _, l := range locals {
		ls[l.step].Args[l.operand].Local = l.number
	}
	return rc
}

// ChainOf is the range of the chain that has step k, or of step k alone.
func (p *Plan) ChainOf(k int) (from, to int) {
	for _, c := range p.Chains {
		if c.From <= k && k < c.To {
			return c.From, c.To
		}
	}
	return k, k + 1
}

// InChain reports whether step k is in a chain.
func (p *Plan) InChain(k int) bool {
	from, to := p.ChainOf(k)
	return to > from+1
}

// HandsOver reports a tensor that one step of a chain passes to the next step only.
func (p *Plan) HandsOver(tensor int) bool {
	for _, c := range p.Chains {
		for k := c.From; k < c.To-1; k++ {
			if p.Steps[k].written() == tensor {
				return true
			}
		}
	}
	return false
}

// written is the tensor that a step of a chain passes on.
func (s *Step) written() int {
	for i, o := range s.Kernel.Operands {
		if o.Kind == codegen.Output {
			return s.Operands[i].Tensor
		}
	}
	return -1
}

func (s *Step) contracts() bool {
	return slices.ContainsFunc(s.Kernel.Body, func(in ir.Instr) bool { return in.Op == ir.Dot })
}

// overwrites reports that a step may write tensor out in the memory of tensor in.
func overwrites(s *Step, l *runtime.Launch, in, out int) bool {
	for _, p := range s.InPlace {
		if s.Operands[p.In].Tensor == in && s.Operands[p.Out].Tensor == out && l.Args[p.In].Stride == l.Args[p.Out].Stride {
			return true
		}
	}
	return false
}

// withinRows reports that an operand's elements for each point of the leading dims are a dense run
// of row elements, and that the runs are in the order of the points.
func withinRows(l *runtime.Launch, operand, lead int, row int64) bool {
	a := &l.Args[operand]
	if a.Offset != 0 || len(a.Stages) > 0 {
		return false
	}
	pitch := row
	for d := lead - 1; d >= 0; d-- {
		if a.Stride[d] != pitch && l.Dims[d] > 1 {
			return false
		}
		pitch *= l.Dims[d]
	}
	reach := int64(0)
	for d := lead; d < l.Rank; d++ {
		if a.Stride[d] < 0 {
			return false
		}
		reach += a.Stride[d] * max(l.Dims[d]-1, 0)
	}
	return reach < row
}

// sideBytes is the size of the largest operand that every tile reads whole: one that does not move
// along the last leading dim.
func sideBytes(s *Step, l *runtime.Launch, lead int) int64 {
	most := int64(0)
	for o := range l.Args {
		if s.Kernel.Operands[o].Kind != codegen.Input || l.Args[o].Stride[lead-1] != 0 {
			continue
		}
		n := int64(s.Kernel.Operands[o].DT.Size())
		for d := lead; d < l.Rank; d++ {
			if l.Args[o].Stride[d] != 0 {
				n *= l.Dims[d]
			}
		}
		most = max(most, n)
	}
	return most
}
