package stream

import (
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// recipe computes virtual results again. It has the segment in which they ran and the memory from
// which their computation starts; it pins that memory. Results of one segment share a recipe only
// if they have the same leaves, so a result never pins memory that only other results need.
type recipe struct {
	self    ext // the values' ext points here, which saves an allocation
	known   *planstore.Known
	geo     *planstore.Geometry // the segment's nodes and shapes
	scalars []segment.Scalar
	leaves  []int32           // relative ids in the segment
	pins    []*memory.Storage // memory of the leaves; the recipe is a reader of it
	room    [2]*memory.Storage
	live    atomic.Int32
	short   bool // lent results are leaves, too
	watched bool // the collector reports the death of the pins; guarded by the stream's lock
}

// drop is called when one of the recipe's values is released or is in memory.
func (r *recipe) drop() {
	if r.live.Add(-1) == 0 {
		for _, st := range r.pins {
			st.ReleaseAs(memory.Recipes)
		}
	}
}

// watch makes the collector report the death of the memory that the recipe pins. A value that is
// never released keeps that memory alive through its recipe only.
func (r *recipe) watch() {
	if r.watched {
		return
	}
	r.watched = true
	for _, st := range r.pins {
		st.Watch()
	}
}

// notOwn marks the items from index from on as items that the program did not record, if again is
// set.
func (s *Stream) notOwn(from int, again bool) {
	if !again {
		return
	}
	for i := from; i < len(s.q.Items); i++ {
		s.q.Items[i].Again = true
		s.extra++
		if s.q.Items[i].Node >= 0 {
			s.redone++
		}
	}
}

// replay records the ops of a virtual value again, marks the value to be written and returns its
// new relative id. It never cuts the stream. The lock is held.
func (s *Stream) replay(v *Value) int32 {
	if s.taped() {
		s.taping.revive(v)
	}
	r := v.recipe()
	if s.dev.Profile != nil {
		what, line := r.known.Describe(v.id)
		s.dev.Profile.Found(profile.Recomputed, what, line)
	}
	begin := len(s.q.Items)
	last, x := v.id, v.ext
	need, id, inner := s.rerun(r, last, held{v: v})
	v.id, v.state, v.ext = id, stPending, nil
	s.step(s.q.Mark(ir.Keep, v.id))
	s.releaseAll(inner)
	s.notOwn(begin, true)
	seg := r.geo.Seg
	seg.Scalars = r.scalars
	r.known.Replay(planstore.Costliest(&seg, need, last))
	x.drop()
	s.dev.Counts.Recomputes.Add(1)
	return v.id
}

// rerun records the ops that compute result last of a recipe's segment. It returns the tensors of
// the segment that these ops need, the new relative id of the result, for which the queue has h,
// and the new ids of the results between. The lock is held.
func (s *Stream) rerun(r *recipe, last int32, h held) (need []bool, id int32, inner []int32) {
	rec := &r.geo.Seg
	// Mark the nodes that lead to last, from the last one backwards.
	need = make([]bool, len(rec.Tensors))
	need[last] = true
	for n := len(rec.Nodes) - 1; n >= 0; n-- {
		id := rec.Out[n]
		if !need[id] || r.startsFrom(id) {
			continue
		}
		for _, a := range rec.Nodes[n].Args[:rec.Nodes[n].NArgs] {
			if !a.Scalar {
				need[a.ID] = true
			}
		}
	}
	// A leaf is added right before the first node that reads it, like every operand of a queue.
	now := slices.Repeat([]int32{-1}, len(rec.Tensors))
	operand := func(id int32) int32 {
		if now[id] < 0 {
			i, _ := slices.BinarySearch(r.leaves, id)
			t := &rec.Tensors[id]
			r.pins[i].Retain()
			s.notes(r.pins[i], nil)
			now[id] = s.foreign(r.pins[i], t.DT, queue.NewForm(t.Shape))
		}
		return now[id]
	}
	for n := range rec.Nodes {
		id := rec.Out[n]
		if !need[id] || r.startsFrom(id) {
			continue
		}
		node := rec.Nodes[n]
		for i, a := range node.Args[:node.NArgs] {
			if a.Scalar {
				sc := r.scalars[a.ID]
				node.Args[i].ID = s.q.Scalar(sc.DT, sc.Bits)
			} else {
				node.Args[i].ID = operand(a.ID)
			}
		}
		of := held{}
		if id == last {
			of = h
		}
		now[id] = s.push(&node, queue.NewForm(node.Shape), of)
		if s.node == nil || s.dev.Opts.Lines {
			s.noteLine(r.known.LineOf(nil, int32(n)))
		}
		if id != last {
			inner = append(inner, now[id])
		}
	}
	return need, now[last], inner
}

// startsFrom reports that the recipe has the memory of a tensor of its segment, if it needs it.
func (r *recipe) startsFrom(id int32) bool {
	t := &r.geo.Seg.Tensors[id]
	return planstore.IsLeaf(t) || r.short && t.Lent
}

func (s *Stream) releaseAll(ids []int32) {
	for _, id := range ids {
		s.step(s.q.Mark(ir.Release, id))
	}
}

// recipe is the shortest recipe of a virtual value. The lock is held.
func (v *Value) recipe() *recipe {
	if l := v.ext.lease; l != nil && l.short != nil {
		return l.short
	}
	return v.ext.recipe
}

// drop ends the recipes of a value.
func (x *ext) drop() {
	if x.lease != nil && x.lease.short != nil {
		x.lease.short.drop()
	}
	x.recipe.drop()
}
