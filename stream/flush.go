package stream

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// flush runs all queued ops. With wait, they have run when unlock returns; without wait,
// recording goes on meanwhile. Errors are stored in the values that they concern. The lock is
// held.
func (s *Stream) flush(end segment.End, wait bool) {
	if s.trial != nil {
		return // a trial runs nothing
	}
	if s.q.Len() == 0 {
		s.reset()
		return
	}
	s.keepSet()
	number := uint64(s.dev.Counts.Segments.Add(1))
	s.bind.Segment = number
	ops := s.q.Len()
	told := s.dev.TellsFlush()
	var start time.Time
	if told {
		start = time.Now()
	}
	if limit := s.dev.pinnedLimit(); s.dev.mem.Pinned.Load() > limit {
		end.All = true
	}
	if s.taped() {
		end.All, wait = true, true
		s.taping.part(end)
	}
	s.lend(end)
	s.work.unasked, s.work.none = s.work.unasked[:0], false
	ent, geo := s.hot(end)
	if ent == nil && s.foresee(end) {
		ent, geo = s.hot(end)
	}
	ent, seg, hit, err := s.run(ent, geo, end, wait)
	if len(s.work.unasked) > 0 && errors.Is(err, runtime.ErrOutOfMemory) {
		s.unmark()
		ent, geo = s.hot(end)
		ent, seg, hit, err = s.run(ent, geo, end, wait)
	}
	kernels, made := 0, ""
	if ent != nil {
		kernels, made = len(ent.Plan.Steps), ent.Plan.Mode.String()
	}
	if err != nil {
		s.rescue(seg, ent, err)
		s.spoil()
	}
	s.submitted(wait)
	s.reset()
	s.dev.Counts.Ops.Add(int64(ops))
	if told {
		s.dev.OnFlush(device.FlushEvent{Device: s.dev.Number, Stream: s.num, Segment: number, Reason: end.Reason.String(), Ops: ops, Kernels: kernels,
			Hit: hit, Plan: made, Start: start, Elapsed: time.Since(start)})
	}
}

// run finds a plan for the queue, if it is not known already, and executes it. The lock is held.
func (s *Stream) run(ent *planstore.Known, geo *planstore.Geometry, end segment.End, wait bool) (_ *planstore.Known, seg *segment.Segment, hit bool, err error) {
	seg, hit = &s.work.hot, true
	if ent != nil {
		s.dev.Counts.Hits.Add(1)
	} else {
		seg = s.segment(end)
		if s.dev.Closed.Load() {
			err = runtime.ErrClosed
		} else {
			ent, hit, err = s.query(seg, end).Find()
		}
		ent.SettleCostly(seg)
	}
	if err == nil {
		err = s.execute(ent, geo, seg, wait)
	}
	return ent, seg, hit, err
}

// submitted sets the job for which unlock waits. With wait, it is the job submitted last. Without
// wait, it is a job exec.MaxQueued jobs earlier, which bounds how far recording runs ahead. The
// lock is held.
func (s *Stream) submitted(wait bool) {
	if wait {
		s.due = s.lane.Next
	} else if s.lane.Next > exec.MaxQueued {
		s.due = max(s.due, s.lane.Next-exec.MaxQueued)
	}
}

// reset empties the queue and drops its readers of the operands.
func (s *Stream) reset() {
	for i := range s.q.Slots {
		if st := s.q.Slots[i].H.st; st != nil {
			st.Release()
		}
	}
	s.q.Reset()
	s.lines = s.lines[:0]
	s.weight, s.extra, s.redone = 0, 0, 0
	clear(s.alien)
	s.turn++
	s.node = s.dev.plans.Trie.Root()
}

// segment converts the queue to a segment for fusion. The stream reuses the segment's slices.
func (s *Stream) segment(end segment.End) *segment.Segment {
	w := &s.work
	seg := &w.seg
	seg.Nodes, seg.Out = s.q.Nodes()
	seg.Tensors, seg.Scalars = seg.Tensors[:0], seg.Scalars[:0]
	for _, sc := range s.q.Scalars {
		seg.Scalars = append(seg.Scalars, segment.Scalar(sc))
	}
	for id := range s.q.Slots {
		sl := &s.q.Slots[id]
		life := lifeOf(seg, int32(id), sl, end)
		seg.Tensors = append(seg.Tensors, segment.Tensor{
			DT: sl.DT, Shape: sl.Form.Shape, Def: sl.Def, Life: life, Lent: life == segment.LifeWrite && sl.Lent, Memory: repeated(sl),
		})
	}
	s.shorten(seg)
	return seg
}

