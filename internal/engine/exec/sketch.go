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
	p := boundPart{known: ent, geo: geo, first: len(k.out.launches), n: len(w.launches)}
	p.seg = segment.Segment{Nodes: geo.Seg.Nodes, Out: geo.Seg.Out, Tensors: geo.Seg.Tensors, Scalars: append([]segment.Scalar(nil), seg.Scalars...)}
	k.see(&p, w.Mem)
	for i := range w.launches {
		k.launch(&p, &w.launches[i], &ent.Plan.Steps[i])
	}
	k.out.parts = append(k.out.parts, p)
	k.awaited()
	return k.keep(&p, w.Mem, keep), nil
}

// see records the spot and the layout of each tensor of a part.
func (k *Sketch) see(p *boundPart, mem []*memory.Storage) {
	of := make([]int, len(mem)) // the tensor of which it is a view, or its own id
	for id := range of {
		of[id] = id
	}
	for _, a := range p.known.Plan.Aliases {
		of[a.Tensor] = a.Of
	}
	p.mem = make([]seenAt, len(mem))
	for id, st := range mem {
		p.mem[id].slot = -1
		if st == nil {
			continue
		}
		base := id
		for of[base] != base {
			base = of[base]
		}
		p.mem[id] = seenAt{k.spotOf(p, base, mem[base]), st.View}
	}
}

// spotOf returns the spot of a tensor that is no view of another one.
func (k *Sketch) spotOf(p *boundPart, id int, st *memory.Storage) int {
	if p.seg.Tensors[id].Def < 0 {
		return k.read(st)
	}
	return k.written(p, id, st)
}

// read returns the spot of an operand. Memory that is no input and that no part made is a constant.
func (k *Sketch) read(st *memory.Storage) int {
	n, known := k.known[st]
	if !known {
		n = k.spot(spot{constant: st, input: -1})
		k.known[st] = n
	}
	return n
}

// written returns the spot of memory that a part writes. Several tensors may use it in turn; it
// then has the size of the largest one.
func (k *Sketch) written(p *boundPart, id int, st *memory.Storage) int {
	t := &p.seg.Tensors[id]
	n := k.placed(st.Buf, k.bind.Bytes(t.DT, t.Shape))
	k.spots[n].by, k.spots[n].id = p.known, int32(id)
	return n
}

// placed returns the spot of memory of which that many bytes are written.
func (k *Sketch) placed(buf runtime.Buffer, bytes int64) int {
	n, known := k.place[buf]
	if !known {
		n = k.spot(spot{input: -1, placed: true})
		if i, over := k.input[buf]; over {
			k.spots[n].input = i
		}
		k.place[buf] = n
	}
	k.spots[n].bytes = max(k.spots[n].bytes, bytes)
	return n
}

// keep returns the memory of results, each with a reader for the caller.
func (k *Sketch) keep(p *boundPart, mem []*memory.Storage, ids []int32) (results []*memory.Storage) {
	for _, id := range ids {
		st := mem[id]
		if st == nil || p.seg.Tensors[id].Life != segment.LifeWrite {
			results = append(results, nil)
			continue
		}
		st.Retain()
		k.known[st] = p.mem[id].slot
		results = append(results, st)
	}
	return results
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
