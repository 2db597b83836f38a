package stream

import "github.com/millrace-go/millrace/segment"

// densify replaces an operand of the segment that is about to be bound by a
// dense copy, made by way of the host. It is for the few plans that cannot read
// what lies as no strides describe, and counts as a fallback.
func (s *Stream) densify(seg *segment.Segment, id int) error {
	d, st, t := s.dev, s.work.mem[id], &seg.Tensors[id]
	d.exec.wait(st.seq.Load())
	if e := st.fault.Load(); e != nil {
		return e
	}
	data := make([]byte, t.Shape.Elems()*t.DT.Size())
	if err := gather(d, data, t.DT, t.Shape, st); err != nil {
		return err
	}
	b, err := d.mem.alloc(d.bytes(t.DT, t.Shape), true)
	if err != nil {
		return err
	}
	if err := d.drv.Write(b.buf, t.DT, 0, data); err != nil {
		b.release()
		return err
	}
	d.stats.fallbacks.Add(1)
	s.work.mem[id] = &b.dense
	s.work.owned = append(s.work.owned, int32(id)) // released with the plan's own
	return nil
}
