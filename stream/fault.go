package stream

import (
	"errors"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// failer tells a stream of nodes that failed and gives the error their results
// carry. One fault of several nodes is told once.
func (s *Stream) failer(ent *entry, seg *segment.Segment, lines []string) func(int32, error) *OpError {
	return func(node int32, err error) *OpError {
		e := opError(seg, lineOf(lines, ent, node), node, err)
		s.report(e)
		return e
	}
}

// failed is called when a job's run fails, perhaps on the executor's
// goroutine. The steps that did not run are run op by op. Where it is not
// known what ran, since an operand may be overwritten by now, everything the
// job should have written carries the error.
func (j *job) failed(err error) {
	s := j.stream
	var at *runtime.LaunchError
	if errors.As(err, &at) && !gone(err) {
		if j.rest(at.Index, make([]*OpError, len(j.seg.Tensors))) {
			s.dev.onError(err) // nobody else will hear of it
		}
		return
	}
	node := int32(0)
	if at != nil && at.Index < len(j.entry.plan.Steps) {
		node = int32(j.entry.plan.Steps[at.Index].Nodes[0])
	}
	e := s.failer(j.entry, &j.seg, j.lines)(node, err)
	for _, b := range j.writes {
		b.fault.CompareAndSwap(nil, e)
	}
}

// faulty lists the operands that earlier jobs failed to write, by relative id;
// nil where all are there.
func (j *job) faulty() (bad []*OpError) {
	for _, b := range j.reads {
		if b.fault.Load() == nil {
			continue
		}
		bad = make([]*OpError, len(j.seg.Tensors))
		for id, st := range j.mem {
			if st != nil && j.seg.Tensors[id].Def < 0 {
				bad[id] = st.fault.Load()
			}
		}
		return bad
	}
	return nil
}

// rest runs the steps from one on op by op and marks the results that cannot
// be computed; it reports whether there are none. bad has the operands that
// are not there.
func (j *job) rest(from int, bad []*OpError) bool {
	j.stream.dev.stats.fallbacks.Add(1)
	for k := from; k < len(j.entry.plan.Steps); k++ {
		j.step(k, bad)
	}
	for _, a := range j.entry.plan.Aliases {
		bad[a.Tensor] = bad[a.Of]
	}
	good := true
	for id, e := range bad {
		good = good && e == nil
		if j.seg.Tensors[id].Life == segment.LifeWrite && j.mem[id] != nil {
			j.mem[id].fault.Store(e) // nil, too: the memory may be that of an operand which is not there
		}
	}
	return good
}

// step runs step k op by op. At that point of the plan only what the kernel
// reads is sure to be in memory: the rest may have been overwritten, and its
// operands may be overwritten by the results. So results are computed apart
// from the memory that the plan was bound to and copied there in the end.
func (j *job) step(k int, bad []*OpError) {
	d, step := j.stream.dev, &j.entry.plan.Steps[k]
	r := byOp{dev: d, seg: &j.seg, mem: make([]*storage, len(j.mem)), bad: make([]*OpError, len(bad)),
		fail: j.stream.failer(j.entry, &j.seg, j.lines)}
	defer func() { r.forget(0) }()
	for id, st := range j.mem { // a kernel need not read what its ops do: x == x
		if j.seg.Tensors[id].Def >= 0 {
			continue
		}
		if r.bad[id] = bad[id]; bad[id] == nil {
			r.mem[id] = st
		}
	}
	// What the steps of a chain hand over may never have been in memory; what
	// they start from is, until the chain ends.
	plan := j.entry.plan
	for c, _ := plan.ChainOf(k); c < k; c++ {
		j.operands(&r, &plan.Steps[c], bad, plan.HandsOver)
	}
	j.operands(&r, step, bad, func(int) bool { return false })
	data := make([][]byte, len(step.Operands))
	for i, op := range step.Operands {
		t := &j.seg.Tensors[op.Tensor]
		if step.Kernel.Operands[i].Kind != codegen.Output || j.mem[op.Tensor] == nil || r.value(int32(op.Tensor)) != nil {
			continue
		}
		var err error
		if data[i], err = d.fetch(t.DT, t.Shape, r.mem[op.Tensor]); err != nil {
			r.bad[op.Tensor] = r.fail(t.Def, err)
		}
	}
	for i, op := range step.Operands {
		if step.Kernel.Operands[i].Kind != codegen.Output || j.mem[op.Tensor] == nil {
			continue
		}
		t := &j.seg.Tensors[op.Tensor]
		if bad[op.Tensor] = r.bad[op.Tensor]; bad[op.Tensor] == nil && len(data[i]) > 0 {
			if err := d.drv.Write(j.mem[op.Tensor].buf, t.DT, 0, data[i]); err != nil {
				bad[op.Tensor] = r.fail(t.Def, err)
			}
		}
	}
}

// operands gives r what a step reads from memory, but for what not holds of.
func (j *job) operands(r *byOp, step *fusion.Step, bad []*OpError, not func(tensor int) bool) {
	for i, op := range step.Operands {
		if step.Kernel.Operands[i].Kind != codegen.Input || not(op.Tensor) {
			continue
		}
		if bad[op.Tensor] != nil {
			r.bad[op.Tensor] = bad[op.Tensor]
		} else {
			r.mem[op.Tensor] = j.mem[op.Tensor]
		}
		for _, a := range j.entry.plan.Aliases {
			if a.Of == op.Tensor {
				r.mem[a.Tensor], r.bad[a.Tensor] = j.mem[a.Tensor], bad[a.Of]
			}
		}
	}
}

// rescue settles a segment for which no plan could be made or bound: op by op,
// with every result that somebody may ask for in memory.
func (s *Stream) rescue(seg *segment.Segment, ent *entry, cause error) {
	r := byOp{dev: s.dev, seg: seg, mem: make([]*storage, len(seg.Tensors)), bad: make([]*OpError, len(seg.Tensors)),
		fail: s.failer(ent, seg, s.knownLines())}
	for id := range s.q.Slots {
		if st := s.q.Slots[id].H.st; st != nil {
			r.mem[id] = st
		}
	}
	if gone(cause) {
		r.lost = r.fail(int32(len(seg.Nodes)-1), cause)
	} else {
		s.dev.stats.fallbacks.Add(1)
		s.dev.onError(cause)
	}
	j := job{alone: func() { s.rescueAll(&r) }}
	for _, st := range r.mem {
		if st != nil {
			j.after = append(j.after, st.written())
		}
	}
	s.lane.submit(&j, false)
	s.lane.last().wait() // jobs take no stream's lock
	r.forget(0)
}

// rescueAll is what the executor runs for rescue.
func (s *Stream) rescueAll(r *byOp) {
	seg := r.seg
	for id, st := range r.mem {
		if st == nil {
			continue
		}
		if r.bad[id] = st.fault.Load(); r.bad[id] != nil {
			r.mem[id] = nil
		}
	}
	left := make([]int32, len(seg.Tensors)) // nodes that have not read it yet
	for n := range seg.Nodes {
		for _, a := range seg.Nodes[n].Args[:seg.Nodes[n].NArgs] {
			if !a.Scalar {
				left[a.ID]++
			}
		}
	}
	for n, id := range seg.Out {
		r.value(id)
		if v := s.q.Slots[id].H.v; v != nil && v.state == stPending {
			s.deliver(v, r.mem[id], r.bad[id])
		}
		for _, a := range seg.Nodes[n].Args[:seg.Nodes[n].NArgs] {
			if a.Scalar {
				continue
			}
			if left[a.ID]--; left[a.ID] == 0 {
				r.drop(a.ID)
			}
		}
	}
}

// deliver gives a pending value its memory or its error.
func (s *Stream) deliver(v *Value, st *storage, e *OpError) {
	if e != nil {
		v.state, v.ext = stFailed, &ext{err: e}
		return
	}
	st.retainAs(handles)
	v.state = stReady
	v.mem.Store(st)
	if v.unscoped() {
		st.watch()
	}
}
