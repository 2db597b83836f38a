package exec

import (
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/runtime"
)

// ending is a Sketch that becomes a Bound.
type ending struct {
	k        *Sketch
	b        *Bound
	pool     *memory.Pool
	results  []*memory.Storage
	outlives []bool // by spot: it holds a result
	slots    []int  // by spot
}

// endings make the Bound of a Sketch, in this order. The slots of inputs come first, then those of
// memory that a run writes and others see, then those of memory that stays.
var endings = [...]struct {
	name, does string
	run        func(e *ending) error
}{
	{"results", "marks the spots whose memory outlives a run", (*ending).markResults},
	{"inputs", "gives slots to inputs", (*ending).placeInputs},
	{"fresh", "gives slots to memory that a run writes for others, or over an input", (*ending).placeFresh},
	{"still", "gives slots to constants and intermediate results; allocates memory for the latter", (*ending).placeStill},
	{"parts", "replaces the spots of the parts' tensors by slots", (*ending).numberParts},
	{"layouts", "records the slot and the layout of each result", (*ending).numberResults},
	{"counts", "counts the views that a run makes", (*ending).count},
	{"sections", "divides the launches at host ops", (*ending).divide},
}

// Bound ends the sketch. results are the results that outlive a run, as Part returned them, or
// inputs and constants. The Bound allocates its own memory for all written spots that are neither
// a result's nor an input's. The error is that of a failed allocation.
func (k *Sketch) Bound(results []*memory.Storage, pool *memory.Pool) (*Bound, error) {
	e := &ending{k: k, b: k.out, pool: pool, results: results, outlives: make([]bool, len(k.spots)), slots: make([]int, len(k.spots))}
	for i := range endings {
		if err := endings[i].run(e); err != nil {
			e.b.Yield()
			return nil, err
		}
	}
	return e.b, nil
}

func (e *ending) markResults() error {
	for _, st := range e.results {
		if n, known := e.k.known[st]; known {
			e.outlives[n] = true
		}
	}
	return nil
}

func (e *ending) placeInputs() error {
	e.b.places = make([][]runtime.Place, e.b.inputs)
	for n := range e.k.spots {
		if s := &e.k.spots[n]; s.isInput() {
			e.slots[n] = s.input
			e.b.places[s.input] = e.k.uses[n]
		}
	}
	return nil
}

func (e *ending) placeFresh() error {
	b := e.b
	for n := range e.k.spots {
		if s := &e.k.spots[n]; e.isFresh(n) {
			e.slots[n] = len(b.places)
			b.fresh = append(b.fresh, fresh{over: s.input, bytes: s.bytes, by: s.by, id: s.id})
			b.places = append(b.places, e.k.uses[n])
		}
	}
	b.settle(e.pool.Driver)
	return nil
}

func (e *ending) placeStill() error {
	b := e.b
	for n := range e.k.spots {
		s := &e.k.spots[n]
		if s.isInput() || e.isFresh(n) {
			continue
		}
		e.slots[n] = len(b.places) + len(b.still)
		if s.constant != nil {
			b.still = append(b.still, s.constant.Block)
			continue
		}
		own, err := e.own(n)
		if err != nil {
			return err
		}
		b.still = append(b.still, own)
	}
	return nil
}

// isInput reports that the spot is an input's memory as the caller gives it.
func (s *spot) isInput() bool { return s.constant == nil && !s.placed }

// isFresh reports that a run writes the spot, and that others than the Bound see it.
func (e *ending) isFresh(n int) bool {
	s := &e.k.spots[n]
	return s.constant == nil && s.placed && (e.outlives[n] || s.input >= 0)
}

// own allocates the memory of a spot and puts it into the launches.
func (e *ending) own(n int) (*memory.Block, error) {
	b, s := e.b, &e.k.spots[n]
	own, err := e.pool.Alloc(s.bytes, false)
	if err != nil {
		return nil, err
	}
	made(own, s.by, s.id)
	own.Watch() // a Recording may become garbage without a call of Release
	b.own, b.Bytes = append(b.own, own), b.Bytes+s.bytes
	b.nobodys = append(b.nobodys, own.Buf)
	fill(b.launches, e.k.uses[n], own.Buf)
	return own, nil
}

func (e *ending) numberParts() error {
	for i := range e.b.parts {
		for id := range e.b.parts[i].mem {
			if at := &e.b.parts[i].mem[id]; at.slot >= 0 {
				at.slot = e.slots[at.slot]
			}
		}
	}
	return nil
}

func (e *ending) numberResults() error {
	for _, st := range e.results {
		n, known := e.k.known[st]
		if !known {
			panic("no plan writes a result of the sketch")
		}
		e.b.results = append(e.b.results, boundResult{e.slots[n], st.View})
	}
	return nil
}

func (e *ending) divide() error {
	for i := range e.b.hosts {
		h := &e.b.hosts[i]
		h.in.slot, h.out = e.slots[h.in.slot], e.slots[h.out]
		if h.first < 0 {
			h.first = len(e.b.launches)
		}
		if h.held != nil {
			h.held.Release()
			h.held = nil
		}
	}
	e.b.cut()
	return nil
}

func (e *ending) count() error {
	b := e.b
	b.alive.Store(1)
	b.Aliases = e.k.mem.Device().Counts.Aliases.Load()
	return nil
}
