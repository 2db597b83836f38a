package stream

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// job makes the job of a plan that was bound in the scratch space. One that
// nobody waits for gets copies of what the stream will use again.
func (s *Stream) job(ent *entry, seg *segment.Segment, wait bool) *job {
	w := &s.work
	w.job = job{launches: w.launches, reads: w.reads, writes: w.writes,
		stream: s, entry: ent, seg: seg, mem: w.mem, lines: s.lines}
	if wait {
		return &w.job
	}
	j := w.job
	own := *seg
	own.Nodes, own.Out = slices.Clone(seg.Nodes), slices.Clone(seg.Out)
	own.Tensors, own.Scalars = slices.Clone(seg.Tensors), slices.Clone(seg.Scalars)
	j.launches = cloneLaunches(j.launches)
	j.reads, j.writes = slices.Clone(j.reads), slices.Clone(j.writes)
	j.seg, j.mem, j.lines = &own, slices.Clone(j.mem), slices.Clone(j.lines)
	return &j
}

// failed is called when a job's run fails, perhaps on the executor's
// goroutine: the steps that did not run are run op by op, and if that fails
// too, what they should have written carries the error.
func (j *job) failed(err error) {
	s := j.stream
	s.dev.stats.fallbacks.Add(1)
	s.dev.onError(err)
	var at *runtime.LaunchError
	if errors.As(err, &at) && !errors.Is(err, runtime.ErrDeviceLost) && !errors.Is(err, runtime.ErrClosed) {
		for k := at.Index; k < len(j.entry.plan.Steps); k++ {
			if err = s.opByOp(j.entry, j.seg, j.mem, k); err != nil {
				break
			}
		}
		if err == nil {
			return
		}
	}
	node := int32(0)
	if at != nil && at.Index < len(j.entry.plan.Steps) {
		node = int32(j.entry.plan.Steps[at.Index].Nodes[0])
	}
	e := opError(j.seg, lineOf(j.lines, j.entry, node), node, err)
	s.report(e)
	for _, b := range j.writes {
		b.fault.CompareAndSwap(nil, e)
	}
}

// opByOp runs what one step of a plan computes with a kernel per op, into the
// memory that the plan was bound to.
func (s *Stream) opByOp(ent *entry, seg *segment.Segment, bound []*storage, k int) (err error) {
	defer recoverBug("op by op", &err)
	step := &ent.plan.Steps[k]
	sub := segment.Segment{Scalars: seg.Scalars, Tensors: slices.Clone(seg.Tensors)}
	for i := range sub.Tensors {
		sub.Tensors[i].Def, sub.Tensors[i].Life = -1, segment.LifeInput
	}
	for _, n := range step.Nodes {
		t := &sub.Tensors[seg.Out[n]]
		t.Def, t.Life = int32(len(sub.Nodes)), segment.LifeDead
		if ent.uses[seg.Out[n]].written >= 0 {
			t.Life = segment.LifeWrite
		}
		sub.Nodes = append(sub.Nodes, seg.Nodes[n])
		sub.Out = append(sub.Out, seg.Out[n])
	}
	mem := slices.Clone(bound)
	own, views, err := s.dev.unfused(&sub, mem)
	defer releaseAll(own)
	if err != nil {
		return err
	}
	// A value that the step stored through a view is a view here.
	for t, st := range views {
		if bound[t] == nil {
			continue
		}
		data, err := s.dev.fetch(&sub.Tensors[t], st)
		if err != nil {
			return err
		}
		if err := s.dev.drv.Write(bound[t].buf, sub.Tensors[t].DT, 0, data); err != nil {
			return err
		}
	}
	return nil
}

// unfused runs a segment with a kernel per op. mem holds the memory of its
// operands and of those results that have some already; the other results get
// their own, which the caller gives up. Results that are views of others are
// returned apart.
func (d *Device) unfused(seg *segment.Segment, mem []*storage) (own []*block, views map[int]*storage, err error) {
	plan, err := fusion.Explore(seg, d.caps, fusion.Options{Mode: fusion.Unfused})
	if err != nil {
		return nil, nil, err
	}
	in := make([]fusion.View, len(seg.Tensors))
	for i, st := range mem {
		if st != nil {
			in[i] = st.layout()
		}
	}
	lay, err := plan.Layout(seg, in)
	if err != nil {
		return nil, nil, err
	}
	for i := range plan.Steps {
		st, l := &plan.Steps[i], lay.Launches[i]
		if l.Prog, err = d.program(st.Kernel); err != nil {
			return own, nil, err
		}
		for _, slot := range st.Scalars {
			l.Scalars = append(l.Scalars, seg.Scalars[slot].Bits)
		}
		for a, op := range st.Operands {
			if st.Kernel.Operands[a].Kind == codegen.Index {
				continue
			}
			if mem[op.Tensor] == nil {
				t := &seg.Tensors[op.Tensor]
				b, err := d.mem.alloc(d.bytes(t.DT, t.Shape), false)
				if err != nil {
					return own, nil, err
				}
				own = append(own, b)
				mem[op.Tensor] = &b.dense
			}
			l.Args[a].Buf = mem[op.Tensor].buf
		}
		if err := d.drv.Run([]runtime.Launch{l}); err != nil {
			return own, nil, err
		}
	}
	views = make(map[int]*storage, len(plan.Aliases))
	for i, a := range plan.Aliases {
		views[a.Tensor] = &storage{block: mem[a.Of].block, view: &lay.Views[i]}
	}
	return own, views, nil
}

func releaseAll(blocks []*block) {
	for _, b := range blocks {
		b.release()
	}
}

// fetch reads a tensor dense and row-major, as Go holds it.
func (d *Device) fetch(t *segment.Tensor, st *storage) ([]byte, error) {
	data := make([]byte, t.Shape.Elems()*t.DT.Size())
	if len(data) == 0 {
		return data, nil
	}
	if st.view == nil {
		return data, d.drv.Read(data, t.DT, st.buf, 0)
	}
	return data, gather(d, data, t.DT, t.Shape, st)
}
