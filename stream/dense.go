package stream

import "github.com/millrace-go/millrace/segment"

// densify replaces an operand of the segment that is about to be bound by a
// dense copy, made by way of the host. It is for the few plans that cannot read
// what lies as no strides describe, and counts as a fallback.
func (s *Stream) densify(seg *segment.Segment, id int) error {
	d, st, t := s.dev, s.work.mem[id], &seg.Tensors[id]
	st.written().wait()
	if e := st.fault.Load(); e != nil {
		return e
	}
	b, err := d.denseCopy(t, st, true)
	if err != nil {
		return err
	}
	d.stats.fallbacks.Add(1)
	s.work.mem[id] = &b.dense
	s.work.owned = append(s.work.owned, int32(id)) // released with the plan's own
	s.work.reads = append(s.work.reads, b)
	return nil
}

// denseCopy is a tensor that is in memory, dense in memory of its own, with one
// reader. collect is as for memory.alloc.
func (d *Device) denseCopy(t *segment.Tensor, st *storage, collect bool) (*block, error) {
	data, err := d.fetch(t.DT, t.Shape, st)
	if err != nil {
		return nil, err
	}
	b, err := d.mem.alloc(d.bytes(t.DT, t.Shape), collect)
	if err != nil {
		return nil, err
	}
	if err := d.drv.Write(b.buf, t.DT, 0, data); err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}
