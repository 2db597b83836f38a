package exec

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/runtime"
)

// Fixed is a Bound all of whose memory stays the same from run to run: that of its inputs,
// of what is written over them, and of results. What cannot be written where it belongs is
// copied there behind the launches. Its methods are called one at a time, and while no job
// of the lane runs.
type Fixed struct {
	b        *Bound
	by       *Binder
	blocks   []*memory.Block // by slot
	over     []bool          // by slot: written over an input
	own      []*memory.Block
	sinks    []Sink
	sequence runtime.Sequence // what is prepared, where it is one
}

// Sink is memory that a result is to be in when a run has ended.
type Sink struct {
	Result int             // its number, as Sketch.Bound was told of it; -1: it is what From says
	From   *memory.Storage // an input or a constant
	To     *memory.Block   // dense
	DT     ir.DType
	Shape  ir.Shape
}

// Fix fixes a Bound, of which nothing runs and which is the Fixed's from then on. inputs
// are the memory of its inputs; over says which of them a run may write over: those that
// it sets, which nobody else reads.
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

// take is memory of its own.
func (f *Fixed) take(bytes int64) (*memory.Block, error) {
	blk, err := f.by.Pool.Alloc(bytes, false)
	if err != nil {
		return nil, err
	}
	blk.Watch() // a Recording may be dropped without a word
	f.own, f.b.nobodys = append(f.own, blk), append(f.b.nobodys, blk.Buf)
	return blk, nil
}

// once reports an input whose memory is no other's.
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

// has reports memory that something lies in already.
func (f *Fixed) has(blk *memory.Block) bool { return slices.Contains(f.blocks, blk) || f.constant(blk) }

// copies appends launches that bring results where they belong. What would be written over
// by one before another has read it is put aside first.
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

// Kernels is the number of launches of a run.
func (f *Fixed) Kernels() int { return len(f.b.launches) }

// OneCall is a run that is a call of some microseconds at most, nil where it is none.
func (f *Fixed) OneCall() runtime.Sequence { return f.sequence }

// Run runs it so many times. The caller sees to it that the device is not closed meanwhile.
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

// Failed is the end of a Fixed of which a run failed: what can be computed is, op by op,
// and the memory of what cannot carries the error, as do inputs that were written over.
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

// copiesFrom is where the launches of its parts end.
func (b *Bound) copiesFrom() int {
	if n := len(b.parts); n > 0 {
		return b.parts[n-1].first + b.parts[n-1].n
	}
	return 0
}

// Count adds what ran to the device's counters.
func (f *Fixed) Count() {
	if f.sequence != nil {
		f.sequence.Count()
	}
}

// Close gives up what it has.
func (f *Fixed) Close() {
	for _, blk := range f.own {
		blk.Release()
	}
	f.own = nil
	f.b.Drop()
}
