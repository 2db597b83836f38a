package exec

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/runtime"
)

// Fixed is a Bound whose memory is the same in every run: the memory of its inputs, its results
// and its intermediate results. A result that cannot be written to its destination is copied
// there at the end of a run. Callers use one method at a time, while no job of the lane runs.
type Fixed struct {
	b        *Bound
	by       *Binder
	blocks   []*memory.Block // by slot
	over     []bool          // by slot: the launches write it over an input
	own      []*memory.Block
	sinks    []Sink
	sequence runtime.Sequence // the prepared list, if it is a Sequence
}

// Sink is memory that must hold a result when a run has ended.
type Sink struct {
	Result int             // the result's index in the list given to Sketch.Bound; -1: use From
	From   *memory.Storage // an input or a constant
	To     *memory.Block   // dense
	DT     ir.DType
	Shape  ir.Shape
}

// Fix makes a Fixed of a Bound that has no run in progress; the Fixed owns the Bound from then
// on. inputs is the memory of the Bound's inputs. over marks the inputs that a run may overwrite:
// those that a run sets and that have no other reader.
func (b *Bound) Fix(by *Binder, inputs []*memory.Storage, over []bool, sinks []Sink) (f *Fixed, err error) {
	f = &Fixed{b: b, by: by, blocks: make([]*memory.Block, len(b.places)), over: make([]bool, len(b.places)), sinks: sinks}
	defer func() {
		if err != nil {
			f.Close()
			f = nil
		}
	}()
	for i, st := range inputs {
		f.blocks[i] = st.Block
	}
	for i := range b.fresh {
		if from := b.fresh[i].over; from >= 0 && over[from] && f.once(f.blocks[from]) {
			slot := b.inputs + i
			f.blocks[slot], f.over[slot], f.over[from] = f.blocks[from], true, true
		}
	}
	for i := range sinks {
		s := &sinks[i]
		if s.Result < 0 {
			continue
		}
		r := &b.results[s.Result]
		if s.From = nil; r.slot >= b.inputs && r.view == nil && f.blocks[r.slot] == nil && !f.has(s.To) {
			f.blocks[r.slot] = s.To
		}
	}
	for i := range b.fresh {
		if slot := b.inputs + i; f.blocks[slot] == nil {
			if f.blocks[slot], err = f.take(b.fresh[i].bytes); err != nil {
				return f, err
			}
		}
	}
	for slot, blk := range f.blocks[b.inputs:] {
		blk.MadeBy(b.fresh[slot].by, b.fresh[slot].id)
	}
	b.put(f.blocks)
	if err = f.copies(); err != nil {
		return f, err
	}
	b.prepare(by, f.over)
	f.prepared()
	return f, nil
}

// take allocates memory that the Fixed owns.
func (f *Fixed) take(bytes int64) (*memory.Block, error) {
	blk, err := f.by.Pool.Alloc(bytes, false)
	if err != nil {
		return nil, err
	}
	blk.Watch() // a Recording may become garbage without a call of Release
	f.own, f.b.nobodys = append(f.own, blk), append(f.b.nobodys, blk.Buf)
	return blk, nil
}

// once reports that exactly one input has this memory and that no constant has it.
func (f *Fixed) once(blk *memory.Block) bool {
	n := 0
	for _, x := range f.blocks[:f.b.inputs] {
		if x == blk {
			n++
		}
	}
	return n == 1 && !f.constant(blk)
}

func (f *Fixed) constant(blk *memory.Block) bool {
	return slices.ContainsFunc(f.b.fixed, func(at fixedAt) bool { return at.block == blk })
}

// has reports that a slot or a constant already uses the block.
func (f *Fixed) has(blk *memory.Block) bool { return slices.Contains(f.blocks, blk) || f.constant(blk) }

// copies appends launches that copy results to their destinations. If the destination of one copy
// is the source of another, the source is first copied to separate memory.
func (f *Fixed) copies() error {
	var list []*Sink
	for i := range f.sinks {
		s := &f.sinks[i]
		if s.Result >= 0 {
			r := &f.b.results[s.Result]
			blk := r.constant
			if r.slot >= 0 {
				blk = f.blocks[r.slot]
			}
			s.From = &memory.Storage{Block: blk, View: r.view}
		}
		if s.From.Block != s.To || s.From.View != nil {
			list = append(list, s)
		}
	}
	for i, s := range list {
		if !slices.ContainsFunc(list, func(x *Sink) bool { return x.To == s.From.Block }) {
			continue
		}
		aside, err := f.take(f.by.Bytes(s.DT, s.Shape))
		if err != nil {
			return err
		}
		if err := f.copy(aside, s); err != nil {
			return err
		}
		moved := *s
		moved.From = &aside.Dense
		list[i] = &moved
	}
	for _, s := range list {
		if err := f.copy(s.To, s); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fixed) copy(to *memory.Block, s *Sink) error {
	if s.Shape.Elems() == 0 {
		return nil
	}
	l, err := f.by.Pool.CopyLaunch(to, s.DT, s.Shape, s.From)
	if err == nil {
		f.b.launches = append(f.b.launches, l)
	}
	return err
}

func (f *Fixed) prepared() {
	f.sequence, _ = f.b.prepared.(runtime.Sequence)
}

// Kernels returns the number of launches of one run, copies included.
func (f *Fixed) Kernels() int { return len(f.b.launches) }

// OneCall returns the run as one call of at most some microseconds, or nil.
func (f *Fixed) OneCall() runtime.Sequence { return f.sequence }

// Run runs it n times. The caller makes sure that the device is not closed meanwhile.
func (f *Fixed) Run(n int) (err error) {
	if f.sequence != nil && f.sequence.Repeat(n) {
		return nil
	}
	defer operror.Recover("run", &err)
	b := f.b
	for range n {
		if b.prepared != nil {
			done, err := b.prepared.Run()
			if err != nil {
				return err
			}
			if done {
				continue
			}
			b.unprepare()
			f.sequence = nil
			b.put(f.blocks)
		}
		if err := f.by.Launch(b.launches, &b.ran, f.by.submitter(0)); err != nil {
			return err
		}
		b.prepare(f.by, f.over)
		f.prepared()
	}
	return nil
}

// Failed ends a Fixed after a failed run. It computes operation by operation what can still be
// computed. The memory of other results carries the error, as do inputs that were overwritten.
func (f *Fixed) Failed(err error) {
	b := f.b
	first := b.copiesFrom()
	var at *runtime.LaunchError
	if !errors.As(err, &at) || at.Index < first {
		r := &Replay{b: b, by: f.by, blocks: f.blocks, over: f.over}
		r.apart(err)
	}
	for i := range f.sinks {
		s := &f.sinks[i]
		if s.From.Block == s.To {
			continue
		}
		s.To.Fault.Store(s.From.Block.Fault.Load())
	}
	if first < len(b.launches) {
		if err := f.by.Launch(b.launches[first:], nil, f.by.submitter(0)); err != nil {
			f.by.OnError(err)
		}
	}
}

// copiesFrom returns the index of the first launch after those of the parts.
func (b *Bound) copiesFrom() int {
	if n := len(b.parts); n > 0 {
		return b.parts[n-1].first + b.parts[n-1].n
	}
	return 0
}

// Count adds the launches that ran to the device's counters.
func (f *Fixed) Count() {
	if f.sequence != nil {
		f.sequence.Count()
	}
}

// Close releases the memory and drops the Bound.
func (f *Fixed) Close() {
	for _, blk := range f.own {
		blk.Release()
	}
	f.own = nil
	f.b.Drop()
}
