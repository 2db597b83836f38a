package stream

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// bind is the scratch space in which a stream's flushes bind plans. What a job
// needs when it runs is the job's.
type bind struct {
	*job
	seg     segment.Segment
	hot     segment.Segment // of a flush whose sizes are known: but for its scalars the geometry's
	owned   []int32         // tensors for which mem holds a reader of its own
	spare   []*block        // of temporaries no later step reads: free for this plan only
	views   []fusion.View
	recipes []*recipe // of settle, by leaf set
}

// memo keeps the layout of the shapes a plan ran with last: a hot segment
// usually comes back with the same ones.
type memo struct {
	inputs []int32 // relative ids of operands
	nodes  []int32 // nodes whose shapes do not follow from their operands
	last   atomic.Pointer[geometry]
}

// geometry is one set of shapes and what follows from it. Immutable. Records of
// segments that ran with it share its copy of their nodes.
type geometry struct {
	seg    segment.Segment // without scalars
	shapes []ir.Shape      // of memo.inputs, then of memo.nodes
	attrs  []*ir.Attr      // of memo.nodes
	views  []*fusion.View
	layout *fusion.Layout
	tuned  atomic.Pointer[tuned] // nil until it runs
}

func (m *memo) init(seg *segment.Segment) {
	for id := range seg.Tensors {
		if seg.Tensors[id].Def < 0 {
			m.inputs = append(m.inputs, int32(id))
		}
	}
	for n := range seg.Nodes {
		switch seg.Nodes[n].Op.Class() {
		case ir.ClassView, ir.ClassCreate, ir.ClassMove:
			m.nodes = append(m.nodes, int32(n))
		}
	}
}

func (m *memo) fits(g *geometry, seg *segment.Segment, mem []*storage) bool {
	for i, id := range m.inputs {
		if !seg.Tensors[id].Shape.Equal(g.shapes[i]) || !sameView(mem[id].view, g.views[i]) {
			return false
		}
	}
	for i, n := range m.nodes {
		if node := &seg.Nodes[n]; !node.Shape.Equal(g.shapes[len(m.inputs)+i]) || !sameAttr(node.Attr, g.attrs[i]) {
			return false
		}
	}
	return true
}

func sameView(a, b *fusion.View) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.Offset == b.Offset && slices.Equal(a.Stride, b.Stride) &&
		len(a.Stages) == 0 && len(b.Stages) == 0
}

// sameAttr compares what of an attribute is not part of the relative form.
func sameAttr(a, b *ir.Attr) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && slices.Equal(a.Start, b.Start) && slices.Equal(a.Step, b.Step)
}

// layout finds where every kernel operand's elements are.
func (s *Stream) layout(ent *entry, seg *segment.Segment) (*geometry, error) {
	m, w := &ent.memo, &s.work
	if g := m.last.Load(); g != nil && m.fits(g, seg, w.mem) {
		return g, nil
	}
	w.views = w.views[:0]
	g := &geometry{}
	for id := range seg.Tensors {
		t := &seg.Tensors[id]
		if t.Def >= 0 {
			w.views = append(w.views, fusion.View{})
			continue
		}
		w.views = append(w.views, w.mem[id].layout())
		g.shapes = append(g.shapes, t.Shape)
		g.views = append(g.views, w.mem[id].view)
	}
	for _, n := range m.nodes {
		g.shapes = append(g.shapes, seg.Nodes[n].Shape)
		g.attrs = append(g.attrs, seg.Nodes[n].Attr)
	}
	lay, err := ent.plan.Layout(seg, w.views)
	for indexed := (*fusion.IndexedViewError)(nil); errors.As(err, &indexed); lay, err = ent.plan.Layout(seg, w.views) {
		if err := s.densify(seg, indexed.Tensor); err != nil {
			return nil, err
		}
		w.views[indexed.Tensor] = fusion.View{}
		m = new(memo) // the copy is this flush's alone
	}
	if err != nil {
		return nil, err
	}
	g.layout = lay
	g.seg = segment.Segment{Nodes: slices.Clone(seg.Nodes), Out: slices.Clone(seg.Out), Tensors: slices.Clone(seg.Tensors)}
	m.last.Store(g)
	return g, nil
}