// shorten drops released results from the results to write, except those that a recipe of a live
// value needs. Without them such a recipe would start from the operands of several segments, and
// with each segment from more.
func (s *Stream) shorten(seg *segment.Segment) {
	var need []bool
	for id := range s.q.Slots {
		if sl := &s.q.Slots[id]; sl.Keep && sl.Released && seg.Tensors[id].Life == segment.LifeWrite {
			need = make([]bool, len(seg.Tensors))
			break
		}
	}
	if need == nil {
		return
	}
	for n := len(seg.Nodes) - 1; n >= 0; n-- {
		id := seg.Out[n]
		t := &seg.Tensors[id]
		if sl := &s.q.Slots[id]; t.Life == segment.LifeWrite && sl.Keep && sl.Released && !need[id] {
			t.Life = segment.LifeDead
		}
		if t.Life == segment.LifeVirtual || t.Life == segment.LifeCostly || t.Lent || t.Life == segment.LifeDead && need[id] {
			node := &seg.Nodes[n]
			for _, a := range node.Args[:node.NArgs] {
				if !a.Scalar {
					need[a.ID] = true
				}
			}
		}
	}
}

// lifeOf decides what happens to a value when its segment runs. The segment writes values that
// were read or kept, and the last values of a chain; it does not write released values. Of the
// others, the values that are costly to recompute (contractions, reductions, sorts) are written
// unless all their readers are in the same kernel. The rest become virtual: the handle keeps the
// ops that compute them. The decision depends only on the relative ops and on how the segment
// ended, so a plan fits every segment of the same form.
func lifeOf(seg *segment.Segment, id int32, sl *queue.Slot[held], end segment.End) segment.Life {
	switch {
	case sl.Def < 0 && sl.Released:
		return segment.LifeInputDying
	case sl.Def < 0:
		return segment.LifeInput
	case sl.Keep || id == end.ID:
		return segment.LifeWrite
	case sl.Released:
		return segment.LifeDead
	case sl.Uses == 0 || sl.Lent || end.All:
		return segment.LifeWrite
	case segment.Costly(seg.Nodes[sl.Def].Op):
		return segment.LifeCostly
	}
	return segment.LifeVirtual
}

// pinnedLimit returns how many bytes recipes may pin.
func (d *Device) pinnedLimit() int64 {
	switch o := &d.Opts; {
	case o.PinnedLimit > 0:
		return o.PinnedLimit
	case o.MemoryLimit > 0:
		return o.MemoryLimit / 4
	}
	return 1 << 30
}

// queueBudget returns the number of bytes that a queue may hold before it is cut.
func (d *Device) queueBudget() int64 {
	if l := d.Opts.MemoryLimit; l > 0 {
		return l / 8
	}
	return 1 << 31
}

// execute binds a plan to memory, submits it, and settles its results. geo is nil if the layout
// is not known yet.
func (s *Stream) execute(ent *planstore.Known, geo *planstore.Geometry, seg *segment.Segment, wait bool) (err error) {
	defer operror.Recover("bind", &err)
	w := &s.bind
	defer w.Disown()
	w.Begin(ent, seg)
	for id := range s.q.Slots {
		if st := s.q.Slots[id].H.st; st != nil {
			w.Operand(id, st)
		}
	}
	if geo, err = w.Bind(ent, geo, seg); err != nil {
		return err
	}
	w.Lines = slices.Clone(s.lines)
	s.buildRecipes(ent, seg, geo)
	// Nothing may fail from here on.
	w.Take()
	s.settle(ent, seg)
	s.wroteUnasked(ent)
	if !s.dev.Opts.Check {
		w.Submit(!wait)
		return nil
	}
	w.SubmitChecked()
	w.Check(ent, seg, s.lines, s.q.InOrder())
	return nil
}

