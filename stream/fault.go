package stream

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// failure is what a job does when its run fails: the steps that did not run
// are run op by op, and if that fails too, what they should have written
// carries the error. It may be called on the executor's goroutine, so it holds
// copies of what the stream will reuse.
func (s *Stream) failure(ent *entry, seg *segment.Segment, j *job, wait bool) func(error) {
	mem, lines := s.work.mem, s.lines
	if !wait {
		own := *seg
		own.Nodes, own.Out = slices.Clone(seg.Nodes), slices.Clone(seg.Out)
		own.Tensors, own.Scalars = slices.Clone(seg.Tensors), slices.Clone(seg.Scalars)
		seg, mem, lines = &own, slices.Clone(mem), slices.Clone(lines)
	}
	return func(err error) {
		s.dev.stats.fallbacks.Add(1)
		s.dev.onError(err)
		var at *runtime.LaunchError
		if errors.As(err, &at) && !errors.Is(err, runtime.ErrDeviceLost) && !errors.Is(err, runtime.ErrClosed) {
			for k := at.Index; k < len(ent.plan.Steps); k++ {
				if err = s.opByOp(ent, seg, mem, k); err != nil {
					break
				}
			}
			if err == nil {
				return
			}
		}
		node := int32(0)
		if at != nil && at.Index < len(ent.plan.Steps) {
			node = int32(ent.plan.Steps[at.Index].Nodes[0])
		}
		e := opError(seg, lineOf(lines, ent, node), node, err)
		s.report(e)
		for _, b := range j.writes {
			b.fault.CompareAndSwap(nil, e)
		}
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
	plan, err := fusion.Explore(&sub, s.dev.caps, fusion.Options{Mode: fusion.Unfused})
	if err != nil {
		return err
	}
	views := make([]fusion.View, len(sub.Tensors))
	mem := make([]*storage, len(sub.Tensors))
	for i, st := range bound {
		if st != nil {
			views[i], mem[i] = st.layout(), st
		}
	}
	lay, err := plan.Layout(&sub, views)
	if err != nil {
		return err
	}
	var own []*block
	defer func() {
		for _, b := range own {
			b.release()
		}
	}()
	for i := range plan.Steps {
		st, l := &plan.Steps[i], lay.Launches[i]
		if l.Prog, err = s.dev.program(st.Kernel); err != nil {
			return err
		}
		for _, slot := range st.Scalars {
			l.Scalars = append(l.Scalars, sub.Scalars[slot].Bits)
		}
		for a, op := range st.Operands {
			if st.Kernel.Operands[a].Kind == codegen.Index {
				continue
			}
			if mem[op.Tensor] == nil {
				t := &sub.Tensors[op.Tensor]
				b, err := s.dev.mem.alloc(s.dev.bytes(t.DT, t.Shape), false)
				if err != nil {
					return err
				}
				own = append(own, b)
				mem[op.Tensor] = &b.dense
			}
			l.Args[a].Buf = mem[op.Tensor].buf
		}
		if err := s.dev.drv.Run([]runtime.Launch{l}); err != nil {
			return err
		}
	}
	// A value that the step stored through a view is a view here.
	for i, a := range plan.Aliases {
		if bound[a.Tensor] == nil {
			continue
		}
		t := &sub.Tensors[a.Tensor]
		data := make([]byte, t.Shape.Elems()*t.DT.Size())
		if err := gather(s.dev, data, t.DT, t.Shape, &storage{block: mem[a.Of].block, view: &lay.Views[i]}); err != nil {
			return err
		}
		if err := s.dev.drv.Write(bound[a.Tensor].buf, t.DT, 0, data); err != nil {
			return err
		}
	}
	return nil
}
