package stream

import (
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
)

// sketching is a tape that is being bound.
type sketching struct {
	s     *Stream
	t     *Tape
	fixed bool // for a Binding

	sketch *exec.Sketch
	inputs []*memory.Storage // stand for the memory of arguments, then of states
	made   []*memory.Storage // by product, each with a reader
	b      *exec.Bound
}

// sketchPasses bind a tape, in this order. Each one decides one thing and reads what the passes
// before it decided. A pass that returns false stops the others: the tape cannot be bound now.
var sketchPasses = [...]struct {
	name, does string
	run        func(x *sketching) bool
}{
	{"constants", "stops if a constant is not in memory yet, or has an error", (*sketching).constants},
	{"inputs", "starts an exec.Sketch with the layouts of arguments and states", (*sketching).start},
	{"products", "finds the products that later parts read, and those that outlive a run", (*sketching).products},
	{"parts", "binds the plan of each part to the memory that earlier parts left", (*sketching).parts},
	{"memory", "makes the list of launches, with memory for intermediate results", (*sketching).memory},
	{"choices", "gives the launches the tuner's choices", (*sketching).choices},
	{"claim", "claims the list and counts its memory, before others can see it", (*sketching).claim},
}

// sketch binds a tape whose plans are known, and claims the result. It returns nil if a plan is
// unknown or still being searched for, or if memory is lacking. A sketch for a Binding (fixed)
// differs: it keeps its memory, because only the Binding sees it; runs do not overwrite arguments;
// and its plans need not be final. The lock is held, and the queue is empty.
func (s *Stream) sketch(t *Tape, fixed bool) *exec.Bound {
	x := &sketching{s: s, t: t, fixed: fixed, made: make([]*memory.Storage, t.products)}
	ok, err := x.run()
	if err != nil {
		s.dev.Counts.Fallbacks.Add(1)
		s.dev.OnError(err)
	}
	if !ok || err != nil {
		return nil
	}
	return x.b
}

func (x *sketching) run() (ok bool, err error) {
	defer operror.Recover("bind", &err)
	defer x.s.reset()
	defer x.release()
	for i := range sketchPasses {
		if !sketchPasses[i].run(x) {
			return false, nil
		}
	}
	return true, nil
}

// release drops the readers of products.
func (x *sketching) release() {
	for _, st := range x.made {
		if st != nil {
			st.Release() // it may be the memory of a constant
		}
	}
}

func (x *sketching) constants() bool {
	for _, st := range x.t.constants {
		if st != nil && (!st.Written().Passed() || st.Fault.Load() != nil) {
			return false
		}
	}
	return true
}

func (x *sketching) start() bool {
	var views []*fusion.View
	for i := range x.t.inputs {
		views = append(views, x.t.inputs[i].view)
	}
	for i := range x.t.states {
		views = append(views, x.t.states[i].seen)
	}
	x.sketch, x.inputs = exec.NewSketch(&x.s.bind, views)
	if x.fixed {
		for i := range x.t.inputs { // the program is a reader, too
			x.inputs[i].Retain()
		}
	}
	return true
}

func (x *sketching) products() bool {
	x.t.settle()
	return true
}

func (x *sketching) parts() bool {
	for _, part := range x.t.parts {
		if part.host != nil {
			if !x.host(part) {
				return false
			}
			continue
		}
		operands := x.queue(part)
		x.end(part)
		ent, geo := x.plan(part)
		if ent == nil || !x.bind(part, ent, geo, operands) {
			return false
		}
		x.s.reset()
	}
	return true
}

// host adds a host op to the list.
func (x *sketching) host(part *tapePart) bool {
	op := part.host
	out, err := x.sketch.Host(hostInList{op}, x.of(part.operands[0].from), x.s.dev.Bytes(op.DT, op.Shape))
	if err != nil {
		return false
	}
	x.made[part.results[0].product] = out
	x.end(part)
	return true
}

// queue queues the ops of a part and gives its operands their memory, which it also returns.
func (x *sketching) queue(part *tapePart) []*memory.Storage {
	q := &x.s.q
	q.Load(part.saved)
	operands := make([]*memory.Storage, len(q.Slots))
	for _, o := range part.operands {
		st := x.of(o.from)
		st.Retain()
		q.Slots[o.slot].H.st, operands[o.slot] = st, st
	}
	return operands
}

// of returns the memory of a source.
func (x *sketching) of(from tapeSource) *memory.Storage {
	if st := x.t.outside(from, x.inputs); st != nil {
		return st
	}
	return x.made[from.n]
}

// end drops the readers of memory that no later part reads.
func (x *sketching) end(part *tapePart) {
	for _, o := range part.last {
		x.of(o).Release()
		if o.kind == tapeProduct {
			x.made[o.n] = nil
		}
	}
}

// plan returns the plan of the queued part. It returns nil if there is none, or if another plan
// may replace it.
func (x *sketching) plan(part *tapePart) (*planstore.Known, *planstore.Geometry) {
	x.s.node = part.find(x.s)
	ent, geo := x.s.hot(part.end)
	if ent == nil || !x.fixed && (ent.Searching.Load() || ent.Next.Load() != nil) {
		return nil, nil
	}
	return ent, geo
}

// bind binds the plan of a part and keeps the memory of its products.
func (x *sketching) bind(part *tapePart, ent *planstore.Known, geo *planstore.Geometry, operands []*memory.Storage) bool {
	var keep []int32
	var products []int
	for _, r := range part.results {
		if x.t.wanted[r.product] {
			keep, products = append(keep, r.slot), append(products, r.product)
		}
	}
	results, err := x.sketch.Part(ent, geo, &x.s.work.hot, operands, keep)
	if err != nil {
		return false // memory of a sketch cannot run out: only a plan's own bounds can fail
	}
	for i, st := range results {
		if st == nil {
			return false
		}
		x.made[products[i]] = st
	}
	return true
}

func (x *sketching) memory() bool {
	var outlive []*memory.Storage
	for _, n := range x.t.outliving {
		outlive = append(outlive, x.made[n])
	}
	var err error
	x.b, err = x.sketch.Bound(outlive, &x.s.dev.mem)
	return err == nil // otherwise the program uses the memory that there is
}

func (x *sketching) choices() bool {
	if x.b.Settle(&x.s.dev.tune) || x.fixed { // a Binding takes the choices made so far
		return true
	}
	x.b.Drop()
	return false
}

func (x *sketching) claim() bool {
	if x.fixed {
		return true
	}
	x.b.Ended = x.t.Release
	x.b.Claim(x.s.lane)
	if !x.s.dev.kept.add(x.b, x.s.dev.pinnedLimit()) {
		x.b.Unclaim()
		x.b.Drop()
		return false
	}
	return true
}

// settle finds the products that later parts read and those that outlive a run, before the tape
// is bound for the first time.
func (t *Tape) settle() {
	if t.wanted != nil {
		return
	}
	t.wanted = make([]bool, t.products)
	note := func(o tapeSource) {
		if o.kind == tapeProduct && !t.wanted[o.n] {
			t.wanted[o.n] = true
			t.outliving = append(t.outliving, o.n)
		}
	}
	for from := range t.ends {
		note(*from)
	}
	for _, part := range t.parts {
		for _, o := range part.last {
			if o.kind == tapeProduct {
				t.wanted[o.n] = true
			}
		}
	}
}
