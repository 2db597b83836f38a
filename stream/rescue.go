package stream

import (
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/segment"
)

// rescue computes a segment op by op, because no plan for it could be made or bound. It writes
// every result that the program can request.
func (s *Stream) rescue(seg *segment.Segment, ent *planstore.Known, cause error) {
	r := exec.ByOp{Dev: &s.dev.Base, Pool: &s.dev.mem, Seg: seg, Mem: make([]*memory.Storage, len(seg.Tensors)), Bad: make([]*operror.Error, len(seg.Tensors)),
		Fail: exec.Failer(s, ent, seg, s.query(seg, segment.End{}).KnownLines())}
	for id := range s.q.Slots {
		if st := s.q.Slots[id].H.st; st != nil {
			r.Mem[id] = st
		}
	}
	if device.Gone(cause) {
		r.Lost = r.Fail(int32(len(seg.Nodes)-1), cause)
	} else {
		s.dev.Counts.Fallbacks.Add(1)
		s.dev.Counts.Unbuilt.Add(1)
		s.dev.Profile.Found(profile.OpByOp, cause.Error(), ent.LineOf(s.query(seg, segment.End{}).KnownLines(), 0))
		s.dev.OnError(cause)
	}
	j := exec.Job{Alone: func() { s.rescueAll(&r) }}
	for _, st := range r.Mem {
		if st != nil {
			j.After = append(j.After, st.Written())
		}
	}
	s.lane.Submit(&j, false)
	s.lane.Last().Wait() // jobs take no stream's lock
	r.Forget(0)
}

// rescueAll is the job that rescue submits.
func (s *Stream) rescueAll(r *exec.ByOp) {
	seg := r.Seg
	for id, st := range r.Mem {
		if st == nil {
			continue
		}
		if r.Bad[id] = st.Fault.Load(); r.Bad[id] != nil {
			r.Mem[id] = nil
		}
	}
	left := make([]int32, len(seg.Tensors)) // number of nodes that still have to read each tensor
	for n := range seg.Nodes {
		for _, a := range seg.Nodes[n].Args[:seg.Nodes[n].NArgs] {
			if !a.Scalar {
				left[a.ID]++
			}
		}
	}
	for n, id := range seg.Out {
		r.Value(id)
		if v := s.q.Slots[id].H.v; v != nil && v.state == stPending {
			s.deliver(v, r.Mem[id], r.Bad[id])
		}
		for _, a := range seg.Nodes[n].Args[:seg.Nodes[n].NArgs] {
			if a.Scalar {
				continue
			}
			if left[a.ID]--; left[a.ID] == 0 {
				r.Drop(a.ID)
			}
		}
	}
}

// deliver gives a pending value its memory or its error.
func (s *Stream) deliver(v *Value, st *memory.Storage, e *operror.Error) {
	if e != nil {
		v.state, v.ext = stFailed, &ext{err: e}
		return
	}
	st.RetainAs(memory.Handles)
	v.state = stReady
	v.mem.Store(st)
	if v.unscoped() {
		st.Watch()
	}
}
