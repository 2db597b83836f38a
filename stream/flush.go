package stream

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// flush has everything queued run: with wait by the time that the lock has been
// given up, else while recording goes on. Errors end up in the values they concern.
// The lock is held.
func (s *Stream) flush(end segment.End, wait bool) {
	if s.q.Len() == 0 {
		s.reset()
		return
	}
	ops := s.q.Len()
	told := s.dev.tellsFlush()
	var start time.Time
	if told {
		start = time.Now()
	}
	if limit := s.dev.pinnedLimit(); s.dev.mem.pinned.Load() > limit {
		end.All = true
	}
	if s.taped() {
		end.All, wait = true, true
		s.taping.part(end)
	}
	var err error
	ent, geo := s.hot(end)
	seg, hit := &s.work.hot, true
	if ent == nil {
		seg = s.segment(end)
		if s.dev.closed.Load() {
			err = runtime.ErrClosed
		} else {
			ent, hit, err = s.planFor(seg, end)
		}
		ent.settleDear(seg)
	}
	kernels, made := 0, ""
	if err == nil {
		kernels, made = len(ent.plan.Steps), ent.plan.Mode.String()
		err = s.execute(ent, geo, seg, wait)
	}
	if err != nil {
		s.rescue(seg, ent, err)
		s.spoil()
	}
	if wait {
		s.due = s.lane.next
	} else if s.lane.next > maxQueued {
		s.due = max(s.due, s.lane.next-maxQueued)
	}
	s.reset()
	s.dev.stats.segments.Add(1)
	s.dev.stats.ops.Add(int64(ops))
	if told {
		s.dev.onFlush(FlushEvent{Stream: s.num, Reason: end.Reason.String(), Ops: ops, Kernels: kernels,
			Hit: hit, Plan: made, Start: start, Elapsed: time.Since(start)})
	}
}

// reset empties the queue, dropping it as a reader of its operands.
func (s *Stream) reset() {
	for i := range s.q.Slots {
		if st := s.q.Slots[i].H.st; st != nil {
			st.release()
		}
	}
	s.q.Reset()
	s.lines = s.lines[:0]
	s.weight, s.extra = 0, 0
	clear(s.alien)
	s.node = s.dev.trie.Root()
}

// segment is the queue as fusion sees it. Its slices are the stream's own and
// are reused.
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
		seg.Tensors = append(seg.Tensors, segment.Tensor{
			DT: sl.DT, Shape: sl.Form.Shape, Def: sl.Def, Life: lifeOf(seg, int32(id), sl, end), Memory: repeated(sl),
		})
	}
	return seg
}

// lifeOf applies rule L3. It depends on the relative ops and the end only, so
// that a plan fits every segment of the same form.
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
	case sl.Uses == 0 || end.All:
		return segment.LifeWrite
	case segment.Dear(seg.Nodes[sl.Def].Op):
		return segment.LifeDear
	}
	return segment.LifeVirtual
}

// recoverBug turns a panic of the engine's own making into an error. Runtime
// panics of Go (nil pointers, indices) are not swallowed.
func recoverBug(pass string, err *error) {
	switch r := recover().(type) {
	case nil:
	case goruntime.Error:
		panic(r)
	default:
		*err = &InternalError{Pass: pass, Cause: r}
	}
}

// lineOf is where a node was recorded, as far as anybody knows: by this queue,
// or when its plan was made.
func lineOf(own []string, e *entry, node int32) string {
	if int(node) < len(own) && own[node] != "" {
		return own[node]
	}
	if e != nil && int(node) < len(e.lines) {
		return e.lines[node]
	}
	return ""
}

// opError names the node that a fault of a run concerns.
func opError(seg *segment.Segment, line string, node int32, cause error) *OpError {
	var already *OpError
	if errors.As(cause, &already) {
		return already
	}
	n := &seg.Nodes[node]
	e := &OpError{Op: n.Op.String(), Caller: line, Err: cause}
	for _, a := range n.Args[:n.NArgs] {
		if !a.Scalar {
			e.Shapes = append(e.Shapes, seg.Tensors[a.ID].Shape)
		}
	}
	if len(e.Shapes) == 0 {
		e.Shapes = []ir.Shape{n.Shape}
	}
	return e
}

// pinnedLimit is the byte budget of recipes.
func (d *Device) pinnedLimit() int64 {
	switch o := &d.opts; {
	case o.PinnedLimit > 0:
		return o.PinnedLimit
	case o.MemoryLimit > 0:
		return o.MemoryLimit / 4
	}
	return 1 << 30
}

// queueBudget is how many bytes a queue may come to hold before it is cut.
func (d *Device) queueBudget() int64 {
	if l := d.opts.MemoryLimit; l > 0 {
		return l / 8
	}
	return 1 << 31
}

// cook makes the recipes of results that are not written. The plan was bound: w.mem
// holds the memory of what it writes. A broken invariant would be found here.
func (s *Stream) cook(ent *entry, seg *segment.Segment, geo *geometry) {
	w := &s.work
	w.recipes = append(w.recipes[:0], make([]*recipe, len(ent.sets))...)
	var scalars []segment.Scalar
	for _, id := range seg.Out {
		if s.asked(id) == nil || s.written(seg, id) || w.recipes[ent.setOf[id]] != nil {
			continue
		}
		if scalars == nil {
			scalars = slices.Clone(seg.Scalars)
		}
		w.recipes[ent.setOf[id]] = s.newRecipe(ent, geo, scalars, ent.sets[ent.setOf[id]])
	}
}

// settle gives the results of a flush their memory or their recipe. From then on others
// may have the memory: the job that writes it was noted there.
func (s *Stream) settle(ent *entry, seg *segment.Segment) {
	w := &s.work
	defer clear(w.recipes)
	for _, id := range seg.Out {
		v := s.asked(id)
		if v == nil {
			continue
		}
		if s.written(seg, id) {
			st := w.mem[id]
			st.retainAs(handles)
			v.state = stReady
			v.mem.Store(st)
			if v.unscoped() {
				st.watch()
			}
			if s.taped() {
				s.taping.made(id, v)
			}
			continue
		}
		r := w.recipes[ent.setOf[id]]
		s.spoil()
		r.live.Add(1)
		v.state, v.ext = stVirtual, &r.self
		if v.unscoped() {
			r.watch()
		}
	}
}

// asked is the handle by which a result of the queue may be asked for, if any.
func (s *Stream) asked(id int32) *Value {
	if v := s.q.Slots[id].H.v; v != nil && v.state == stPending && v.id == id {
		return v
	}
	return nil
}

// written reports a result that the plan which is bound puts into memory to stay.
func (s *Stream) written(seg *segment.Segment, id int32) bool {
	return s.work.mem[id] != nil && seg.Tensors[id].Life == segment.LifeWrite
}

func (s *Stream) newRecipe(ent *entry, geo *geometry, scalars []segment.Scalar, leaves []int32) *recipe {
	r := &recipe{entry: ent, geo: geo, scalars: scalars, leaves: leaves}
	r.self.recipe = r
	if r.pins = r.room[:0]; len(leaves) > len(r.room) {
		r.pins = make([]*storage, 0, len(leaves))
	}
	for _, id := range leaves {
		st := s.q.Slots[id].H.st
		if st == nil {
			st = s.work.mem[id]
		}
		if st == nil {
			panic(fmt.Sprintf("leaf %%%d of a recipe has no memory", id))
		}
		st.retainAs(recipes)
		r.pins = append(r.pins, st)
	}
	return r
}
