package exec

import (
	"errors"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Failer returns a function that makes the error of a failed node and reports it to the stream.
// An error that is already an operror.Error is returned and reported as it is.
func Failer(to Owner, ent *planstore.Known, seg *segment.Segment, lines []string) func(int32, error) *operror.Error {
	return func(node int32, err error) *operror.Error {
		e := opError(seg, ent.LineOf(lines, node), node, err)
		to.Report(e)
		return e
	}
}

// failed handles a failed run of a job, possibly on the lane's goroutine. It runs the remaining
// steps operation by operation. If it is unknown which steps ran, an operand may be overwritten
// already; then every block that the job writes carries the error.
func (j *Job) failed(err error) {
	var at *runtime.LaunchError
	known := errors.As(err, &at)
	node := int32(0)
	if known && at.Index < len(j.known.Plan.Steps) {
		node = int32(j.known.Plan.Steps[at.Index].Nodes[0])
	}
	if known && !device.Gone(err) {
		if j.rest(at.Index, make([]*operror.Error, len(j.seg.Tensors))) {
			j.by.Profile.Found(profile.OpByOp, err.Error(), j.known.LineOf(j.Lines, node))
			j.by.OnError(err) // all results are good, so no result carries this error
		}
		return
	}
	e := Failer(j.by.Owner, j.known, &j.seg, j.Lines)(node, err)
	for _, b := range j.writes {
		b.Fault.CompareAndSwap(nil, e)
	}
}

// faulty lists, by relative id, the errors of operands that earlier jobs failed to write. It
// returns nil if all operands are good.
func (j *Job) faulty() (bad []*operror.Error) {
	for _, b := range j.reads {
		if b.Fault.Load() == nil {
			continue
		}
		bad = make([]*operror.Error, len(j.seg.Tensors))
		for id, st := range j.Mem {
			if st != nil && j.seg.Tensors[id].Def < 0 {
				bad[id] = st.Fault.Load()
			}
		}
		return bad
	}
	return nil
}

// rest runs the steps from step from on, operation by operation, and marks the results that
// cannot be computed. It reports whether all of them could be. bad holds the errors of missing
// operands, by relative id; rest adds to it.
func (j *Job) rest(from int, bad []*operror.Error) bool {
	j.by.Counts.Fallbacks.Add(1)
	for k := from; k < len(j.known.Plan.Steps); k++ {
		j.step(k, bad)
	}
	for _, a := range j.known.Plan.Aliases {
		bad[a.Tensor] = bad[a.Of]
	}
	good := true
	for id, e := range bad {
		good = good && e == nil
		if j.seg.Tensors[id].Life == segment.LifeWrite && j.Mem[id] != nil {
			j.Mem[id].Fault.Store(e) // nil, too: the memory may be that of a faulty operand
		}
	}
	return good
}

// step runs step k operation by operation. At that point of the plan only the kernel's inputs are
// certain to be in memory: other tensors may be overwritten, and the kernel's results may
// overwrite its inputs. Therefore step computes the results in separate memory and copies them
// to the plan's memory at the end.
func (j *Job) step(k int, bad []*operror.Error) {
	d, step := j.by, &j.known.Plan.Steps[k]
	r := ByOp{Dev: d.Base, Pool: d.Pool, Seg: &j.seg, Mem: make([]*memory.Storage, len(j.Mem)), Bad: make([]*operror.Error, len(bad)),
		Fail: Failer(j.by.Owner, j.known, &j.seg, j.Lines)}
	defer func() { r.Forget(0) }()
	for id, st := range j.Mem { // operations may read an operand that the kernel does not: x == x
		if j.seg.Tensors[id].Def >= 0 {
			continue
		}
		if r.Bad[id] = bad[id]; bad[id] == nil {
			r.Mem[id] = st
		}
	}
	// Results that one step of a chain hands to the next may never be in memory. The inputs of the
	// chain stay in memory until the chain ends. If several steps each write a piece of a tensor,
	// the inputs of these steps stay in memory until all pieces are written.
	j.sources(&r, k, bad)
	uses := j.known.Plan.Uses()
	made := func(i int) bool { // an output that this step writes whole, or of which it writes the last piece
		return step.Kernel.Operands[i].Kind == codegen.Output && j.Mem[step.Operands[i].Tensor] != nil && uses.Write[step.Operands[i].Tensor] == k
	}
	for i, op := range step.Operands {
		if made(i) {
			for _, piece := range uses.Pieces[op.Tensor] {
				j.sources(&r, piece, bad)
			}
		}
	}
	data := make([][]byte, len(step.Operands))
	for i, op := range step.Operands {
		t := &j.seg.Tensors[op.Tensor]
		if !made(i) || r.Value(int32(op.Tensor)) != nil {
			continue
		}
		var err error
		if data[i], err = d.Pool.Fetch(t.DT, t.Shape, r.Mem[op.Tensor]); err != nil {
			r.Bad[op.Tensor] = r.Fail(t.Def, err)
		}
	}
	for i, op := range step.Operands {
		if !made(i) {
			continue
		}
		t := &j.seg.Tensors[op.Tensor]
		if bad[op.Tensor] = r.Bad[op.Tensor]; bad[op.Tensor] == nil && len(data[i]) > 0 {
			if err := d.Driver.Write(j.Mem[op.Tensor].Buf, t.DT, 0, data[i]); err != nil {
				bad[op.Tensor] = r.Fail(t.Def, err)
			}
		}
	}
}

// sources adds to r the inputs of step k that are in memory. In a chain it adds those of the
// steps before k, too.
func (j *Job) sources(r *ByOp, k int, bad []*operror.Error) {
	plan := j.known.Plan
	for c, _ := plan.ChainOf(k); c < k; c++ {
		j.operands(r, &plan.Steps[c], bad, plan.HandsOver)
	}
	j.operands(r, &plan.Steps[k], bad, func(int) bool { return false })
}

// operands adds to r the tensors that a step reads from memory, except those that not names.
func (j *Job) operands(r *ByOp, step *fusion.Step, bad []*operror.Error, not func(tensor int) bool) {
	for i, op := range step.Operands {
		if step.Kernel.Operands[i].Kind != codegen.Input || not(op.Tensor) {
			continue
		}
		if bad[op.Tensor] != nil {
			r.Bad[op.Tensor] = bad[op.Tensor]
		} else {
			r.Mem[op.Tensor] = j.Mem[op.Tensor]
		}
		for _, a := range j.known.Plan.Aliases {
			if a.Of == op.Tensor {
				r.Mem[a.Tensor], r.Bad[a.Tensor] = j.Mem[a.Tensor], bad[a.Of]
			}
		}
	}
}

// opError makes the error of a node whose run failed.
func opError(seg *segment.Segment, line string, node int32, cause error) *operror.Error {
	var already *operror.Error
	if errors.As(cause, &already) {
		return already
	}
	n := &seg.Nodes[node]
	e := &operror.Error{Op: n.Op.String(), Caller: line, Err: cause}
	for _, a := range n.Args[:n.NArgs] {
		if !a.Scalar {
			e.Shapes = append(e.Shapes, seg.Tensors[a.ID].Shape)
		}
	}
	if len(e.Shapes) == 0 {
		e.Shapes = []ir.Shape{n.Shape}
	}
	return e
}