// execute binds a plan to memory, submits it, and settles its results. geo is nil
// where the layout is to be found.
func (s *Stream) execute(ent *entry, geo *geometry, seg *segment.Segment, wait bool) (err error) {
	defer recoverBug("bind", &err)
	d, w := s.dev, &s.work
	j := jobs.Get().(*job)
	w.job, j.stream, j.entry = j, s, ent
	j.mem = slices.Grow(j.mem, len(seg.Tensors))[:len(seg.Tensors)]
	defer s.disown()
	for id := range s.q.Slots {
		if st := s.q.Slots[id].H.st; st != nil {
			w.mem[id] = st
			w.reads = append(w.reads, st.block)
		}
	}
	if geo == nil {
		if geo, err = s.layout(ent, seg); err != nil {
			return err
		}
	}
	lay := geo.layout
	if err := s.bindSteps(ent, seg, lay); err != nil {
		return err
	}
	for i, a := range ent.plan.Aliases {
		of := w.mem[a.Of]
		of.retain()
		view := lay.Views[i]
		w.mem[a.Tensor] = &storage{block: of.block, view: &view}
		w.owned = append(w.owned, int32(a.Tensor))
		d.stats.aliases.Add(1)
	}
	j.units = d.tune.choose(ent, geo, j.launches)
	j.seg.Nodes, j.seg.Out, j.seg.Tensors = geo.seg.Nodes, geo.seg.Out, geo.seg.Tensors
	j.seg.Scalars = append(j.seg.Scalars[:0], seg.Scalars...)
	j.lines = slices.Clone(s.lines)
	s.cook(ent, seg, geo)
	// From here on nothing may fail.
	d.stats.kernels.Add(int64(len(j.launches)))
	j.hold(s.lane)
	s.settle(ent, seg)
	if d.opts.Check {
		w.job = &job{mem: slices.Clone(j.mem), writes: slices.Clone(j.writes)}
		s.lane.submit(j, false)
		s.lane.last().wait()
		s.check(ent, seg, w.mem)
		return nil
	}
	s.disown()
	s.lane.submit(j, !wait) // its faults are found in the blocks it should have written
	return nil
}

// bindSteps gives every step its memory and fills the launch list.
func (s *Stream) bindSteps(ent *entry, seg *segment.Segment, lay *fusion.Layout) error {
	w := &s.work
	args, scalars := 0, 0
	for k := range ent.plan.Steps {
		args += len(lay.Launches[k].Args)
		scalars += len(ent.plan.Steps[k].Scalars)
	}
	w.args = slices.Grow(w.args, args)
	w.scalars = slices.Grow(w.scalars, scalars)

	provisional := ent.searching.Load() || ent.next.Load() != nil
	chained := 0 // steps below this are in a chain: their operands are read until its end
	for k := range ent.plan.Steps {
		step, l := &ent.plan.Steps[k], lay.Launches[k]
		a0, s0 := len(w.args), len(w.scalars)
		w.args = append(w.args, l.Args...)
		l.Args = w.args[a0:len(w.args):len(w.args)]
		for _, slot := range step.Scalars {
			w.scalars = append(w.scalars, seg.Scalars[slot].Bits)
		}
		l.Scalars = w.scalars[s0:len(w.scalars):len(w.scalars)]
		l.Prog, l.Provisional = ent.progs[k], provisional
		for i, op := range step.Operands {
			if step.Kernel.Operands[i].Kind == codegen.Input && l.Args[i].Local == 0 {
				l.Args[i].Buf = w.mem[op.Tensor].buf
			}
		}
		for i, op := range step.Operands {
			if step.Kernel.Operands[i].Kind != codegen.Output || l.Args[i].Local > 0 {
				continue
			}
			if w.mem[op.Tensor] == nil {
				if err := s.place(ent, seg, k, i, &l); err != nil {
					return err
				}
			}
			l.Args[i].Buf = w.mem[op.Tensor].buf
		}
		w.launches = append(w.launches, l)
		if l.Chain != nil {
			chained = k + l.Chain.N
		}
		if k+1 >= chained {
			s.freeAfter(ent, seg, k)
		}
	}
	return nil
}

// place finds memory for what operand i of step k writes: that of an operand
// which dies here, else new.
func (s *Stream) place(ent *entry, seg *segment.Segment, k, i int, l *runtime.Launch) error {
	w, d := &s.work, s.dev
	t := ent.plan.Steps[k].Operands[i].Tensor
	var b *block
	from := -1
	if !ent.plan.InChain(k) { // whose operands are read until its end, or lie in no memory of their own
		from = s.inPlace(ent, seg, k, i, l)
	}
	if from >= 0 {
		b = w.mem[from].block
		b.retain()
		d.stats.inPlace.Add(1)
	} else {
		var err error
		bytes := d.bytes(seg.Tensors[t].DT, seg.Tensors[t].Shape)
		if b = w.takeSpare(bytes); b == nil {
			if b, err = d.mem.alloc(bytes, true); err != nil {
				return err
			}
			b.home = s.lane
		}
	}
	b.entry, b.id = ent, int32(t)
	w.mem[t] = &b.dense
	w.owned = append(w.owned, int32(t))
	w.writes = append(w.writes, b)
	return nil
}

