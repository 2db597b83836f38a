package exec

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// ErrMismatch says that a fused plan gave another result than its operations one by one. Only
// Options.Check compares them.
var ErrMismatch = errors.New("the fused result differs from the result of running op by op")

// Check compares the results of a plan that has just run with those of its operations one by one.
// It does this once per plan. A result that differs carries the error. A non-nil order says that
// the queue's ids are not in the order that keys assume. The plan may then be the wrong one, so
// every result carries the error.
func (w *Binder) Check(ent *planstore.Known, seg *segment.Segment, lines []string, order error) {
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
			continue // it was reported already
		}
		if err := w.compare(t, slack(seg), bound[id], ref[id]); err != nil {
			e := r.Fail(int32(n), err)
			bound[id].Fault.CompareAndSwap(nil, e)
			return // later results depend on this one
		}
	}
}

// slack is the largest difference allowed on a device that is not exact: the sum of the
// tolerances of the segment's operations. Cancellation and comparisons can exceed it, so on such
// a device a mismatch is a hint, not a proof.
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
		return fmt.Errorf("%w: element %d is %s when fused, %s op by op", ErrMismatch, i, ir.FormatBits(t.DT, got), ir.FormatBits(t.DT, want))
	}
	return nil
}
