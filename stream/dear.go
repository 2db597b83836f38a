package stream

import "github.com/millrace-go/millrace/segment"

// settleDear decides what becomes of dear results: those that the plan writes
// are there to stay, the others are virtual. Without a plan all are written.
func (e *entry) settleDear(seg *segment.Segment) {
	for id := range seg.Tensors {
		t := &seg.Tensors[id]
		if t.Life != segment.LifeDear {
			continue
		}
		t.Life = segment.LifeWrite
		if e == nil {
			continue
		}
		// What the steps of a chain hand over need not come to be in memory.
		if u := e.plan.Uses(); id >= len(u.Write) || u.Write[id] < 0 || e.plan.HandsOver(id) {
			t.Life = segment.LifeVirtual
		}
	}
}

// want has dear results written that a plan left out and that were needed.
func want(seg *segment.Segment, ids []int32) {
	for _, id := range ids {
		if seg.Tensors[id].Life == segment.LifeDear {
			seg.Tensors[id].Life = segment.LifeWrite
		}
	}
}

// replay notes that dear results of the entry's segment were computed again.
func (e *entry) replay(ids []int32) {
	if len(ids) == 0 {
		return
	}
	if old := e.replayed.Load(); old != nil {
		ids = append(append([]int32(nil), *old...), ids...)
	}
	e.replayed.Store(&ids)
}
