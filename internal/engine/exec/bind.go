package exec

import (
	"slices"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Binder binds plans to memory for one stream. The stream's lock guards the Binder: it binds one
// plan at a time, from Begin to Submit. The Job holds all that its run needs.
type Binder struct {
	*Job
	*device.Base
	Pool    *memory.Pool
	Tune    *autotune.Tuner
	Lane    *jobqueue.Lane
	Owner   Owner
	Number  uint64 // the stream's number on its device
	Segment uint64 // the number on the device of the segment that is being bound

	owned  []int32         // ids of tensors for which Mem holds a reader that Disown must release
	spotOf []int32         // by tensor id, for ids in owned: the index in owned
	spare  []*memory.Block // memory of temporaries that no later step reads; only this plan reuses it
	views  []fusion.View
}

// Owner is the stream whose segments a Binder binds.
type Owner interface {
	// Report stores an operation's error for later readers of its result, and tells the hooks.
	Report(*operror.Error)
	// Wanted reports that a handle still names the result with this relative id.
	Wanted(id int32) bool
}

func (w *Binder) submitter(segment uint64) device.Submitter {
	return device.Submitter{Stream: w.Number, Segment: segment}
}

// Begin takes a Job from the pool for a plan and its segment.
func (w *Binder) Begin(ent *planstore.Known, seg *segment.Segment) {
	j := jobs.Get().(*Job)
	w.Job, j.by, j.known, j.segment = j, w, ent, w.Segment
	j.Mem = slices.Grow(j.Mem, len(seg.Tensors))[:len(seg.Tensors)]
}

// Operand sets the memory of operand id.
func (w *Binder) Operand(id int, st *memory.Storage) {
	w.Mem[id] = st
	w.reads = append(w.reads, st.Block)
}

// Bind gives memory to every result that the plan writes. If geo is nil, Bind computes the
// layout, or finds it in the plan's Memo. Bind returns the geometry that it used.
func (w *Binder) Bind(ent *planstore.Known, geo *planstore.Geometry, seg *segment.Segment) (_ *planstore.Geometry, err error) {
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

// Take ends the part of binding that can fail. The job's blocks are now held until it has run,
// and its results are complete when the lane's next job has run.
func (w *Binder) Take() {
	w.Counts.Kernels.Add(int64(len(w.launches)))
	w.hold()
}

// Submit puts the job into the lane's queue; with start it runs as soon as possible. Faults of
// the job are stored in the blocks that it writes.
func (w *Binder) Submit(start bool) {
	j := w.Job
	w.Disown()
	w.Lane.Submit(j, start)
}

// SubmitChecked submits the job and waits for it. Check reads its memory afterwards.
func (w *Binder) SubmitChecked() {
	j := w.Job
	w.Job = &Job{Mem: slices.Clone(j.Mem), writes: slices.Clone(j.writes)}
	w.Lane.Submit(j, false)
	w.Lane.Last().Wait()
}

// steps gives every step its memory and fills the launch list.
func (w *Binder) steps(ent *planstore.Known, seg *segment.Segment, lay *fusion.Layout) error {
	args, scalars := 0, 0
	for k := range ent.Plan.Steps {
		args += len(lay.Launches[k].Args)
		scalars += len(ent.Plan.Steps[k].Scalars)
	}
	w.args = slices.Grow(w.args, args)
	w.scalars = slices.Grow(w.scalars, scalars)

	provisional := ent.Searching.Load() || ent.Next.Load() != nil
	chained := 0 // steps below this index are in a chain, which reads their operands until it ends
	freed := 0   // for steps below this index, freeAfter has run
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

// place finds memory for output operand i of step k. It takes the memory of an input that this
// step reads last, then spare memory, then new memory.
func (w *Binder) place(ent *planstore.Known, seg *segment.Segment, k, i int, l *runtime.Launch) error {
	t := ent.Plan.Steps[k].Operands[i].Tensor
	var b *memory.Block
	from := -1
	if !ent.Plan.InChain(k) { // a chain reads its operands until it ends, and some of them are never in memory
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

// inPlace returns the tensor of an input of step k whose memory output operand i may overwrite,
// or -1. The plan pairs the two operands, their real layouts are the same, no later step reads
// the input, and no other operand of the step uses the same buffer.
func (w *Binder) inPlace(ent *planstore.Known, seg *segment.Segment, k, i int, l *runtime.Launch) int {
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
func (w *Binder) dying(ent *planstore.Known, seg *segment.Segment, k, t int) bool {
	if ent.LastRead(t) != k {
		return false
	}
	// One reader is left: the queue for an operand, the plan for a temporary.
	return seg.Tensors[t].Life != segment.LifeWrite && seg.Tensors[t].Life != segment.LifeInput &&
		w.Mem[t].Refs.Load() == 1 && w.Mem[t].Quiet(w.Lane) && !w.aliased(ent, t) && !w.pinnedByRecipe(ent, seg, int32(t))
}

func (w *Binder) aliased(ent *planstore.Known, t int) bool {
	for _, a := range ent.Plan.Aliases {
		if a.Of == t {
			return true
		}
	}
	return false
}

// pinnedByRecipe reports that the recipe of a virtual result, which a handle still names, starts
// from operand t.
func (w *Binder) pinnedByRecipe(ent *planstore.Known, seg *segment.Segment, t int32) bool {
	if len(ent.Sets) == 0 {
		return false // no recipes, as in a training step
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

// takeSpare returns spare memory of exactly that size, or nil.
func (w *Binder) takeSpare(bytes int64) *memory.Block {
	for i, b := range w.spare {
		if b.Bytes == bytes {
			w.spare = slices.Delete(w.spare, i, i+1)
			return b
		}
	}
	return nil
}

// freeAfter makes temporaries whose last use is in steps from..k spare, so that later steps can
// use their memory. It does not free dense copies of operands, because running the operations one
// by one starts from them. The pool gets spare memory back when the plan has run.
func (w *Binder) freeAfter(ent *planstore.Known, seg *segment.Segment, from, k int) {
	for _, last := range ent.Plan.Uses().Last[from : k+1] {
		for _, t := range last {
			x := &seg.Tensors[t]
			if x.Def < 0 || x.Life == segment.LifeWrite || w.Mem[t] == nil || w.aliased(ent, int(t)) {
				continue
			}
			if b := w.Mem[t].Block; b.Refs.Load() == 1 {
				w.spare = append(w.spare, b)
			} else {
				b.Release() // a later result overwrote it in place
			}
			w.disown(t)
		}
	}
}

// own notes that Mem holds a reader of tensor t that Disown must release.
func (w *Binder) own(t int32) {
	if n := len(w.Mem); len(w.spotOf) < n {
		w.spotOf = slices.Grow(w.spotOf, n-len(w.spotOf))[:n]
	}
	w.spotOf[t] = int32(len(w.owned))
	w.owned = append(w.owned, t)
}

// disown undoes own.
func (w *Binder) disown(t int32) {
	at, end := w.spotOf[t], len(w.owned)-1
	last := w.owned[end]
	w.owned[at], w.spotOf[last] = last, at
	w.owned = w.owned[:end]
}

// Disown drops the readers that binding held; settled results have readers of their own. It is
// called before the job is submitted, since a submitted job may be recycled before Submit
// returns. If binding fails, Disown ends the job.
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
