package exec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// ByOp computes results of a segment with one kernel per operation. It is the fallback when a
// plan cannot be made, bound or run, and Check compares plans with it. Every result is a view or
// has its own memory, so a ByOp overwrites none of its operands.
type ByOp struct {
	Dev  *device.Base
	Pool *memory.Pool
	Seg  *segment.Segment
	Mem  []*memory.Storage // by relative id: the operands that have memory, then also the results
	own  []int32           // ids whose memory has a reader that Forget or Drop releases
	Bad  []*operror.Error  // by relative id: why it cannot be computed

	Fail func(node int32, err error) *operror.Error // reports a node that failed
	Lost *operror.Error                             // the error of a lost device: nothing more can run
}

// Value computes a result and, first, its operands. A fault marks only the results that depend
// on the faulty one.
func (r *ByOp) Value(id int32) *operror.Error {
	if r.Mem[id] != nil || r.Bad[id] != nil {
		return r.Bad[id]
	}
	n := r.Seg.Tensors[id].Def
	if n < 0 {
		r.Bad[id] = r.Fail(0, &operror.Bug{Pass: "op by op", Cause: fmt.Sprintf("operand %%%d has no memory", id)})
		return r.Bad[id]
	}
	node := &r.Seg.Nodes[n]
	for _, a := range node.Args[:node.NArgs] {
		if a.Scalar {
			continue
		}
		if e := r.Value(a.ID); e != nil {
			r.Bad[id] = e
			return e
		}
	}
	if r.Lost == nil {
		err := r.compute(n)
		if err == nil {
			return nil
		}
		e := r.Fail(n, err)
		if !device.Gone(err) {
			r.Bad[id] = e
			return e
		}
		r.Lost = e
	}
	r.Bad[id] = r.Lost
	return r.Lost
}

// compute runs one node, whose operands are in memory.
func (r *ByOp) compute(n int32) (err error) {
	defer operror.Recover("op by op", &err)
	d, id := r.Dev, r.Seg.Out[n]
	one := segment.Segment{Nodes: r.Seg.Nodes[n : n+1], Out: r.Seg.Out[n : n+1],
		Scalars: r.Seg.Scalars, Tensors: slices.Clone(r.Seg.Tensors)}
	in := make([]fusion.View, len(one.Tensors))
	for i := range one.Tensors {
		one.Tensors[i].Def, one.Tensors[i].Life = -1, segment.LifeInput
		if r.Mem[i] != nil {
			in[i] = r.Mem[i].Layout()
		}
	}
	one.Tensors[id].Def, one.Tensors[id].Life = 0, segment.LifeWrite
	plan, err := fusion.Explore(&one, d.Caps, fusion.Options{Mode: fusion.Unfused})
	if err != nil {
		return err
	}
	lay, err := plan.Layout(&one, in)
	for indexed := (*fusion.IndexedViewError)(nil); errors.As(err, &indexed); lay, err = plan.Layout(&one, in) {
		at := indexed.Tensor
		b, err := r.Pool.DenseCopy(&one.Tensors[at], r.Mem[at], false)
		if err != nil {
			return err
		}
		defer func(st *memory.Storage) { // the copy is for this operation only
			r.Mem[at] = st
			b.Release()
		}(r.Mem[at])
		r.Mem[at], in[at] = &b.Dense, fusion.View{}
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
		of := r.Mem[a.Of].Block
		r.Mem[a.Tensor] = &memory.Storage{Block: of, View: &lay.Views[i]}
		if of.RetainLive() {
			r.own = append(r.own, int32(a.Tensor))
		}
	}
	return nil
}

func (r *ByOp) step(st *fusion.Step, l runtime.Launch) (err error) {
	d := r.Dev
	if l.Prog, _, err = d.Program(st.Kernel, 0); err != nil {
		return err
	}
	for _, slot := range st.Scalars {
		l.Scalars = append(l.Scalars, r.Seg.Scalars[slot].Bits)
	}
	l.Args = slices.Clone(l.Args)
	fresh := len(r.own)
	for a, op := range st.Operands {
		if st.Kernel.Operands[a].Kind == codegen.Index {
			continue
		}
		if r.Mem[op.Tensor] == nil {
			t := &r.Seg.Tensors[op.Tensor]
			b, err := r.Pool.Alloc(d.Bytes(t.DT, t.Shape), false)
			if err != nil {
				return err
			}
			r.Mem[op.Tensor] = &b.Dense
			r.own = append(r.own, int32(op.Tensor))
		}
		l.Args[a].Buf = r.Mem[op.Tensor].Buf
	}
	if err := d.Launch([]runtime.Launch{l}, nil, device.Submitter{}); err != nil {
		r.Forget(fresh) // their contents are undefined
		return err
	}
	return nil
}

// Forget releases the memory of own[from:].
func (r *ByOp) Forget(from int) {
	for _, id := range r.own[from:] {
		r.Mem[id].Release()
		r.Mem[id] = nil
	}
	r.own = r.own[:from]
}

// Drop releases one result that nothing reads any more.
func (r *ByOp) Drop(id int32) {
	if i := slices.Index(r.own, id); i >= 0 {
		r.Mem[id].Release()
		r.own = slices.Delete(r.own, i, i+1)
	}
}
