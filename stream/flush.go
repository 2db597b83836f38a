package stream

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// entry is a plan with what this device needs to run it.
type entry struct {
	plan  *fusion.Plan
	progs []runtime.Program // one per step
	memo  memo              // layout of the last shapes

	// Results that are not written, grouped by what they start from.
	sets  [][]int32
	class []int32

	found   atomic.Bool // a segment came back to it
	checked atomic.Bool // with Options.Check: compared with the op-by-op form

	// Dear results that the plan left unwritten and that were computed again
	// later; nil where there are none. Such a plan is not used any more: the
	// next one writes them.
	replayed atomic.Pointer[[]int32]

	lines []string // where the nodes were first recorded, as far as known
	text  string   // the segment it was explored on, for Explain
}

// flush runs everything queued. With wait it returns when the plan has run,
// else the plan is dispatched and recording goes on. Errors end up in the
// values they concern. The lock is held.
func (s *Stream) flush(end segment.End, wait bool) {
	if s.q.Len() == 0 {
		s.reset()
		return
	}
	ops := s.q.Len()
	start := time.Now()
	if limit := s.dev.pinnedLimit(); s.dev.mem.pinned.Load() > limit {
		end.All = true
	}
	seg := s.segment(end)
	var ent *entry
	hit, err, kernels := false, error(nil), 0
	if s.dev.closed.Load() {
		err = runtime.ErrClosed
	} else {
		ent, hit, err = s.planFor(seg, end)
	}
	ent.settleDear(seg)
	if err == nil {
		kernels = len(ent.plan.Steps)
		err = s.execute(ent, seg, wait)
	}
	if err != nil {
		s.rescue(seg, ent, err)
	}
	s.reset()
	s.dev.stats.segments.Add(1)
	s.dev.stats.ops.Add(int64(ops))
	s.dev.onFlush(FlushEvent{Stream: s.num, Reason: end.Reason.String(), Ops: ops, Kernels: kernels,
		Hit: hit, Start: start, Elapsed: time.Since(start)})
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
	s.weight = 0
	s.gen++
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

// greedyAfter is how many explorations that nobody profits from make a device
// stop searching for the best plan: its programs never repeat, so a cheap plan
// is better. An exploration is of use when its plan is found for the first time.
// Known plans that go on being found prove nothing, and streams come and go: so
// neither hits nor explorations are counted by stream.
const greedyAfter = 32

// hasEmpty reports a tensor without elements. Such segments have plans of their
// own: with a product of 0, groups of dims look equal that are not.
func hasEmpty(seg *segment.Segment) bool {
	for i := range seg.Tensors {
		for _, n := range seg.Tensors[i].Shape {
			if n == 0 {
				return true
			}
		}
	}
	return false
}

// planFor finds the plan of a segment or makes one.
func (s *Stream) planFor(seg *segment.Segment, end segment.End) (e *entry, hit bool, err error) {
	d := s.dev
	empty := hasEmpty(seg)
	if leaf := d.trie.Find(s.node, end); leaf != nil && !empty {
		for _, e := range leaf.Plans() {
			if again := e.replayed.Load(); again != nil {
				want(seg, *again)
				continue
			}
			if e.plan.Check(seg) {
				d.stats.hits.Add(1)
				if !e.found.Load() && !e.found.Swap(true) {
					d.unpaid.Store(0)
				}
				return e, true, nil
			}
		}
	}
	mode := d.opts.Fusion
	switch {
	case empty:
		mode = FusionOff // sizes say nothing about what is worth fusing
	case d.unpaid.Load() >= greedyAfter && mode == FusionOn:
		mode = FusionGreedy
	}
	e, err = s.explore(seg, mode)
	if err != nil && mode != FusionOff && !gone(err) {
		d.stats.fallbacks.Add(1)
		d.onError(err)
		e, err = s.explore(seg, FusionOff)
	}
	if err != nil {
		return nil, false, err
	}
	if empty {
		e.lines = s.knownLines()
		return e, false, nil
	}
	d.unpaid.Add(1)
	s.store(e, end)
	return e, false, nil
}

// knownLines is where the queued nodes were recorded: as this queue knows, else
// as plans with a common beginning do.
func (s *Stream) knownLines() []string {
	lines := make([]string, s.q.Len())
	copy(lines, s.lines)
	at := s.dev.trie.Root()
	for i := range s.q.Entries {
		e := &s.q.Entries[i]
		at = s.dev.trie.Step(at, &e.Key)
		if e.Node >= 0 && lines[e.Node] == "" {
			lines[e.Node] = s.dev.trie.Note(at)
		}
	}
	return lines
}

// store adds a plan to the trie. Lines of ops that were recorded while a known
// plan still matched come from that plan.
func (s *Stream) store(e *entry, end segment.End) {
	keys := make([]queue.Key, len(s.q.Entries))
	for i := range keys {
		keys[i] = s.q.Entries[i].Key
	}
	e.lines = s.knownLines()
	s.dev.trie.Add(keys, end, e, func(i int, note *string) {
		n := s.q.Entries[i].Node
		if n < 0 {
			return
		}
		if e.lines[n] == "" {
			e.lines[n] = *note
		} else if *note == "" {
			*note = e.lines[n]
		}
	})
}

// explore makes a plan and its programs. Broken invariants in fusion or
// codegen become an error here and nowhere else.
func (s *Stream) explore(seg *segment.Segment, mode FusionMode) (e *entry, err error) {
	defer recoverBug("explore", &err)
	d := s.dev
	start := time.Now()
	plan, err := fusion.Explore(seg, d.caps, fusion.Options{Mode: fusionMode[mode]})
	if err != nil {
		return nil, err
	}
	e = &entry{plan: plan}
	e.settleDear(seg)
	e.text = segmentText(seg)
	for i := range plan.Steps {
		p, err := d.program(plan.Steps[i].Kernel)
		if err != nil {
			return nil, err
		}
		e.progs = append(e.progs, p)
	}
	e.sets, e.class = leafSets(seg)
	e.memo.init(seg)
	d.stats.explored.Add(1)
	d.onExplore(ExploreEvent{Ops: len(seg.Nodes), Kernels: len(plan.Steps), Elapsed: time.Since(start)})
	return e, nil
}

var fusionMode = [...]fusion.Mode{FusionOn: fusion.Best, FusionGreedy: fusion.Greedy, FusionOff: fusion.Unfused}

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

// settle gives the results of a flush their memory or their recipe. The plan
// was bound and submitted: w.mem holds the memory of what it writes.
func (s *Stream) settle(ent *entry, seg *segment.Segment, geo *geometry) {
	w := &s.work
	var scalars []segment.Scalar
	w.recipes = append(w.recipes[:0], make([]*recipe, len(ent.sets))...)
	defer clear(w.recipes)
	for _, id := range seg.Out {
		v := s.q.Slots[id].H.v
		if v == nil || v.state != stPending || v.id != id {
			continue
		}
		if st := w.mem[id]; st != nil && seg.Tensors[id].Life == segment.LifeWrite {
			st.retainAs(handles)
			v.mem, v.state = st, stReady
			if v.owner() == nil {
				st.watch()
			}
			continue
		}
		r := w.recipes[ent.class[id]]
		if r == nil {
			if scalars == nil {
				scalars = slices.Clone(seg.Scalars)
			}
			r = s.newRecipe(ent, geo, scalars, ent.sets[ent.class[id]])
			w.recipes[ent.class[id]] = r
		}
		r.live.Add(1)
		v.ext, v.state = &r.self, stVirtual
		if v.owner() == nil {
			r.watch()
		}
	}
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
