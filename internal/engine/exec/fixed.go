package exec

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Fixed is a Bound whose memory is the same in every run: the memory of its inputs, its results
// and its intermediate results. A result that cannot be written to its destination is copied
// there at the end of a run, or the two exchange their memory. Callers use one method at a time,
// while no job of the lane runs.
type Fixed struct {
	run
	own   []*memory.Block
	sinks []Sink // those whose destination stays
	moves exchange
}

// Sink is memory that must hold a result when a run has ended.
type Sink struct {
	Result int             // the result's index in the list given to Sketch.Bound; -1: use From
	From   *memory.Storage // an input or a constant
	To     *memory.Block   // dense
	Moves  bool            // after a run the result may be in another block, see Fixed.Moved
	DT     ir.DType
	Shape  ir.Shape
}

// Fix makes a Fixed of a Bound that has no run in progress; the Fixed owns the Bound from then
// on. inputs is the memory of the Bound's inputs. over marks the inputs that a run may overwrite:
// those that a run sets and that have no other reader.
func (b *Bound) Fix(by *Binder, inputs []*memory.Storage, over []bool, sinks []Sink) (f *Fixed, err error) {
	f = &Fixed{run: run{b: b, by: by, blocks: append(make([]*memory.Block, len(b.places)), b.still...), over: make([]bool, len(b.places))}, sinks: sinks}
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
		if s.From = nil; r.view == nil && f.blocks[r.slot] == nil && !slices.Contains(f.blocks, s.To) {
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
	f.made()
	b.put(f.blocks)
	if err = f.copies(); err != nil {
		return f, err
	}
	b.prepare(by, f.over)
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
	return n == 1 && !slices.Contains(f.b.still, blk)
}

// copies exchanges the memory of results for which that is possible, and appends launches that
// copy the others to their destinations. If the destination of one copy is the source of another,
// the source is first copied to separate memory.
func (f *Fixed) copies() error {
	for i := range f.sinks {
		s := &f.sinks[i]
		if s.Result >= 0 {
			s.From = f.Result(s.Result)
		}
	}
	f.exchange()
	var list []*Sink
	for i := range f.sinks {
		if s := &f.sinks[i]; s.From.Block != s.To || s.From.View != nil {
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
	if err != nil {
		return err
	}
	if slot := slices.Index(f.blocks[:len(f.b.places)], s.From.Block); slot >= 0 { // an exchange may move it
		f.b.places[slot] = append(f.b.places[slot], runtime.Place{Launch: int32(len(f.b.launches))})
	}
	f.b.launches = append(f.b.launches, l)
	return nil
}

// Call runs it n times if a run is one call of at most some microseconds, which cannot fail.
// Otherwise it runs nothing and returns false. The caller makes sure that the device is not closed
// meanwhile.
func (f *Fixed) Call(n int) bool {
	return f.b.prepared != nil && len(f.moves.blocks) == 0 && f.b.prepared.Call(n)
}

// Run runs it once.
func (f *Fixed) Run() error {
	if err := f.b.run(f.by, f.blocks, f.over, 0); err != nil {
		return err
	}
	f.turn()
	return nil
}

// Failed ends a Fixed after a failed run. It computes operation by operation what can still be
// computed. The memory of other results carries the error, as do inputs that were overwritten.
func (f *Fixed) Failed(err error) {
	b := f.b
	first := b.copiesFrom()
	var at *runtime.LaunchError
	if !errors.As(err, &at) || at.Index < first {
		f.apart(err)
	}
	for i := range f.sinks {
		if s := &f.sinks[i]; s.From.Block != s.To {
			s.To.Fault.Store(s.From.Block.Fault.Load())
		}
	}
	if first < len(b.launches) {
		if err := f.by.Launch(b.launches[first:], nil, f.by.submitter(0)); err != nil {
			f.by.OnError(err)
		}
	}
	f.turn()
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
	if f.b.prepared != nil {
		f.b.prepared.Count()
	}
}

// Close releases the memory and drops the Bound.
func (f *Fixed) Close() {
	for _, blk := range append(f.own, f.Spares()...) {
		blk.Release()
	}
	f.own = nil
	f.b.Drop()
}
