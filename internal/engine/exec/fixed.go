package exec

import (
	"slices"

	"github.com/millrace-go/millrace/internal/engine/jobqueue"
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

// fixing is a Fixed in the making.
type fixing struct {
	*Fixed
	inputs   []*memory.Storage
	mayWrite []bool // by input
}

// fixings make a Fixed, in this order.
var fixings = [...]struct {
	name, does string
	run        func(x *fixing) error
}{
	{"inputs", "takes the blocks of inputs", (*fixing).takeInputs},
	{"overwrite", "places results over inputs that runs may overwrite", (*fixing).overwrite},
	{"destinations", "places results in their destinations, where nothing else uses these", (*fixing).toDestinations},
	{"rest", "allocates memory for the other results", (*fixing).takeRest},
	{"launches", "puts the blocks into the launches", (*fixing).fill},
	{"sources", "finds where each destination's result is after the launches", (*fixing).findSources},
	{"exchange", "exchanges the memory of large results with that of their destinations", (*fixing).exchangeLarge},
	{"copy", "adds launches that copy the other results to their destinations", (*fixing).copyRest},
	{"sections", "divides the launches at host ops, with the copies at the end", (*fixing).divide},
	{"prepare", "asks the device to prepare the list", (*fixing).prepareList},
}

// Fix makes a Fixed of a Bound that has no run in progress; the Fixed owns the Bound from then
// on. inputs is the memory of the Bound's inputs. over marks the inputs that a run may overwrite:
// those that a run sets and that have no other reader.
func (b *Bound) Fix(by *Binder, inputs []*memory.Storage, over []bool, sinks []Sink) (*Fixed, error) {
	f := &Fixed{run: run{b: b, by: by, blocks: append(make([]*memory.Block, len(b.places)), b.still...), over: make([]bool, len(b.places)),
		ends: make([]jobqueue.Moment, len(b.hosts))}, sinks: sinks}
	x := &fixing{f, inputs, over}
	for i := range fixings {
		if err := fixings[i].run(x); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (x *fixing) takeInputs() error {
	for i, st := range x.inputs {
		x.blocks[i] = st.Block
	}
	return nil
}

func (x *fixing) overwrite() error {
	for i := range x.b.fresh {
		from := x.b.fresh[i].over
		if from >= 0 && x.mayWrite[from] && x.once(x.blocks[from]) {
			slot := x.b.inputs + i
			x.blocks[slot], x.over[slot], x.over[from] = x.blocks[from], true, true
		}
	}
	return nil
}

func (x *fixing) toDestinations() error {
	for i := range x.sinks {
		s := &x.sinks[i]
		if s.Result < 0 {
			continue
		}
		r := &x.b.results[s.Result]
		if r.view == nil && x.blocks[r.slot] == nil && !slices.Contains(x.blocks, s.To) {
			x.blocks[r.slot] = s.To
		}
	}
	return nil
}

func (x *fixing) takeRest() (err error) {
	for i := range x.b.fresh {
		if slot := x.b.inputs + i; x.blocks[slot] == nil {
			if x.blocks[slot], err = x.take(x.b.fresh[i].bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *fixing) fill() error {
	x.made()
	x.b.put(x.blocks)
	return nil
}

func (x *fixing) findSources() error {
	for i := range x.sinks {
		if s := &x.sinks[i]; s.Result >= 0 {
			s.From = x.Result(s.Result)
		}
	}
	return nil
}

func (x *fixing) exchangeLarge() error {
	x.exchange()
	return nil
}

func (x *fixing) prepareList() error {
	for s := range x.b.sections {
		s.prepare(&x.run)
	}
	return nil
}

func (x *fixing) divide() error {
	if len(x.b.launches) > x.b.copiesFrom() {
		x.b.cut()
		x.b.put(x.blocks)
	}
	return nil
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

// copyRest copies results to their destinations. If the destination of one copy is the source of
// another, that source is first copied to separate memory.
func (x *fixing) copyRest() error {
	var list []*Sink
	for i := range x.sinks {
		if s := &x.sinks[i]; s.From.Block != s.To || s.From.View != nil {
			list = append(list, s)
		}
	}
	for i, s := range list {
		if !slices.ContainsFunc(list, func(other *Sink) bool { return other.To == s.From.Block }) {
			continue
		}
		aside, err := x.take(x.by.Bytes(s.DT, s.Shape))
		if err != nil {
			return err
		}
		if err := x.copy(aside, s); err != nil {
			return err
		}
		moved := *s
		moved.From = &aside.Dense
		list[i] = &moved
	}
	for _, s := range list {
		if err := x.copy(s.To, s); err != nil {
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

// OneCall returns the list if a run is one call, see runtime.Prepared, else nil. It is valid until
// Run or Close.
func (f *Fixed) OneCall() runtime.Prepared {
	if len(f.b.hosts) > 0 || len(f.moves.blocks) > 0 {
		return nil
	}
	if p := f.b.stretches[0].sections[0].prepared; p != nil && p.Call(0) {
		return p
	}
	return nil
}

// Run runs it once. After an error it must not run again. Results that could not be computed carry
// the error, and so do inputs that they would have overwritten.
func (f *Fixed) Run() (err error) {
	f.start()
	for i := range f.b.stretches {
		if e := f.stretch(i, 0); err == nil {
			err = e
		}
		f.begin(i, jobqueue.Moment{})
	}
	if err != nil {
		f.copyFaults()
	}
	f.turn()
	return err
}

// copyFaults copies to their destinations the faults of results, and the other results again.
func (f *Fixed) copyFaults() {
	b := f.b
	for i := range f.sinks {
		if s := &f.sinks[i]; s.From.Block != s.To {
			s.To.Fault.Store(s.From.Block.Fault.Load())
		}
	}
	if first := b.copiesFrom(); first < len(b.launches) {
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
	for s := range f.b.sections {
		if s.prepared != nil {
			s.prepared.Count()
		}
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
