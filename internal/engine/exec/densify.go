package exec

import (
	"github.com/millrace-go/millrace/segment"
)

// densify replaces an operand of the segment by a dense copy. Few plans need it: those that
// cannot read a layout that strides do not describe. Each copy counts as a fallback.
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
	w.own(int32(id)) // Disown releases it
	w.reads = append(w.reads, b)
	return nil
}
