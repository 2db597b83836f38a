package exec

import (
	"github.com/millrace-go/millrace/segment"
)

// densify replaces an operand of the segment that is about to be bound by a
// dense copy. It is for the few plans that cannot read what lies as no strides
// describe, and counts as a fallback.
func (w *Binder) densify(seg *segment.Segment, id int) error {
	st, t := w.Mem[id], &seg.Tensors[id]
	st.Written().Wait()
	if e := st.Fault.Load(); e != nil {
		return e
	}
	b, err := w.Pool.DenseCopy(t, st, true)
	if err != nil {
		return err
	}
	w.Counts.Fallbacks.Add(1)
	w.Mem[id] = &b.Dense
	w.own(int32(id)) // released with the plan's own
	w.reads = append(w.reads, b)
	return nil
}
