package stream

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Bind makes a Binding of a tape. It returns nil if the arguments differ from those with which
// the tape was recorded. out are the handles of the results: tensors that the results overwrite,
// or zero Values.
func (t *Tape) Bind(s *Stream, in, out []*Value) (*Binding, error) {
	if len(in) != len(t.inputs) || s.dev != t.dev || !t.retain() {
		return nil, nil
	}
	b := &Binding{s: s, t: t, in: slices.Clone(in), out: slices.Clone(out)}
	err := b.check()
	if err != nil {
		t.Release()
		return nil, err
	}
	inputs, fits := t.memory(s, b.in, nil)
	release(inputs)
	if !fits {
		t.Release()
		return nil, nil
	}
	s.bindings.Add(1)
	s.dev.bindings.add(b)
	s.dev.plans.Search.Wait()
	for _, st := range t.constants {
		if st != nil {
			st.Written().Wait()
		}
	}
	ok := false
	for try := 0; !ok && err == nil && try <= rehearsals; try++ {
		if try > 0 {
			b.rehearse()
		}
		if err = b.ready(); err == nil {
			ok, err = b.fix(false)
		}
	}
	if err == nil && !ok {
		err = b.placeAll()
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// rehearsals is the number of plays after which the tape's plans are known, if they can be known.
const rehearsals = 2

// check returns an error if a result cannot be written to its tensor.
func (b *Binding) check() error {
	t := b.t
	if len(b.out) != len(t.outs) {
		return fmt.Errorf("%w: %d tensors were given for %d results", ir.ErrShape, len(b.out), len(t.outs))
	}
	for i, h := range b.out {
		v, o := h.now(), &t.outs[i]
		if v.home == nil && v.state == stNone {
			continue
		}
		if err := Flush(h); err != nil {
			return err
		}
		switch v = h.now(); {
		case v.home.dev != b.s.dev:
			return fmt.Errorf("%w: the tensor for result %d is on another device", ir.ErrUnsupported, i)
		case v.dt != o.dt:
			return fmt.Errorf("%w: result %d has dtype %v, the tensor for it %v", ir.ErrDType, i, o.dt, v.dt)
		case !o.form.Equal(v.form):
			return fmt.Errorf("%w: result %d has shape %v, the tensor for it %v", ir.ErrShape, i, o.form.Shape, v.form.Shape)
		case slices.Contains(b.out[:i], h):
			return fmt.Errorf("%w: the tensor for result %d was given for another result too", ir.ErrUnsupported, i)
		case slices.ContainsFunc(t.sets, func(set tapeSet) bool { return set.h == h }):
			return fmt.Errorf("%w: the recording sets the tensor that was given for result %d", ir.ErrUnsupported, i)
		}
	}
	return nil
}

// rehearse plays the tape so that its plans are found, and then restores the handles that it
// sets.
func (b *Binding) rehearse() {
	s, t := b.s, b.t
	saved := make([]found, len(t.sets))
	for i := range t.sets {
		saved[i], _ = handOver(t.sets[i].h, nil, s)
	}
	out := make([]*Value, len(t.outs))
	for i := range out {
		out[i] = new(Value)
	}
	_, _ = t.play(s, b.in, nil, out, true, true) // the first run reports errors of the arguments
	for _, v := range out {
		v.release(&dropped)
	}
	for i := range t.sets {
		s.back(t.sets[i].h, saved[i])
	}
	s.dev.plans.Search.Wait()
}

// back makes a handle name the value that it named before. The reader in was becomes the
// handle's.
func (s *Stream) back(h *Value, was found) {
	if was.Storage == nil {
		return
	}
	s.mu.Lock()
	v := s.value(nil, was.dt, was.form, was.Storage)
	s.mu.Unlock()
	if old := h.name(v); old != nil {
		old.end(&dropped)
	}
}

// bring replaces the value that h names by a value of stream s in the same memory. as makes the
// new value. It does nothing if the old value fits already.
func (s *Stream) bring(h *Value, as *Carrier) {
	at := h.names.Load()
	v := h.now()
	if v.home == nil || v.home == s && as.has(v) || v.home.dev != s.dev || v.more.Load() == unnamed {
		return
	}
	st, err := handOver(h, v, s)
	if err != nil {
		return
	}
	s.mu.Lock()
	own := s.value(as, st.dt, st.form, st.Storage)
	s.mu.Unlock()
	if h.names.CompareAndSwap(at, own) {
		v.end(&dropped)
	} else { // another goroutine set or released it meanwhile
		own.end(&dropped)
	}
}

// fix prepares a run and keeps it for later runs. If run is set it also makes the run, before the
// lock is released. It returns false if the next run must play the tape, for example because
// something is queued.
func (b *Binding) fix(run bool) (ok bool, err error) {
	s, t := b.s, b.t
	for i, h := range b.out {
		s.bring(h, t.outs[i].as)
	}
	for i := range t.sets {
		s.bring(t.sets[i].h, t.sets[i].as)
	}
	inputs, ok := t.memory(s, b.in, nil)
	if !ok {
		return false, nil
	}
	for _, st := range inputs {
		if st.Written().Wait(); st.Fault.Load() != nil {
			release(inputs)
			return false, nil
		}
	}
	s.mu.Lock()
	defer s.unlock()
	b.unfix()
	for _, st := range inputs {
		b.read(st.Block)
		st.Release()
	}
	if ok, err = b.fixIn(inputs); !ok {
		b.unfix()
	}
	switch {
	case !ok || !run:
		return ok, err
	case !b.quick():
		return false, nil
	case b.calling(1):
		return true, nil
	}
	return true, b.runList()
}

// read makes the Binding a reader of a block.
func (b *Binding) read(blk *memory.Block) {
	if !slices.ContainsFunc(b.readers, func(r reader) bool { return r.blk == blk }) {
		b.readers = append(b.readers, reader{blk, blk.Bind(b.s.lane)})
	}
}

// shared reports that the program sees the block's memory, which therefore keeps its place.
func (b *Binding) shared(blk *memory.Block) bool {
	drv, ok := b.s.dev.Driver.(runtime.Sharer)
	return ok && drv.Shared(blk.Buf) != nil
}

// unfix drops what fix prepared. The lock is held.
func (b *Binding) unfix() {
	if b.fixed != nil {
		for _, blk := range b.fixed.Spares() {
			blk.Count(-memory.Handles)
		}
		b.fixed.Close()
		b.fixed, b.call = nil, nil
	}
	for _, r := range b.readers {
		r.blk.Unbind(r.known)
	}
	clear(b.readers)
	clear(b.watch)
	b.readers, b.watch, b.moved = b.readers[:0], b.watch[:0], b.moved[:0]
}

// writable reports that a value may be overwritten in its memory. The lock is held, and all
// submitted jobs have run.
func (b *Binding) writable(v *Value) bool {
	if v.home != b.s || v.state != stReady || v.more.Load() != 0 {
		return false
	}
	st := v.mem.Load()
	return st.View == nil && st.Alone(b.s.lane)
}

// place returns the value that the handle names when a run writes there. It is the present value
// if that has no other reader, otherwise a new value in other memory. If keep is set the value can
// be read before it is written: it then has the elements and the fault of the present one. The
// lock is held, and all submitted jobs have run.
func (b *Binding) place(h *Value, o tapeOut, keep bool) (*Value, error) {
	s, dt, form := b.s, o.dt, o.form
	v := h.now()
	if b.writable(v) && v.dt == dt && form.Equal(v.form) && o.as.has(v) {
		if !keep {
			v.mem.Load().Fault.Store(nil)
		}
		return v, nil
	}
	if st := v.mem.Load(); st != nil && b.shared(st.Block) {
		return nil, fmt.Errorf("%w: the program shares the memory of a tensor of shape %v, which cannot be overwritten while another reader needs its elements",
			ir.ErrUnsupported, form.Shape)
	}
	blk, err := s.dev.mem.Alloc(s.dev.Bytes(dt, form.Shape), true)
	if err != nil {
		return nil, err
	}
	if keep {
		if err := b.inherit(blk, v, o); err != nil {
			blk.Release()
			return nil, err
		}
	}
	own := s.value(o.as, dt, form, &blk.Dense)
	if v.more.Load() == unnamed {
		return own, nil // the handle was given up
	}
	if old := h.name(own); old != nil && old.letGo() && old.home == s {
		s.drop(old, &dropped)
	}
	return own, nil
}

// inherit copies the elements of a value, and its fault, to the block that will replace its memory.
// It does nothing if the value has no elements that a reader could get.
func (b *Binding) inherit(blk *memory.Block, v *Value, o tapeOut) error {
	st := v.mem.Load()
	if st == nil || v.home != b.s || v.state != stReady || v.released() || v.dt != o.dt || !o.form.Equal(v.form) || o.form.Shape.Elems() == 0 {
		return nil
	}
	st.Written().Wait()
	if e := st.Fault.Load(); e != nil {
		blk.Fault.Store(e)
		return nil
	}
	return b.fill(blk, found{Storage: st, kind: kind{o.dt, v.form}})
}

// fill copies a tensor densely to the start of a block.
func (b *Binding) fill(blk *memory.Block, from found) error {
	l, err := b.s.dev.mem.CopyLaunch(blk, from.dt, from.form.Shape, from.Storage)
	if err != nil {
		return err
	}
	return b.s.dev.Launch([]runtime.Launch{l}, nil, device.Submitter{Stream: b.s.num})
}

// placeAll gives every result its memory.
func (b *Binding) placeAll() error {
	b.s.mu.Lock()
	defer b.s.unlock()
	b.s.lane.Last().Wait()
	for i, h := range b.out {
		if _, err := b.place(h, b.t.outs[i], true); err != nil {
			return err
		}
	}
	return nil
}
