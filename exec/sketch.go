package exec

import (
	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/lane"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Sketch binds several plans that run one after another, on memory that is not there:
// their operands are inputs, constants, or results of plans before. It finds out what
// may share memory, and gives a Bound, which needs to be told of little to run.
//
// Inputs are taken for memory that nobody else reads: what may be written over them is
// known by that, and where somebody does read one a run takes other memory instead.
type Sketch struct {
	mem   *memory.Sketch
	bind  Binder
	out   *Bound
	spots []spot
	known map[*memory.Storage]int // inputs, constants, and results that later plans read
	place map[runtime.Buffer]int  // what is written
	input map[runtime.Buffer]int
	uses  [][]runtime.Place // of spots
}

// spot is memory as the parts of a Bound know it: an input as it comes, a constant, or
// a place where results are written, which may be that of an input.
type spot struct {
	constant *memory.Storage
	input    int   // its number, else -1
	placed   bool  // it is written
	bytes    int64 // of what is written
	by       *plans.Known
	id       int32
}

// NewSketch makes one for the stream of a binder. of are the views of the inputs.
func NewSketch(of *Binder, views []*fusion.View) (*Sketch, []*memory.Storage) {
	k := &Sketch{mem: memory.NewSketch(of.Base), out: &Bound{inputs: len(views)}, known: map[*memory.Storage]int{},
		place: map[runtime.Buffer]int{}, input: map[runtime.Buffer]int{}}
	k.bind = Binder{Base: k.mem.Device(), Pool: &k.mem.Pool, Tune: new(autotune.Tuner), Lane: new(lane.Lanes).NewLane(), Owner: of.Owner}
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

// Part binds a plan. operands are by relative id, each with a reader that is the
// caller's to drop afterwards; so is one of each result that keep names. Results are
// where the plan writes them, nil where it does not.
func (k *Sketch) Part(ent *plans.Known, geo *plans.Geometry, seg *segment.Segment, operands []*memory.Storage, keep []int32) (results []*memory.Storage, err error) {
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
		k.known[st] = p.mem[id].spot
		results = append(results, st)
	}
	return results, nil
}

// seen says where the tensors of a part are.
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
		p.mem[id].spot = -1
		if st != nil {
			p.mem[id] = seenAt{at(id), st.View}
		}
	}
}

// launch takes one over, and notes where its operands are.
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
		s := p.mem[op.Tensor].spot
		if c := k.spots[s].constant; c != nil {
			a.Buf = c.Buf
			continue
		}
		a.Buf = nil
		k.uses[s] = append(k.uses[s], runtime.Place{Launch: int32(n), Arg: int32(i)})
	}
	k.out.launches = append(k.out.launches, own)
}

// Bound ends the sketch. results are those that outlive a run, as Part gave them, or
// inputs and constants. What no result lies in, and no input, is the Bound's own memory
// from now on; the error is that of memory which is not to be had.
func (k *Sketch) Bound(results []*memory.Storage, pool *memory.Pool) (*Bound, error) {
	b := k.out
	escapes := make([]bool, len(k.spots))
	for _, st := range results {
		if n, known := k.known[st]; known {
			escapes[n] = true
		}
	}
	b.slotOf = make([]int, len(k.spots))
	b.places = make([][]runtime.Place, b.inputs)
	for n := range k.spots {
		s := &k.spots[n]
		b.slotOf[n] = -1
		switch {
		case s.constant != nil:
			b.fixed = append(b.fixed, fixedAt{n, s.constant.Block})
		case !s.placed:
			b.slotOf[n] = s.input
			b.places[s.input] = k.uses[n]
		case escapes[n] || s.input >= 0:
			b.slotOf[n] = b.inputs + len(b.fresh)
			b.fresh = append(b.fresh, fresh{over: s.input, bytes: s.bytes, by: s.by, id: s.id})
			b.places = append(b.places, k.uses[n])
		default:
			own, err := pool.Alloc(s.bytes, false)
			if err != nil {
				b.Yield()
				return nil, err
			}
			own.MadeBy(s.by, s.id)
			b.own, b.Bytes = append(b.own, own), b.Bytes+s.bytes
			b.nobodys = append(b.nobodys, own.Buf)
			b.fixed = append(b.fixed, fixedAt{n, own})
			for _, at := range k.uses[n] {
				b.launches[at.Launch].Args[at.Arg].Buf = own.Buf
			}
		}
	}
	for _, own := range b.own { // a Recording may be dropped without a word
		own.Watch()
	}
	for _, st := range results {
		r := boundResult{slot: -1}
		if n, known := k.known[st]; known {
			if r = (boundResult{slot: b.slotOf[n], view: st.View}); r.slot < 0 {
				r.constant = k.spots[n].constant.Block
			}
		}
		b.results = append(b.results, r)
	}
	b.at = make([]runtime.Buffer, len(b.places))
	b.alive.Store(1)
	b.Aliases = k.mem.Device().Counts.Aliases.Load()
	return b, nil
}
