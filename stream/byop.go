package stream

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// byOp computes results of a segment with a kernel per op: the path that is
// left where a plan cannot be made, bound or run, and what checked plans are
// compared with. Every result has memory of its own or is a view, so nothing
// that it starts from is overwritten.
type byOp struct {
	dev *Device
	seg *segment.Segment
	mem []*storage // by relative id: what is there, then what was computed
	own []int32    // ids whose memory has a reader for this run
	bad []*OpError // by relative id: why it cannot be computed

	fail func(node int32, err error) *OpError // tells of a node that failed
	lost *OpError                             // nothing more can run at all
}

// value computes a result and what it is made from. A fault concerns the
// results that are made from the faulty one and no others.
func (r *byOp) value(id int32) *OpError {
	if r.mem[id] != nil || r.bad[id] != nil {
		return r.bad[id]
	}
	n := r.seg.Tensors[id].Def
	if n < 0 {
		r.bad[id] = r.fail(0, &InternalError{Pass: "op by op", Cause: fmt.Sprintf("operand %%%d has no memory", id)})
		return r.bad[id]
	}
	node := &r.seg.Nodes[n]
	for _, a := range node.Args[:node.NArgs] {
		if a.Scalar {
			continue
		}
		if e := r.value(a.ID); e != nil {
			r.bad[id] = e
			return e
		}
	}
	if r.lost == nil {
		err := r.compute(n)
		if err == nil {
			return nil
		}
		e := r.fail(n, err)
		if !gone(err) {
			r.bad[id] = e
			return e
		}
		r.lost = e
	}
	r.bad[id] = r.lost
	return r.lost
}

// gone reports a device on which nothing can run any more.
func gone(err error) bool {
	return errors.Is(err, runtime.ErrDeviceLost) || errors.Is(err, runtime.ErrClosed)
}

// compute runs one node, whose operands are in memory.
func (r *byOp) compute(n int32) (err error) {
	defer recoverBug("op by op", &err)
	d, id := r.dev, r.seg.Out[n]
	one := segment.Segment{Nodes: r.seg.Nodes[n : n+1], Out: r.seg.Out[n : n+1],
		Scalars: r.seg.Scalars, Tensors: slices.Clone(r.seg.Tensors)}
	in := make([]fusion.View, len(one.Tensors))
	for i := range one.Tensors {
		one.Tensors[i].Def, one.Tensors[i].Life = -1, segment.LifeInput
		if r.mem[i] != nil {
			in[i] = r.mem[i].layout()
		}
	}
	one.Tensors[id].Def, one.Tensors[id].Life = 0, segment.LifeWrite
	plan, err := fusion.Explore(&one, d.caps, fusion.Options{Mode: fusion.Unfused})
	if err != nil {
		return err
	}
	lay, err := plan.Layout(&one, in)
	for indexed := (*fusion.IndexedViewError)(nil); errors.As(err, &indexed); lay, err = plan.Layout(&one, in) {
		at := indexed.Tensor
		b, err := d.denseCopy(&one.Tensors[at], r.mem[at], false)
		if err != nil {
			return err
		}
		defer func(st *storage) { // of this op alone
			r.mem[at] = st
			b.release()
		}(r.mem[at])
		r.mem[at], in[at] = &b.dense, fusion.View{}
	}
	if err != nil {
		return err
	}
	for i := range plan.Steps {
		if err := r.step(&plan.Steps[i], lay.Launches[i]); err != nil {
			return err
		}
	}
	for i, a := range plan.Aliases {
		of := r.mem[a.Of].block
		r.mem[a.Tensor] = &storage{block: of, view: &lay.Views[i]}
		if of.retainLive() {
			r.own = append(r.own, int32(a.Tensor))
		}
	}
	return nil
}

func (r *byOp) step(st *fusion.Step, l runtime.Launch) (err error) {
	d := r.dev
	if l.Prog, _, err = d.program(st.Kernel, 0); err != nil {
		return err
	}
	for _, slot := range st.Scalars {
		l.Scalars = append(l.Scalars, r.seg.Scalars[slot].Bits)
	}
	l.Args = slices.Clone(l.Args)
	fresh := len(r.own)
	for a, op := range st.Operands {
		if st.Kernel.Operands[a].Kind == codegen.Index {
			continue
		}
		if r.mem[op.Tensor] == nil {
			t := &r.seg.Tensors[op.Tensor]
			b, err := d.mem.alloc(d.bytes(t.DT, t.Shape), false)
			if err != nil {
				return err
			}
			r.mem[op.Tensor] = &b.dense
			r.own = append(r.own, int32(op.Tensor))
		}
		l.Args[a].Buf = r.mem[op.Tensor].buf
	}
	if err := d.drv.Run([]runtime.Launch{l}); err != nil {
		r.forget(fresh) // undefined contents
		return err
	}
	return nil
}

// forget gives up the memory taken since own had that length.
func (r *byOp) forget(from int) {
	for _, id := range r.own[from:] {
		r.mem[id].release()
		r.mem[id] = nil
	}
	r.own = r.own[:from]
}

// drop gives up one result that nothing reads any more.
func (r *byOp) drop(id int32) {
	if i := slices.Index(r.own, id); i >= 0 {
		r.mem[id].release()
		r.own = slices.Delete(r.own, i, i+1)
	}
}
