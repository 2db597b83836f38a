package exec

import (
	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Sketch binds several plans that run one after another, to memory that does not exist yet. Their
// operands are inputs, constants, and results of earlier plans. The Sketch finds out which
// tensors may share memory, and makes a Bound, which needs little to start a run.
//
// A Sketch assumes that inputs have no other readers, and so finds which results may overwrite
// them. If an input does have another reader, that run uses other memory for the result.
type Sketch struct {
	mem   *memory.Sketch
	bind  Binder
	out   *Bound
	spots []spot
	known map[*memory.Storage]int // the spots of inputs, constants, and results that later plans read
	place map[runtime.Buffer]int  // the spots of written memory
	input map[runtime.Buffer]int
	uses  [][]runtime.Place // by spot: the launch arguments that use it
}

// spot is one piece of memory of a Bound: an input, a constant, or memory for results, which may
// be that of an input.
type spot struct {
	constant *memory.Storage
	input    int   // the number of the input, -1 for none
	placed   bool  // a plan writes it
	bytes    int64 // the size of what is written
	by       *planstore.Known
	id       int32
}

// NewSketch makes a Sketch for the stream of a Binder. views are the layouts of the inputs. It
// returns the inputs' memory, which stands for the real one.
func NewSketch(of *Binder, views []*fusion.View) (*Sketch, []*memory.Storage) {
	k := &Sketch{mem: memory.NewSketch(of.Base), out: &Bound{inputs: len(views)}, known: map[*memory.Storage]int{},
		place: map[runtime.Buffer]int{}, input: map[runtime.Buffer]int{}}
	k.bind = Binder{Base: k.mem.Device(), Pool: &k.mem.Pool, Tune: new(autotune.Tuner), Lane: new(jobqueue.Lanes).NewLane(), Owner: of.Owner}
	var inputs []*memory.Storage
	for i, v := range views {
		st := k.mem.Input(v)
		inputs = append(inputs, st)
		k.input[st.Buf] = i
		k.known[st] = k.spot(spot{input: i})
	}
	return k, inputs
}

func (k *Sketch) spot(s spot) int {
	k.spots = append(k.spots, s)
	k.uses = append(k.uses, nil)
	return len(k.spots) - 1
}

// Part binds a plan. operands is indexed by relative id. The caller drops a reader of each
// operand afterwards, and a reader of each result that it names in keep. results has an entry for
// each id in keep: the memory that the plan writes, or nil if the plan does not write it.
func (k *Sketch) Part(ent *planstore.Known, geo *planstore.Geometry, seg *segment.Segment, operands []*memory.Storage, keep []int32) (results []*memory.Storage, err error) {
	w := &k.bind
	w.Begin(ent, seg)
	defer w.Disown()
	for id, st := range operands {
		if st != nil {
			w.Operand(id, st)
		}
	}
	if _, err := w.Bind(ent, geo, seg); err != nil {
		return nil, err
	}
	p := boundPart{known: ent, geo: geo, first: len(k.out.launches), n: len(w.launches), mem: make([]seenAt, len(w.Mem))}
	p.seg = segment.Segment{Nodes: geo.Seg.Nodes, Out: geo.Seg.Out, Tensors: geo.Seg.Tensors, Scalars: append([]segment.Scalar(nil), seg.Scalars...)}
	k.seen(&p, w.Mem)
	for i := range w.launches {
		k.launch(&p, &w.launches[i], &ent.Plan.Steps[i])
	}
	k.out.parts = append(k.out.parts, p)
	for _, id := range keep {
		st := w.Mem[id]
		if st == nil || seg.Tensors[id].Life != segment.LifeWrite {
			results = append(results, nil)
			continue
		}
		st.Retain()
		k.known[st] = p.mem[id].slot
		results = append(results, st)
	}
	return results, nil
}

// seen records the spot and the layout of each tensor of a part.
func (k *Sketch) seen(p *boundPart, mem []*memory.Storage) {
	alias := map[int]int{}
	for _, a := range p.known.Plan.Aliases {
		alias[a.Tensor] = a.Of
	}
	var at func(id int) int
	at = func(id int) int {
		st, t := mem[id], &p.seg.Tensors[id]
		if of, is := alias[id]; is {
			return at(of)
		}
		if t.Def < 0 {
			n, known := k.known[st]
			if !known {
				n = k.spot(spot{constant: st, input: -1})
				k.known[st] = n
			}
			return n
		}
		n, known := k.place[st.Buf]
		if !known {
			n = k.spot(spot{input: -1, placed: true})
			if i, over := k.input[st.Buf]; over {
				k.spots[n].input = i
			}
			k.place[st.Buf] = n
		}
		s := &k.spots[n]
		s.bytes = max(s.bytes, k.bind.Bytes(t.DT, t.Shape))
		s.by, s.id = p.known, int32(id)
		return n
	}
	for id, st := range mem {
		p.mem[id].slot = -1
		if st != nil {
			p.mem[id] = seenAt{at(id), st.View}
		}
	}
}

// launch adds a copy of a launch to the Bound and records which spots its operands use.
func (k *Sketch) launch(p *boundPart, l *runtime.Launch, step *fusion.Step) {
	n := len(k.out.launches)
	own := *l
	own.Args = append([]runtime.Access(nil), l.Args...)
	own.Scalars = append([]uint64(nil), l.Scalars...)
	for i, op := range step.Operands {
		a := &own.Args[i]
		if step.Kernel.Operands[i].Kind == codegen.Index || a.Local > 0 {
			continue
		}
		s := p.mem[op.Tensor].slot
		if c := k.spots[s].constant; c != nil {
			a.Buf = c.Buf
			continue
		}
		a.Buf = nil
		k.uses[s] = append(k.uses[s], runtime.Place{Launch: int32(n), Arg: int32(i)})
	}
	k.out.launches = append(k.out.launches, own)
}

// Bound ends the sketch. results are the results that outlive a run, as Part returned them, or
// inputs and constants. The Bound allocates its own memory for all written spots that are neither
// a result's nor an input's. The error is that of a failed allocation.
func (k *Sketch) Bound(results []*memory.Storage, pool *memory.Pool) (*Bound, error) {
	b := k.out
	escapes := make([]bool, len(k.spots))
	for _, st := range results {
		if n, known := k.known[st]; known {
			escapes[n] = true
		}
	}
	slots := make([]int, len(k.spots)) // those of still count from -2 down until the others are known
	stay := func(n int, blk *memory.Block) {
		b.still = append(b.still, blk)
		slots[n] = -1 - len(b.still)
	}
	b.places = make([][]runtime.Place, b.inputs)
	for n := range k.spots {
		s := &k.spots[n]
		switch {
		case s.constant != nil:
			stay(n, s.constant.Block)
		case !s.placed:
			slots[n] = s.input
			b.places[s.input] = k.uses[n]
		case escapes[n] || s.input >= 0:
			slots[n] = len(b.places)
			b.fresh = append(b.fresh, fresh{over: s.input, bytes: s.bytes, by: s.by, id: s.id})
			b.places = append(b.places, k.uses[n])
		default:
			own, err := pool.Alloc(s.bytes, false)
			if err != nil {
				b.Yield()
				return nil, err
			}
			own.MadeBy(s.by, s.id)
			own.Watch() // a Recording may become garbage without a call of Release
			b.own, b.Bytes = append(b.own, own), b.Bytes+s.bytes
			b.nobodys = append(b.nobodys, own.Buf)
			fill(b.launches, k.uses[n], own.Buf)
			stay(n, own)
		}
	}
	slot := func(spot int) int {
		if n := slots[spot]; n >= 0 {
			return n
		}
		return len(b.places) - 2 - slots[spot]
	}
	for i := range b.parts {
		for id := range b.parts[i].mem {
			if at := &b.parts[i].mem[id]; at.slot >= 0 {
				at.slot = slot(at.slot)
			}
		}
	}
	for _, st := range results {
		n, known := k.known[st]
		if !known {
			panic("no plan writes a result of the sketch")
		}
		b.results = append(b.results, boundResult{slot(n), st.View})
	}
	b.at = make([]runtime.Buffer, len(b.places))
	b.alive.Store(1)
	b.Aliases = k.mem.Device().Counts.Aliases.Load()
	return b, nil
}
