package stream

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// Apply records an elementwise op whose dtype follows from its operands. It is
// Record for nearly every op, and its short way is the one that a hot stream
// takes: the trie says which op comes next if the program does again what it
// did, and if it does, all that Record would find out is in that op's key.
func Apply(dst *Value, op ir.Op, args []Arg) bool {
	h := args[0].V
	if h == nil && len(args) > 1 {
		h = args[1].V
	}
	if h != nil {
		if s := h.now().home; s != nil {
			s.mu.Lock()
			done := s.again(dst, op, args)
			s.unlock()
			if done {
				return true
			}
		}
	}
	return Record(dst, Place{}, op, ir.Invalid, nil, nil, args)
}

// again records op if it is the one that the trie predicts, on tensors of the
// stream that have one shape, and scalars. Else nothing has changed when it
// returns false. The lock is held.
//
// What it need not ask: a key that is in the trie was legal when it was put
// there, so the op takes operands of these dtypes, its result has the key's,
// and the device supports it.
func (s *Stream) again(dst *Value, op ir.Op, args []Arg) bool {
	next, key := s.node.Predicted()
	if next == nil || !key.Plain(op, len(args)) || s.usable() != nil || s.dev.opts.Lines {
		return false
	}
	var form *queue.Form
	var scope *Scope
	var vs [3]*Value
	ids := int32(len(s.q.Slots)) // what is new to the queue gets the next one
	for i := range args {
		h := args[i].V
		if h == nil {
			if _, ok := key.Scalar(i); !ok {
				return false
			}
			continue
		}
		v := h.now()
		if k := sameAs(args, i); k >= 0 {
			v = vs[k]
		}
		vs[i] = v
		if v.home != s || args[i].Is != nil && v != args[i].Is {
			return false
		}
		id := v.id
		if v.state != stPending {
			if v.state != stReady || v.mem.Load().fault.Load() != nil {
				return false
			}
			if !v.queued() {
				if slices.Contains(vs[:i], v) {
					return false
				}
				id = ids
				ids++
			}
		}
		if form == nil {
			form, scope = v.form, h.owner()
		} else if sc := h.owner(); sc != scope && deeper(sc, scope) {
			scope = sc
		}
		if !form.Equal(v.form) || !key.Tensor(i, id, v.dt, form) {
			return false
		}
	}
	if form == nil || scope != nil && scope.home != s {
		return false
	}

	scalars := int32(len(s.q.Scalars))
	for i := range args {
		if v := vs[i]; v == nil {
			dt, _ := key.Scalar(i)
			s.q.Scalar(dt, args[i].Bits)
		} else if v.state == stPending {
			s.use(v.id)
		} else {
			s.use(s.slot(v))
		}
	}
	dt := key.DT()
	weight := form.Elems * int64(s.caps.ElemSize[dt])
	dst.home, dst.dt, dst.form, dst.state = s, dt, form, stPending
	dst.id = s.q.AppendAs(key, form, held{v: dst}, scalars, weight)
	s.weight += weight
	s.node = next
	s.enter(dst, scope)
	s.came(dst, true)
	s.maybeCut()
	return true
}

// hot finds the plan of the queue, and the sizes that it ran with last, if those are
// the queue's: then the segment is what it was but for its scalars, and nothing of it
// need be put together. Else it returns nil, and planFor goes into it.
func (s *Stream) hot(end segment.End) (*entry, *geometry) {
	d, seg := s.dev, &s.work.hot
	at := d.trie.Find(s.node, end)
	if at == nil || d.closed.Load() {
		return nil, nil
	}
	plans := at.Plans()
	if len(plans) == 0 {
		return nil, nil
	}
	e := plans[0]
	g := e.memo.last.Load()
	if g == nil || e.replayed.Load() != nil || !e.found.Load() || !e.memo.comesBack(g, s) {
		return nil, nil
	}
	seg.Nodes, seg.Out, seg.Tensors, seg.Scalars = g.seg.Nodes, g.seg.Out, g.seg.Tensors, seg.Scalars[:0]
	for _, sc := range s.q.Scalars {
		seg.Scalars = append(seg.Scalars, segment.Scalar(sc))
	}
	if !e.plan.Check(seg) || !e.suits(seg) || d.improvable(e, seg) {
		return nil, nil
	}
	d.stats.hits.Add(1)
	return e, g
}

// comesBack reports that the queued tensors are laid out as a geometry says.
func (m *memo) comesBack(g *geometry, s *Stream) bool {
	for i, id := range m.inputs {
		sl := &s.q.Slots[id]
		if !sl.Form.Shape.Equal(g.shapes[i]) || !sameView(sl.H.st.view, g.views[i]) {
			return false
		}
	}
	for i, n := range m.nodes {
		sl := &s.q.Slots[g.seg.Out[n]]
		if !sl.Form.Shape.Equal(g.shapes[len(m.inputs)+i]) || !sameAttr(sl.Attr, g.attrs[i]) {
			return false
		}
	}
	return true
}
