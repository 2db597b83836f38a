package exec

import (
	"slices"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Binder binds plans to memory for a stream, whose lock guards it: one at a time, from
// begin to submit. What a job needs when it runs is the job's.
type Binder struct {
	*Job
	*device.Base
	Pool    *memory.Pool
	Tune    *autotune.Tuner
	Lane    *lane.Lane
	Owner   Owner
	Number  uint64 // of the stream on its device
	Segment uint64 // of what is bound, on the device

	owned  []int32         // tensors for which mem holds a reader of its own
	spotOf []int32         // by tensor that is owned: where it is in owned
	spare  []*memory.Block // of temporaries no later step reads: free for this plan only
	views  []fusion.View
}

// Owner is the stream whose segments are bound.
type Owner interface {
	// Report keeps an error of an op for who asks, and tells of it.
	Report(*operror.Error)
	// Wanted says that somebody can ask for the result of that relative id.
	Wanted(id int32) bool
}

func (w *Binder) submitter(segment uint64) device.Submitter {
	return device.Submitter{Stream: w.Number, Segment: segment}
}

// Begin makes a job of a plan and a segment.
func (w *Binder) Begin(ent *plans.Known, seg *segment.Segment) {
	j := jobs.Get().(*Job)
	w.Job, j.by, j.known, j.segment = j, w, ent, w.Segment
	j.Mem = slices.Grow(j.Mem, len(seg.Tensors))[:len(seg.Tensors)]
}

// Operand says where an operand of the segment is.
func (w *Binder) Operand(id int, st *memory.Storage) {
	w.Mem[id] = st
	w.reads = append(w.reads, st.Block)
}

// Bind gives all that the plan writes its memory. geo is nil where the layout is to be
// found; it returns the one that it took.
func (w *Binder) Bind(ent *plans.Known, geo *plans.Geometry, seg *segment.Segment) (_ *plans.Geometry, err error) {
	if geo == nil {
		if geo, err = w.layout(ent, seg); err != nil {
			return nil, err
		}
	}
	lay := geo.Layout
	if err := w.steps(ent, seg, lay); err != nil {
		return nil, err
	}
	for i, a := range ent.Plan.Aliases {
		of := w.Mem[a.Of]
		of.Retain()
		view := lay.Views[i]
		w.Mem[a.Tensor] = &memory.Storage{Block: of.Block, View: &view}
		w.own(int32(a.Tensor))
		w.Counts.Aliases.Add(1)
	}
	j := w.Job
	j.units = w.Tune.Choose(autotune.Plan{Steps: ent.Plan.Steps, Texts: ent.Texts, Nodes: geo.Seg.Nodes, Tuned: &geo.Tuned}, j.launches)
	j.seg.Nodes, j.seg.Out, j.seg.Tensors = geo.Seg.Nodes, geo.Seg.Out, geo.Seg.Tensors
	j.seg.Scalars = append(j.seg.Scalars[:0], seg.Scalars...)
	return geo, nil
}

// Take is the end of what may fail: the memory of the job is its own from now on, and
// what it writes is there when the lane's next job has run.
func (w *Binder) Take() {
	w.Counts.Kernels.Add(int64(len(w.launches)))
	w.hold()
}

// Submit queues the job; where start is set it runs as soon as it can. Its faults are
// found in the blocks that it should have written.
func (w *Binder) Submit(start bool) {
	j := w.Job
	w.Disown()
	w.Lane.Submit(j, start)
}

// SubmitChecked is Submit for a job whose memory is looked at when it has run, by Check.
func (w *Binder) SubmitChecked() {
	j := w.Job
	w.Job = &Job{Mem: slices.Clone(j.Mem), writes: slices.Clone(j.writes)}
	w.Lane.Submit(j, false)
	w.Lane.Last().Wait()
}

// steps gives every step its memory and fills the launch list.
func (w *Binder) steps(ent *plans.Known, seg *segment.Segment, lay *fusion.Layout) error {
	args, scalars := 0, 0
	for k := range ent.Plan.Steps {
		args += len(lay.Launches[k].Args)
		scalars += len(ent.Plan.Steps[k].Scalars)
	}
	w.args = slices.Grow(w.args, args)
	w.scalars = slices.Grow(w.scalars, scalars)

	provisional := ent.Searching.Load() || ent.Next.Load() != nil
	chained := 0 // steps below this are in a chain: their operands are read until its end
	freed := 0   // steps below this have given up what they were the last to use
	for k := range ent.Plan.Steps {
		step, l := &ent.Plan.Steps[k], lay.Launches[k]
		a0, s0 := len(w.args), len(w.scalars)
		w.args = append(w.args, l.Args...)
		l.Args = w.args[a0:len(w.args):len(w.args)]
		for _, slot := range step.Scalars {
			w.scalars = append(w.scalars, seg.Scalars[slot].Bits)
		}
		l.Scalars = w.scalars[s0:len(w.scalars):len(w.scalars)]
		l.Prog, l.Provisional = ent.Progs[k], provisional
		for i, op := range step.Operands {
			if step.Kernel.Operands[i].Kind == codegen.Input && l.Args[i].Local == 0 {
				l.Args[i].Buf = w.Mem[op.Tensor].Buf
			}
		}
		for i, op := range step.Operands {
			if step.Kernel.Operands[i].Kind != codegen.Output || l.Args[i].Local > 0 {
				continue
			}
			if w.Mem[op.Tensor] == nil {
				if err := w.place(ent, seg, k, i, &l); err != nil {
					return err
				}
			}
			l.Args[i].Buf = w.Mem[op.Tensor].Buf
		}
		w.launches = append(w.launches, l)
		if l.Chain != nil {
			chained = k + l.Chain.N
		}
		if k+1 >= chained {
			w.freeAfter(ent, seg, freed, k)
			freed = k + 1
		}
	}
	return nil
}

// place finds memory for what operand i of step k writes: that of an operand
// which dies here, else new.
func (w *Binder) place(ent *plans.Known, seg *segment.Segment, k, i int, l *runtime.Launch) error {
	t := ent.Plan.Steps[k].Operands[i].Tensor
	var b *memory.Block
	from := -1
	if !ent.Plan.InChain(k) { // whose operands are read until its end, or lie in no memory of their own
		from = w.inPlace(ent, seg, k, i, l)
	}
	if from >= 0 {
		b = w.Mem[from].Block
		b.Retain()
		w.Counts.InPlace.Add(1)
	} else {
		var err error
		bytes := w.Bytes(seg.Tensors[t].DT, seg.Tensors[t].Shape)
		if b = w.takeSpare(bytes); b == nil {
			if b, err = w.Pool.Alloc(bytes, true); err != nil {
				return err
			}
			b.Home = w.Lane
		}
	}
	b.MadeBy(ent, int32(t))
	w.Mem[t] = &b.Dense
	w.own(int32(t))
	w.writes = append(w.writes, b)
	return nil
}

// inPlace finds an operand of step k whose memory operand i may overwrite: one
// that the plan pairs with it, whose real layout is the same, that nothing
// reads afterwards and that no other operand looks at under another name. -1
// if there is none.
func (w *Binder) inPlace(ent *plans.Known, seg *segment.Segment, k, i int, l *runtime.Launch) int {
	step := &ent.Plan.Steps[k]
	out := &l.Args[i]
	if w.Opts.Check || len(out.Stages) > 0 {
		return -1
	}
	for _, p := range step.InPlace {
		c, t := p.In, step.Operands[p.In].Tensor
		if p.Out != i || !sameAccess(out, &l.Args[c], l.Rank) || !w.dying(ent, seg, k, t) {
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

// dying reports that step k is the last reader of a tensor's memory.
func (w *Binder) dying(ent *plans.Known, seg *segment.Segment, k, t int) bool {
	if ent.LastRead(t) != k {
		return false
	}
	// One reader left: the queue's for an operand, the plan's for a temporary.
	return seg.Tensors[t].Life != segment.LifeWrite && seg.Tensors[t].Life != segment.LifeInput &&
		w.Mem[t].Refs.Load() == 1 && w.Mem[t].Quiet(w.Lane) && !w.aliased(ent, t) && !w.pinnedByRecipe(ent, seg, int32(t))
}

func (w *Binder) aliased(ent *plans.Known, t int) bool {
	for _, a := range ent.Plan.Aliases {
		if a.Of == t {
			return true
		}
	}
	return false
}

// pinnedByRecipe reports that a virtual result of this segment will start
// from operand t, if anybody can still ask for it.
func (w *Binder) pinnedByRecipe(ent *plans.Known, seg *segment.Segment, t int32) bool {
	if len(ent.Sets) == 0 {
		return false // as in a step: nothing of it is made again
	}
	for _, id := range seg.Out {
		if c := ent.SetOf[id]; c >= 0 && w.Owner.Wanted(id) {
			if _, found := slices.BinarySearch(ent.Sets[c], t); found {
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
func (w *Binder) takeSpare(bytes int64) *memory.Block {
	for i, b := range w.spare {
		if b.Bytes == bytes {
			w.spare = slices.Delete(w.spare, i, i+1)
			return b
		}
	}
	return nil
}

// freeAfter gives up temporaries that steps from..k are the last to use, so that later
// steps may use their memory. A dense copy of an operand is none: ops that are run
// one by one start from it. The device gets it back when the plan has run.
func (w *Binder) freeAfter(ent *plans.Known, seg *segment.Segment, from, k int) {
	for _, last := range ent.Plan.Uses().Last[from : k+1] {
		for _, t := range last {
			x := &seg.Tensors[t]
			if x.Def < 0 || x.Life == segment.LifeWrite || w.Mem[t] == nil || w.aliased(ent, int(t)) {
				continue
			}
			if b := w.Mem[t].Block; b.Refs.Load() == 1 {
				w.spare = append(w.spare, b)
			} else {
				b.Release() // a later result took it over in place
			}
			w.disown(t)
		}
	}
}

// own notes a reader that mem has of its own.
func (w *Binder) own(t int32) {
	if n := len(w.Mem); len(w.spotOf) < n {
		w.spotOf = slices.Grow(w.spotOf, n-len(w.spotOf))[:n]
	}
	w.spotOf[t] = int32(len(w.owned))
	w.owned = append(w.owned, t)
}

// disown is the end of that.
func (w *Binder) disown(t int32) {
	at, end := w.spotOf[t], len(w.owned)-1
	last := w.owned[end]
	w.owned[at], w.spotOf[last] = last, at
	w.owned = w.owned[:end]
}

// Disown drops the readers that binding held; results keep those settle gave. It is
// called before the job is submitted, which may be another one by the time that
// submit returns; where binding fails nobody else has it.
func (w *Binder) Disown() {
	if w.Job == nil {
		return
	}
	for _, t := range w.owned {
		w.Mem[t].Release()
	}
	for _, b := range w.spare {
		b.Release()
	}
	clear(w.spare)
	w.owned, w.spare = w.owned[:0], w.spare[:0]
	w.Job = nil
}