// query returns the queued segment in the form that the plan store takes.
func (s *Stream) query(seg *segment.Segment, end segment.End) *planstore.Query {
	q := &s.work.query
	*q = planstore.Query{Store: &s.dev.plans, At: s.node, Seg: seg, End: end, Entries: s.q.Items, Scalars: s.q.Scalars, Lines: s.lines}
	return q
}

// Wanted reports that the program can request the result with this relative id.
func (s *Stream) Wanted(id int32) bool { return s.q.Slots[id].H.v != nil }

// buildRecipes builds the recipes of the results that are not written, and of lent ones. The plan is
// bound: s.bind.Mem has the memory of the results that it writes. A broken invariant panics here,
// before any result is settled, and execute turns the panic into an error.
func (s *Stream) buildRecipes(ent *planstore.Known, seg *segment.Segment, geo *planstore.Geometry) {
	w := &s.work
	w.recipes = append(w.recipes[:0], make([]*recipe, len(ent.Sets))...)
	var scalars []segment.Scalar
	for _, id := range seg.Out {
		if s.asked(id) == nil || s.written(seg, id) && !seg.Tensors[id].Lent || w.recipes[ent.SetOf[id]] != nil {
			continue
		}
		if scalars == nil {
			scalars = slices.Clone(seg.Scalars)
		}
		w.recipes[ent.SetOf[id]] = s.newRecipe(ent, geo, scalars, ent.Sets[ent.SetOf[id]])
	}
	w.shorts = append(w.shorts[:0], make([]*recipe, len(ent.Short))...)
	for _, x := range w.cheap {
		id := x.v.id
		if s.written(seg, id) || w.shorts[ent.ShortOf[id]] != nil {
			continue
		}
		r := s.newRecipe(ent, geo, scalars, ent.Short[ent.ShortOf[id]])
		r.short = true
		w.shorts[ent.ShortOf[id]] = r
	}
}

// settle gives each result of a flush its memory or its recipe. Other streams may use the memory
// from then on, because the memory refers to the job that writes it.
func (s *Stream) settle(ent *planstore.Known, seg *segment.Segment) {
	w := &s.work
	defer clear(w.recipes)
	for _, id := range seg.Out {
		v := s.asked(id)
		if v == nil {
			continue
		}
		if s.written(seg, id) {
			st := s.bind.Mem[id]
			st.RetainAs(memory.Handles)
			v.state = stReady
			if seg.Tensors[id].Lent {
				st = v.lends(st, w.recipes[ent.SetOf[id]])
			}
			v.mem.Store(st)
			if v.unscoped() {
				st.Watch()
			}
			if s.taped() {
				s.taping.made(id, v)
			}
			continue
		}
		r := w.recipes[ent.SetOf[id]]
		s.spoil()
		r.live.Add(1)
		v.state, v.ext = stVirtual, &r.self
		if v.unscoped() {
			r.watch()
		}
	}
	s.leases(ent)
}

// asked returns the handle through which the program can request a result of the queue, or nil.
func (s *Stream) asked(id int32) *Value {
	if v := s.q.Slots[id].H.v; v != nil && v.state == stPending && v.id == id {
		return v
	}
	return nil
}

// written reports that the bound plan writes a result to memory that stays.
func (s *Stream) written(seg *segment.Segment, id int32) bool {
	return s.bind.Mem[id] != nil && seg.Tensors[id].Life == segment.LifeWrite
}

func (s *Stream) newRecipe(ent *planstore.Known, geo *planstore.Geometry, scalars []segment.Scalar, leaves []int32) *recipe {
	r := &recipe{known: ent, geo: geo, scalars: scalars, leaves: leaves}
	r.self.recipe = r
	if r.pins = r.room[:0]; len(leaves) > len(r.room) {
		r.pins = make([]*memory.Storage, 0, len(leaves))
	}
	for _, id := range leaves {
		st := s.q.Slots[id].H.st
		if st == nil {
			st = s.bind.Mem[id]
		}
		if st == nil {
			panic(fmt.Sprintf("operand %%%d of a recipe has no memory", id))
		}
		st.RetainAs(memory.Recipes)
		r.pins = append(r.pins, st)
	}
	return r
}
