package stream

import (
	"errors"
	"fmt"
	"math"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// ErrMismatch is a fused plan that did not give what its ops give one by one.
// Only Options.Check looks for it.
var ErrMismatch = errors.New("fused result differs from the op-by-op one")

// check runs the ops of a plan that just ran one by one, the first time it does,
// and compares every result that both have (rule N6). What differs carries the
// error, and everything where the plan may have been found by mistake.
func (s *Stream) check(ent *entry, seg *segment.Segment, bound []*storage) {
	if err := s.q.InOrder(); err != nil {
		e := s.failer(ent, seg, s.lines)(0, &InternalError{Pass: "check", Cause: err})
		for _, b := range s.work.writes {
			b.fault.CompareAndSwap(nil, e)
		}
		return
	}
	if ent.checked.Swap(true) {
		return
	}
	ref := make([]*storage, len(bound))
	for id := range seg.Tensors {
		if seg.Tensors[id].Def < 0 {
			ref[id] = bound[id]
		}
	}
	r := byOp{dev: s.dev, seg: seg, mem: ref, bad: make([]*OpError, len(ref)), fail: s.failer(ent, seg, s.lines)}
	defer func() { r.forget(0) }()
	for n, id := range seg.Out {
		t := &seg.Tensors[id]
		if t.Life != segment.LifeWrite || bound[id] == nil || bound[id].fault.Load() != nil {
			continue
		}
		if r.value(id) != nil {
			continue // reported
		}
		if err := s.compare(t, slack(seg), bound[id], ref[id]); err != nil {
			e := r.fail(int32(n), err)
			bound[id].fault.CompareAndSwap(nil, e)
			return // later results depend on this one
		}
	}
}

// slack is how far results may be apart on a device that is not exact: every
// op of the segment may have used up its tolerance. Cancellation and
// comparisons can exceed it, so a mismatch there is a hint, not a proof.
func slack(seg *segment.Segment) (tol ir.Tolerance) {
	for n := range seg.Nodes {
		tol = looser(tol, &seg.Nodes[n])
	}
	return tol
}

// looser is a tolerance after one node more.
func looser(tol ir.Tolerance, n *ir.Node) ir.Tolerance {
	t := n.Op.Info().Tol
	return ir.Tolerance{Rel: tol.Rel + t.Rel, Abs: tol.Abs + t.Abs}
}

func (s *Stream) compare(t *segment.Tensor, tol ir.Tolerance, fused, single *storage) error {
	a, err := s.dev.fetch(t.DT, t.Shape, fused)
	if err != nil {
		return err
	}
	b, err := s.dev.fetch(t.DT, t.Shape, single)
	if err != nil {
		return err
	}
	x, y := ir.Dense{TensorType: ir.TensorType{DT: t.DT, Shape: t.Shape}, Data: a}, ir.Dense{TensorType: ir.TensorType{DT: t.DT, Shape: t.Shape}, Data: b}
	for i := range t.Shape.Elems() {
		got, want := x.At(i), y.At(i)
		if ir.SameValue(t.DT, got, want) || !s.dev.caps.Exact && near(t.DT, got, want, tol) {
			continue
		}
		return fmt.Errorf("%w: element %d is %s, op by op %s", ErrMismatch, i, ir.FormatBits(t.DT, got), ir.FormatBits(t.DT, want))
	}
	return nil
}

func near(dt ir.DType, got, want uint64, tol ir.Tolerance) bool {
	if !dt.IsFloat() {
		return false
	}
	g, w, tol := ir.BitsFloat(dt, got), ir.BitsFloat(dt, want), tol.In(dt)
	return math.Abs(g-w) <= tol.Abs+tol.Rel*math.Abs(w)
}
