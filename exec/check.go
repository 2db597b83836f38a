package exec

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/segment"
)

// ErrMismatch is a fused plan that did not give what its ops give one by one.
// Only Options.Check looks for it.
var ErrMismatch = errors.New("fused result differs from the op-by-op one")

// Check runs the ops of a plan that just ran one by one, the first time it does,
// and compares every result that both have (rule N6). What differs carries the
// error, and everything where the plan may have been found by mistake: order says that the
// queue's ids were in another order than keys take them for.
func (w *Binder) Check(ent *plans.Known, seg *segment.Segment, lines []string, order error) {
	bound := w.Mem
	if order != nil {
		e := Failer(w.Owner, ent, seg, lines)(0, &operror.Bug{Pass: "check", Cause: order})
		for _, b := range w.writes {
			b.Fault.CompareAndSwap(nil, e)
		}
		return
	}
	if ent.Checked.Swap(true) {
		return
	}
	ref := make([]*memory.Storage, len(bound))
	for id := range seg.Tensors {
		if seg.Tensors[id].Def < 0 {
			ref[id] = bound[id]
		}
	}
	r := ByOp{Dev: w.Base, Pool: w.Pool, Seg: seg, Mem: ref, Bad: make([]*operror.Error, len(ref)), Fail: Failer(w.Owner, ent, seg, lines)}
	defer func() { r.Forget(0) }()
	for n, id := range seg.Out {
		t := &seg.Tensors[id]
		if t.Life != segment.LifeWrite || bound[id] == nil || bound[id].Fault.Load() != nil {
			continue
		}
		if r.Value(id) != nil {
			continue // reported
		}
		if err := w.compare(t, slack(seg), bound[id], ref[id]); err != nil {
			e := r.Fail(int32(n), err)
			bound[id].Fault.CompareAndSwap(nil, e)
			return // later results depend on this one
		}
	}
}

// slack is how far results may be apart on a device that is not exact: every
// op of the segment may have used up its tolerance. Cancellation and
// comparisons can exceed it, so a mismatch there is a hint, not a proof.
func slack(seg *segment.Segment) (tol ir.Tolerance) {
	for n := range seg.Nodes {
		tol = tol.Plus(&seg.Nodes[n])
	}
	return tol
}

func (w *Binder) compare(t *segment.Tensor, tol ir.Tolerance, fused, single *memory.Storage) error {
	a, err := w.Pool.Fetch(t.DT, t.Shape, fused)
	if err != nil {
		return err
	}
	b, err := w.Pool.Fetch(t.DT, t.Shape, single)
	if err != nil {
		return err
	}
	x, y := ir.Dense{TensorType: ir.TensorType{DT: t.DT, Shape: t.Shape}, Data: a}, ir.Dense{TensorType: ir.TensorType{DT: t.DT, Shape: t.Shape}, Data: b}
	for i := range t.Shape.Elems() {
		got, want := x.At(i), y.At(i)
		if ir.SameValue(t.DT, got, want) || !w.Caps.Exact && tol.Near(t.DT, got, want) {
			continue
		}
		return fmt.Errorf("%w: element %d is %s, op by op %s", ErrMismatch, i, ir.FormatBits(t.DT, got), ir.FormatBits(t.DT, want))
	}
	return nil
}
