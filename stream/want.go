package stream

import (
	"slices"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// The engine does not know whether the program will use a handle again, so a result that was read
// in its own segment is virtual afterwards. Package autodiff knows which values a derivative will
// read, and when it has read them. It wants these values. If a segment ends meanwhile, the segment
// writes them and they are lent: they have memory and a recipe. A lent value becomes virtual when
// the last handle that wants it is given up.
//
// Wanted values that are cheap to recompute from lent ones are not written: see cheap.go.

// want is a handle that wants a value, and that value.
type want struct{ h, v *Value }

// lease belongs to a wanted value whose segment has run.
type lease struct {
	by []*Value // the handles that want it
	id int32    // relative id in the recipe's segment

	short *recipe // of a cheap value: starts from lent values; nil for a lent value
	copy  int32   // relative id of the last copy of a cheap value, in queue number turn
	turn  uint64
	times int // number of copies so far
}

// Want keeps the value that h names in memory after its segment, until LetGo ends h.
func Want(h *Value) {
	v := h.now()
	s := v.home
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.taping != nil || s.trial != nil: // a tape writes all values, a trial none
	case v.state == stPending:
		s.wanted = append(s.wanted, want{h, v})
	case v.leased() != nil && h.still(v):
		v.ext.lease.by = append(v.ext.lease.by, h)
	}
}

// Leased reports that the value of h is lent or cheap. If h may want it, LetGo must end h, not Drop.
func (h *Value) Leased() bool {
	v := h.now()
	if st := v.mem.Load(); st != nil || v.home == nil {
		return st != nil && st.Lent
	}
	v.home.mu.Lock()
	defer v.home.mu.Unlock()
	return v.leased() != nil
}

// still reports that h was not given up and still names v.
func (h *Value) still(v *Value) bool {
	at := h.names.Load()
	return at == v || at == nil && h == v && v.more.Load() != unnamed
}

// lend decides about the wanted values that the queue computes: the segment writes them, or they
// are cheap. It is called right before the queue runs. The lock is held.
func (s *Stream) lend(end segment.End) {
	w := &s.work
	w.lent, w.cheap = w.lent[:0], w.cheap[:0]
	if len(s.wanted) == 0 {
		return
	}
	due, left := w.due[:0], s.wanted[:0]
	for _, x := range s.wanted {
		switch {
		case x.v.state != stPending || !x.h.still(x.v):
		case int(x.v.id) >= len(s.q.Slots) || s.q.Slots[x.v.id].H.v != x.v:
			left = append(left, x) // behind the cut
		case !end.All && x.v.id != end.ID:
			due = append(due, x)
		}
	}
	clear(s.wanted[len(left):])
	s.wanted = left
	if len(due) > 0 {
		s.appraise(due, end)
	}
	for _, x := range due {
		if s.work.prices[x.v.id].cheap {
			w.cheap = append(w.cheap, x)
		} else if s.q.Slots[x.v.id].Lent {
			w.lent = append(w.lent, x)
		}
	}
	clear(due)
	w.due = due[:0]
}

// lends makes a value lent and returns its memory. The lock is held.
func (v *Value) lends(st *memory.Storage, r *recipe) *memory.Storage {
	r.live.Add(1)
	if v.unscoped() {
		r.watch()
	}
	v.ext = &ext{recipe: r, lease: &lease{id: v.id}}
	return &memory.Storage{Block: st.Block, View: st.View, Lent: true}
}

// leases adds to each value just lent, and to each cheap one, the handles that want it. The lock is
// held.
func (s *Stream) leases(ent *planstore.Known) {
	w := &s.work
	for _, x := range w.cheap {
		if v := x.v; v.state == stVirtual && v.ext.lease == nil {
			r := w.shorts[ent.ShortOf[v.id]]
			r.live.Add(1)
			if v.unscoped() {
				r.watch()
			}
			v.ext = &ext{recipe: v.ext.recipe, lease: &lease{id: v.id, short: r}}
		}
	}
	for _, list := range [2][]want{w.lent, w.cheap} {
		for _, x := range list {
			if l := x.v.leased(); l != nil {
				l.by = append(l.by, x.h)
			}
		}
		clear(list)
	}
	clear(w.shorts)
	w.lent, w.cheap = w.lent[:0], w.cheap[:0]
}

// leased is the lease of a lent or cheap value, nil for other values. The lock is held.
func (v *Value) leased() *lease {
	if v.ext == nil {
		return nil
	}
	return v.ext.lease
}

// endLease keeps a lent value in memory for good, because the program requested it. The lock is
// held.
func (v *Value) endLease() {
	if v.state == stReady && v.leased() != nil {
		v.ext.recipe.drop()
		v.ext = nil
	}
}

// toStay is endLease without the lock held.
func (v *Value) toStay() {
	if s := v.home; s != nil {
		s.mu.Lock()
		v.endLease()
		s.mu.Unlock()
	}
}

// unwanted is called when h, which named v, was given up. If no other handle wants a lent value,
// the value gives up its memory and becomes virtual. A cheap value gives up its short recipe, which
// holds the memory of lent values.
func (v *Value) unwanted(h *Value) {
	s := v.home
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := v.leased()
	if l == nil {
		return
	}
	i := slices.Index(l.by, h)
	if i < 0 {
		return
	}
	if l.by = slices.Delete(l.by, i, i+1); len(l.by) > 0 {
		return
	}
	if v.state == stVirtual {
		s.endCopy(l)
		l.short.drop()
		v.ext = &v.ext.recipe.self
		return
	}
	st := v.mem.Load()
	if s.taping != nil || s.trial != nil || st.Failed() != nil {
		v.endLease()
		return
	}
	v.mem.Store(nil) // before the block loses a reader: see ready
	if v.queued() {
		s.watchRead(st.Block)
		s.q.Slots[v.id].H.v = nil
		s.step(s.q.Mark(ir.Release, v.id))
		s.notOwn(len(s.q.Items)-1, true)
	}
	v.state, v.ext, v.id = stVirtual, &v.ext.recipe.self, l.id
	st.ReleaseAs(memory.Handles)
}
