package stream

import (
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// recipe is how virtual results are made again: the segment they ran in, and
// the memory they start from, which it pins. Results of one segment with the
// same leaves share one recipe, and no more than that: a result must not pin
// what only its neighbours need.
type recipe struct {
	self    ext // what its values point at: one allocation less
	known   *plans.Known
	geo     *plans.Geometry // the segment's nodes and shapes
	scalars []segment.Scalar
	leaves  []int32           // relative ids of the segment
	pins    []*memory.Storage // their memory; the recipe is one of its readers
	room    [2]*memory.Storage
	live    atomic.Int32
	watched bool // the collector tells of pins that are dropped; under the stream's lock
}

// drop is called when one of the recipe's values dies or is in memory.
func (r *recipe) drop() {
	if r.live.Add(-1) == 0 {
		for _, st := range r.pins {
			st.ReleaseAs(memory.Recipes)
		}
	}
}

// watch has the collector tell of what the recipe pins: a value that nobody
// releases keeps it alive by the recipe alone.
func (r *recipe) watch() {
	if r.watched {
		return
	}
	r.watched = true
	for _, st := range r.pins {
		st.Watch()
	}
}

// notOwn notes, where again is set, that the items from one on are not the
// program's own.
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

// replay records the ops of a virtual value again, marks it to be written and
// returns its new relative id. It never cuts the stream. The lock is held.
func (s *Stream) replay(v *Value) int32 {
	if s.taped() {
		s.taping.revive(v)
	}
	r := v.ext.recipe
	rec, last := &r.geo.Seg, v.id
	begin := len(s.q.Items)
	if s.dev.Profile != nil {
		what, line := r.known.Describe(last)
		s.dev.Profile.Found(profile.Recomputed, what, line)
	}

	// The nodes that lead to v, found backwards.
	need := make([]bool, len(rec.Tensors))
	need[last] = true
	for n := len(rec.Nodes) - 1; n >= 0; n-- {
		id := rec.Out[n]
		if !need[id] || plans.IsLeaf(&rec.Tensors[id]) {
			continue
		}
		for _, a := range rec.Nodes[n].Args[:rec.Nodes[n].NArgs] {
			if !a.Scalar {
				need[a.ID] = true
			}
		}
	}
	// A leaf comes right before the first node that reads it, as everywhere in a queue.
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
	var inner []int32
	for n := range rec.Nodes {
		id := rec.Out[n]
		if !need[id] || plans.IsLeaf(&rec.Tensors[id]) {
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
		h := held{}
		if id == last {
			h.v = v
		}
		now[id] = s.push(&node, queue.NewForm(node.Shape), h)
		if s.node == nil || s.dev.Opts.Lines {
			s.noteLine(r.known.LineOf(nil, int32(n)))
		}
		if id != last {
			inner = append(inner, now[id])
		}
	}
	v.id, v.state, v.ext = now[last], stPending, nil
	s.step(s.q.Mark(ir.Keep, v.id))
	for _, id := range inner {
		s.step(s.q.Mark(ir.Release, id))
	}
	s.notOwn(begin, true)
	seg := *rec
	seg.Scalars = r.scalars
	r.known.Replay(plans.Dearest(&seg, need, last))
	r.drop()
	s.dev.Counts.Recomputes.Add(1)
	return v.id
}
