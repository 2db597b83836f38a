package stream

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/segment"
)

// The engine does not know whether the program will use a handle again, so a result that was read
// in its own segment is virtual afterwards. Package autodiff knows which values a derivative will
// read, and when it has read them. It wants these values. If a segment ends meanwhile, the segment
// writes them and they are lent: they have memory and a recipe. A lent value becomes virtual when
// the last handle that wants it is given up.

// want is a handle that wants a value, and that value.
type want struct{ h, v *Value }

// lease belongs to a lent value.
type lease struct {
	by []*Value // the handles that want it
	id int32    // relative id in the recipe's segment
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

// Lent reports that the value of h is lent. If h may want it, LetGo must end h, not Drop.
func (h *Value) Lent() bool {
	st := h.now().mem.Load()
	return st != nil && st.Lent
}

// still reports that h was not given up and still names v.
func (h *Value) still(v *Value) bool {
	at := h.names.Load()
	return at == v || at == nil && h == v && v.more.Load() != unnamed
}

// lend marks the wanted values that the queue computes, and the segment then writes them. It is
// called right before the queue runs. The lock is held.
func (s *Stream) lend(end segment.End) {
	if len(s.wanted) == 0 {
		return
	}
	var nodes []ir.Node
	left := s.wanted[:0]
	for _, w := range s.wanted {
		switch {
		case w.v.state != stPending || !w.h.still(w.v):
		case int(w.v.id) >= len(s.q.Slots) || s.q.Slots[w.v.id].H.v != w.v:
			left = append(left, w) // behind the cut
		case !end.All && w.v.id != end.ID:
			if nodes == nil {
				nodes, _ = s.q.Nodes()
			}
			s.lendOne(w, nodes)
		}
	}
	clear(s.wanted[len(left):])
	s.wanted = left
}

func (s *Stream) lendOne(w want, nodes []ir.Node) {
	sl := &s.q.Slots[w.v.id]
	if sl.Keep || sl.Uses == 0 {
		return
	}
	id, larger := w.v.id, false // larger: the view has more elements than its base
	for s.q.Slots[id].Def >= 0 && nodes[s.q.Slots[id].Def].Op.Class() == ir.ClassView {
		n := &nodes[s.q.Slots[id].Def]
		id, larger = n.Args[0].ID, larger || n.Op == ir.Expand || n.Op == ir.Window
	}
	switch base := &s.q.Slots[id]; {
	case base.Def < 0, nodes[base.Def].Op == ir.Full: // in memory, or cheap to recompute
	case larger:
		if !base.Keep {
			s.step(s.q.Mark(ir.Keep, id))
		}
	default:
		if !sl.Lent {
			s.step(s.q.Lend(w.v.id))
		}
		s.work.lent = append(s.work.lent, w)
	}
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

// leases adds to each value just lent the handles that want it. The lock is held.
func (s *Stream) leases() {
	for _, w := range s.work.lent {
		if l := w.v.leased(); l != nil {
			l.by = append(l.by, w.h)
		}
	}
	clear(s.work.lent)
	s.work.lent = s.work.lent[:0]
}

// leased is the lease of a lent value, nil for other values. The lock is held.
func (v *Value) leased() *lease {
	if v.state != stReady || v.ext == nil {
		return nil
	}
	return v.ext.lease
}

// endLease keeps a lent value in memory for good, because the program requested it. The lock is
// held.
func (v *Value) endLease() {
	if v.leased() != nil {
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
// the value gives up its memory and becomes virtual.
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
