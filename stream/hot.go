package stream

import (
	"slices"

	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// Apply records an elementwise op whose dtype follows from its operands. It does the same as
// Record, but has a shortcut for programs that repeat themselves. The trie predicts the next op;
// if the prediction is right, the key of that op has everything that Record would find out.
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

// again records op if the trie predicts it and its operands are scalars and tensors of this
// stream that have one shape. Otherwise it returns false and changes nothing. The lock is held.
//
// A key in the trie was legal when it was added. Therefore again need not check that the op takes
// operands of these dtypes, that the result has the key's dtype, or that the device supports it.
func (s *Stream) again(dst *Value, op ir.Op, args []Arg) bool {
	next, key := s.node.Predicted()
	if next == nil || !key.Plain(op, len(args)) || s.usable() != nil || s.dev.Opts.Lines || s.sited() {
		return false
	}
	var form *queue.Form
	var scope *Scope
	var vs [3]*Value
	ids := int32(len(s.q.Slots)) // the next operand that is new to the queue gets this id
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
			if v.state != stReady || v.mem.Load().Fault.Load() != nil {
				return false
			}
			if !v.queued() {
				if slices.Contains(vs[:i], v) {
					return false
				}
				added := false
				if st := v.mem.Load(); st.Lent {
					id, added = s.addedFor(st)
				}
				if !added {
					id = ids
					ids++
				}
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
	s.came(dst, true, nil)
	s.maybeCut()
	return true
}

// hot finds the plan of the queue and its recent geometry with the queue's sizes. The segment is
// then the geometry's segment with other scalars and is not assembled again. It returns nil if
// there is no such plan or geometry, and the plan store then looks for a plan.
func (s *Stream) hot(end segment.End) (*planstore.Known, *planstore.Geometry) {
	d := s.dev
	at := d.plans.Trie.Find(s.node, end)
	if at == nil || d.Closed.Load() {
		return nil, nil
	}
	known := at.Plans()
	for i, e := range known {
		if e.Replayed.Load() != nil {
			return nil, nil
		}
		g := e.Memo.Find(func(g *planstore.Geometry) bool { return s.comesBack(&e.Memo, g) })
		if g == nil {
			continue
		}
		seg := s.asIn(g)
		for _, before := range known[:i] {
			if before.Plan.Check(seg) && before.Suits(seg) { // and has no geometry with these sizes
				return nil, nil
			}
		}
		if !e.Plan.Check(seg) || !e.Suits(seg) {
			continue
		}
		if !e.Found.Load() || d.plans.Improvable(e, seg) {
			return nil, nil
		}
		return e, g
	}
	return nil, nil
}

// asIn returns the queued segment, which has the sizes of the geometry. The result is reused.
func (s *Stream) asIn(g *planstore.Geometry) *segment.Segment {
	seg := &s.work.hot
	seg.Nodes, seg.Out, seg.Tensors, seg.Scalars = g.Seg.Nodes, g.Seg.Out, g.Seg.Tensors, seg.Scalars[:0]
	for _, sc := range s.q.Scalars {
		seg.Scalars = append(seg.Scalars, segment.Scalar(sc))
	}
	return seg
}

// comesBack reports that the queued tensors have the shapes, views and attributes of a geometry.
func (s *Stream) comesBack(m *planstore.Memo, g *planstore.Geometry) bool {
	for i, id := range m.Inputs {
		sl := &s.q.Slots[id]
		if !sl.Form.Shape.Equal(g.Shapes[i]) || !planstore.SameView(sl.H.st.View, g.Views[i]) {
			return false
		}
	}
	for i, n := range m.Nodes {
		sl := &s.q.Slots[g.Seg.Out[n]]
		if !sl.Form.Shape.Equal(g.Shapes[len(m.Inputs)+i]) || !planstore.SameAttr(sl.Attr, g.Attrs[i]) {
			return false
		}
	}
	return true
}
