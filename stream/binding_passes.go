package stream

import (
	"slices"

	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/memory"
)

// fixing is a Binding that is being fixed. The stream's lock is held.
type fixing struct {
	b      *Binding
	inputs []*memory.Storage // of arguments, then of states
	over   []bool            // by input: runs overwrite it
	sinks  []exec.Sink       // of results, then of tensors that are set
	list   *exec.Bound
}

// fixPasses fix a Binding, in this order. A pass that returns false stops the others: the next run
// has to play the tape. A pass that fails returns an error for the program.
var fixPasses = [...]struct {
	name, does string
	run        func(x *fixing) (ok bool, err error)
}{
	{"quiet", "stops if something is queued, is traced or runs on the stream", (*fixing).quiet},
	{"arguments", "watches the arguments' handles; stops if one was set meanwhile", (*fixing).arguments},
	{"states", "marks states to be overwritten; stops if one has another reader", (*fixing).states},
	{"results", "finds the memory of each result and watches its handle", (*fixing).results},
	{"sets", "finds the memory of each tensor that the tape sets and watches its handle", (*fixing).sets},
	{"list", "binds the tape's parts as one list of launches", (*fixing).bind},
	{"memory", "fixes the list to that memory", (*fixing).fix},
	{"readers", "counts the Binding as a reader of the memory that runs exchange", (*fixing).readers},
	{"faults", "forgets the errors of earlier contents of the results' memory", (*fixing).faults},
}

// fixIn fixes the Binding to the memory of its inputs.
func (b *Binding) fixIn(inputs []*memory.Storage) (ok bool, err error) {
	x := &fixing{b: b, inputs: inputs, over: make([]bool, len(inputs))}
	for i := range fixPasses {
		if ok, err = fixPasses[i].run(x); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (x *fixing) quiet() (bool, error) {
	b, s := x.b, x.b.s
	busy := s.q.Len() > 0 || s.taping != nil || s.trial != nil || !s.lane.Idle()
	seen := s.dev.Opts.Check || s.dev.TellsFlush()
	return !b.closed && s.usable() == nil && !busy && !seen, nil
}

func (x *fixing) arguments() (bool, error) {
	b := x.b
	for i, h := range b.in {
		named := h.names.Load()
		v := h
		if named != nil {
			v = named
		}
		if st := v.mem.Load(); st == nil || st.Block != x.inputs[i].Block {
			return false, nil
		}
		b.watch = append(b.watch, watched{h: h, v: v, named: named})
	}
	return true, nil
}

func (x *fixing) states() (bool, error) {
	b := x.b
	first := len(b.in)
	for i := range b.t.states {
		v := b.t.states[i].h.now()
		if !b.writable(v) || v.mem.Load().Block != x.inputs[first+i].Block {
			return false, nil
		}
		x.over[first+i] = true
	}
	return true, nil
}

func (x *fixing) results() (bool, error) {
	b := x.b
	b.t.settleUnder()
	for i, o := range b.t.outs {
		if err := x.sink(b.out[i], o); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (x *fixing) sets() (bool, error) {
	t := x.b.t
	for i := range t.sets {
		set := &t.sets[i]
		v := set.h.now()
		if v.released() || t.sees(set.h) && (v.dt != set.dt || !set.form.Equal(v.form)) {
			return false, nil
		}
		if err := x.sink(set.h, set.tapeOut); err != nil {
			return false, err
		}
	}
	return true, nil
}

// sink adds the memory into which runs write o, which is that of the handle h.
func (x *fixing) sink(h *Value, o tapeOut) error {
	b, t := x.b, x.b.t
	v, err := b.place(h, o, true)
	if err != nil {
		return err
	}
	w := watched{h: h, v: v, named: h.names.Load(), blk: v.mem.Load().Block}
	if w.named != v && (w.named != nil || h != v) { // the handle was given up: watch the value itself
		w.h, w.named = v, v.names.Load()
	}
	b.watch = append(b.watch, w)
	b.read(w.blk)
	k := exec.Sink{Result: -1, To: w.blk, Moves: w.blk.BoundOnce() && !b.shared(w.blk), DT: o.dt, Shape: o.form.Shape}
	if k.From = t.outside(o.tapeSource, x.inputs); k.From == nil {
		k.Result = slices.Index(t.outliving, o.n)
	}
	x.sinks = append(x.sinks, k)
	return nil
}

func (x *fixing) bind() (bool, error) {
	x.list = x.b.s.sketch(x.b.t, true)
	return x.list != nil, nil
}

func (x *fixing) fix() (bool, error) {
	f, err := x.list.Fix(&x.b.s.bind, x.inputs, x.over, x.sinks)
	if err != nil {
		return false, nil // memory is lacking; playing the tape may need less
	}
	x.b.fixed, x.b.call = f, f.OneCall()
	return true, nil
}

func (x *fixing) readers() (bool, error) {
	b := x.b
	for _, blk := range b.fixed.Moved() {
		at := slices.IndexFunc(b.watch, func(w watched) bool { return w.blk == blk })
		b.moved = append(b.moved, at)
	}
	for _, blk := range b.fixed.Spares() { // readers as those of a value's block
		blk.Count(memory.Handles)
		b.read(blk)
	}
	return true, nil
}

func (x *fixing) faults() (bool, error) {
	for i := range x.b.watch {
		if blk := x.b.watch[i].blk; blk != nil {
			blk.Fault.Store(nil)
		}
	}
	return true, nil
}

// sees reports that the tape reads the value of h.
func (t *Tape) sees(h *Value) bool {
	return slices.ContainsFunc(t.states, func(x tapeState) bool { return x.h == h })
}

// settleUnder is settle for a caller that does not hold t.bounds.mu.
func (t *Tape) settleUnder() {
	t.bounds.mu.Lock()
	t.settle()
	t.bounds.mu.Unlock()
}