// inPlace finds an operand of step k whose memory operand i may overwrite: one
// that the plan pairs with it, whose real layout is the same, that nothing
// reads afterwards and that no other operand looks at under another name. -1
// if there is none.
func (s *Stream) inPlace(ent *entry, seg *segment.Segment, k, i int, l *runtime.Launch) int {
	step := &ent.plan.Steps[k]
	out := &l.Args[i]
	if s.dev.opts.Check || len(out.Stages) > 0 {
		return -1
	}
	for _, p := range step.InPlace {
		c, t := p.In, step.Operands[p.In].Tensor
		if p.Out != i || !sameAccess(out, &l.Args[c], l.Rank) || !s.dying(ent, seg, k, t) {
			continue
		}
		alone := true
		for o := range step.Operands {
			if o != c && step.Kernel.Operands[o].Kind != codegen.Index && l.Args[o].Buf == l.Args[c].Buf {
				alone = false
			}
		}
		if alone {
			return t
		}
	}
	return -1
}

// lastRead is the last step that reads a tensor's memory, lastUse the last that
// reads or writes it; -1 for none.
func (e *entry) lastRead(t int) int {
	if u := e.plan.Uses(); t < len(u.Read) {
		return u.Read[t]
	}
	return -1
}

func (e *entry) lastUse(t int) int {
	if u := e.plan.Uses(); t < len(u.Write) {
		return max(u.Read[t], u.Write[t])
	}
	return -1
}

// dying reports that step k is the last reader of a tensor's memory.
func (s *Stream) dying(ent *entry, seg *segment.Segment, k, t int) bool {
	if ent.lastRead(t) != k {
		return false
	}
	// One reader left: the queue's for an operand, the plan's for a temporary.
	return seg.Tensors[t].Life != segment.LifeWrite && seg.Tensors[t].Life != segment.LifeInput &&
		s.work.mem[t].refs.Load() == 1 && s.work.mem[t].quiet(s.lane) && !s.aliased(ent, t) && !s.pinnedByRecipe(ent, seg, int32(t))
}

func (s *Stream) aliased(ent *entry, t int) bool {
	for _, a := range ent.plan.Aliases {
		if a.Of == t {
			return true
		}
	}
	return false
}

// pinnedByRecipe reports that a virtual result of this segment will start
// from operand t, if anybody can still ask for it.
func (s *Stream) pinnedByRecipe(ent *entry, seg *segment.Segment, t int32) bool {
	for _, id := range seg.Out {
		if c := ent.setOf[id]; c >= 0 && s.q.Slots[id].H.v != nil {
			if _, found := slices.BinarySearch(ent.sets[c], t); found {
				return true
			}
		}
	}
	return false
}

func sameAccess(a, b *runtime.Access, rank int) bool {
	return a.Offset == b.Offset && a.IndexStride == b.IndexStride && len(a.Stages) == 0 && len(b.Stages) == 0 &&
		slices.Equal(a.Stride[:rank], b.Stride[:rank])
}

// takeSpare finds memory of that size which no later step needs.
func (w *bind) takeSpare(bytes int64) *block {
	for i, b := range w.spare {
		if b.bytes == bytes {
			w.spare = slices.Delete(w.spare, i, i+1)
			return b
		}
	}
	return nil
}

// freeAfter gives up temporaries that no step after k reads, so that later
// steps may use their memory. A dense copy of an operand is none: ops that are run
// one by one start from it. The device gets it back when the plan has run.
func (s *Stream) freeAfter(ent *entry, seg *segment.Segment, k int) {
	w := &s.work
	for i := 0; i < len(w.owned); i++ {
		t := w.owned[i]
		if x := &seg.Tensors[t]; x.Def < 0 || x.Life == segment.LifeWrite || ent.lastUse(int(t)) > k || s.aliased(ent, int(t)) {
			continue
		}
		if b := w.mem[t].block; b.refs.Load() == 1 {
			w.spare = append(w.spare, b)
		} else {
			b.release() // a later result took it over in place
		}
		w.owned = slices.Delete(w.owned, i, i+1)
		i--
	}
}

// disown drops the readers that binding held; results keep those settle gave. It is
// called before the job is submitted, which may be another one by the time that
// submit returns; where binding fails nobody else has it.
func (s *Stream) disown() {
	w := &s.work
	if w.job == nil {
		return
	}
	for _, t := range w.owned {
		w.mem[t].release()
	}
	for _, b := range w.spare {
		b.release()
	}
	clear(w.spare)
	w.owned, w.spare = w.owned[:0], w.spare[:0]
	w.job = nil
}

func cloneLaunches(ls []runtime.Launch) []runtime.Launch {
	out := slices.Clone(ls)
	for i := range out {
		out[i].Args = slices.Clone(out[i].Args)
		out[i].Scalars = slices.Clone(out[i].Scalars)
	}
	return out
}
