package stream

import (
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// A wanted value is cheap if recomputing it takes less time than writing and reading it: a few
// light ops on one or two values that are in memory anyway. It stays virtual, with a second, short
// recipe that starts from lent values. An op that reads it reads a copy: ops in the queue that
// compute the value without a handle, so they run in the kernel that reads them and are not
// written. Ops of one queue share a copy. After a few copies the value is written.

const (
	workOfRead  = 10 // time of reading an element, in lowered instructions
	workOfCheap = 25 // greatest time of a cheap value, with its reads: a little more than writing and reading it
	opsOfCheap  = 3  // most ops of a cheap value, views included
	copiesMost  = 3  // number of queues that compute a cheap value again; the next one writes it
)

// price is the cost of computing a result from values that are in memory.
type price struct {
	wanted bool
	cheap  bool     // wanted, and not to be written
	known  bool     // false: the result depends on other ops than light ones, or on too many values
	n      int8     // number of from
	from   [2]int32 // the values in memory
	ops    int32
	work   int32 // lowered instructions for an element
}

// inMemory is the price of a result that is in memory when the segment has run.
func inMemory(id int32) price { return price{known: true, n: 1, from: [2]int32{id}} }

// appraise decides which of the wanted values are cheap, from the first op to the last, and marks
// the others to be written. To recompute all cheap values takes at most half as many ops as were
// recorded so far, and opsOfCheap more; views of memory are not counted. The lock is held.
func (s *Stream) appraise(due []want, end segment.End) {
	s.work.prices = append(s.work.prices[:0], make([]price, len(s.q.Slots))...)
	prices := s.work.prices
	for _, x := range due {
		prices[x.v.id].wanted = true
	}
	nodes, out := s.q.Nodes()
	spent := 0
	for n := range nodes {
		id := out[n]
		p, sl := &prices[id], &s.q.Slots[id]
		if id == end.ID || (sl.Keep || sl.Uses == 0) && !sl.Released {
			*p = inMemory(id)
			continue
		}
		s.price(p, &nodes[n])
		switch {
		case !p.wanted:
		case p.onlyMoves():
			p.cheap = true
		case spent+int(p.ops) <= n/2+opsOfCheap && s.saves(p, sl):
			p.cheap = true
			spent += int(p.ops)
		default:
			s.write(id, nodes)
		}
	}
}

// price sets the price of a result that is not written.
func (s *Stream) price(p *price, n *ir.Node) {
	switch {
	case n.Op == ir.Full, n.Op.Class() == ir.ClassView:
	case n.Op.Class() == ir.ClassElementwise:
		p.work = s.workOf(n)
	default:
		return
	}
	p.ops = 1
	for i, a := range n.Args[:n.NArgs] {
		if a.Scalar || i > 0 && n.Args[i-1] == a {
			continue
		}
		x := s.work.prices[a.ID]
		if s.q.Slots[a.ID].Def < 0 {
			x = inMemory(a.ID)
		}
		if !x.known {
			return
		}
		p.ops, p.work = p.ops+x.ops, p.work+x.work
		for _, from := range x.from[:x.n] {
			switch {
			case p.n > 0 && p.from[0] == from || p.n > 1 && p.from[1] == from:
			case int(p.n) == len(p.from):
				return
			default:
				p.from[p.n] = from
				p.n++
			}
		}
	}
	p.known = true
}

// onlyMoves reports a number, or a view of memory.
func (p *price) onlyMoves() bool { return p.known && p.work == 0 && p.n <= 1 }

// saves reports that recomputing a result takes less time than writing and reading it, and no more
// memory: the lent values that it holds are no larger.
func (s *Stream) saves(p *price, of *queue.Slot[held]) bool {
	if !p.known || p.ops > opsOfCheap || p.work+workOfRead*int32(p.n) > workOfCheap {
		return false
	}
	for _, id := range p.from[:p.n] {
		sl := &s.q.Slots[id]
		if lent := sl.Lent || sl.H.st != nil && sl.H.st.Lent; lent && s.bytes(sl) > s.bytes(of) {
			return false
		}
	}
	return true
}

func (s *Stream) bytes(sl *queue.Slot[held]) int64 {
	return sl.Form.Elems * int64(s.caps.ElemSize[sl.DT])
}

// write makes the segment write a wanted value. Of a view that repeats elements, it writes the
// value that is viewed.
func (s *Stream) write(id int32, nodes []ir.Node) {
	base, repeats := id, false
	for s.q.Slots[base].Def >= 0 && nodes[s.q.Slots[base].Def].Op.Class() == ir.ClassView {
		n := &nodes[s.q.Slots[base].Def]
		base, repeats = n.Args[0].ID, repeats || n.Op == ir.Expand || n.Op == ir.Window
	}
	if !repeats {
		s.step(s.q.Lend(id))
		s.work.prices[id] = inMemory(id)
		return
	}
	if !s.q.Slots[base].Keep {
		s.step(s.q.Mark(ir.Keep, base))
	}
	s.work.prices[base] = inMemory(base)
	p := inMemory(base)
	p.cheap, p.ops = true, 1
	s.work.prices[id] = p
}

// workKey is what the work of an op depends on.
type workKey struct {
	op   ir.Op
	dt   ir.DType
	args [3]ir.DType
}

// workOf is the work of an elementwise op. It is cached, because it is found anew from the op's
// expansion.
func (s *Stream) workOf(n *ir.Node) int32 {
	key := workKey{op: n.Op, dt: n.DT}
	for i, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			key.args[i] = s.q.Scalars[a.ID].DT
		} else {
			key.args[i] = s.q.Slots[a.ID].DT
		}
	}
	if work, known := s.work.works[key]; known {
		return work
	}
	one := segment.Segment{Nodes: []ir.Node{{Op: n.Op, DT: n.DT, NArgs: n.NArgs}}}
	for i, dt := range key.args[:n.NArgs] {
		one.Nodes[0].Args[i].ID = int32(i)
		one.Tensors = append(one.Tensors, segment.Tensor{DT: dt})
	}
	if s.work.works == nil {
		s.work.works = map[workKey]int32{}
	}
	work := int32(fusion.Work(&one)[0])
	s.work.works[key] = work
	return work
}

// recall returns the relative id of a virtual value that an op reads. The ops that compute it are
// recorded again; those of a cheap value as a copy. The lock is held.
func (s *Stream) recall(v *Value) int32 {
	l := v.leased()
	if l == nil || s.taped() || s.trial != nil {
		return s.replay(v)
	}
	if l.times > 0 && l.turn == s.turn {
		return l.copy
	}
	if l.times == copiesMost {
		return s.replay(v)
	}
	begin := len(s.q.Items)
	_, id, inner := s.rerun(l.short, v.id, held{})
	s.releaseAll(inner)
	s.notOwn(begin, true)
	l.copy, l.turn, l.times = id, s.turn, l.times+1
	return id
}

// endCopy releases the copy that the queue may have of a cheap value. The lock is held.
func (s *Stream) endCopy(l *lease) {
	if l != nil && l.times > 0 && l.turn == s.turn {
		s.step(s.q.Mark(ir.Release, l.copy))
		s.notOwn(len(s.q.Items)-1, true)
	}
}
