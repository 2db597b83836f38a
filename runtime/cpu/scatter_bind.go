package cpu

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/scatter"
)

// scatterOf describes the scatter of a kernel, nil if it has none. The kernel is not lowered yet:
// lowering adds no operands to the computation of the indices.
func scatterOf(k *codegen.Kernel) *scatter.Kernel {
	at := k.Scatter()
	if at == ir.None {
		return nil
	}
	in := k.Body[at]
	return &scatter.Kernel{
		From: int(uint32(in.Imm)), To: k.Stores[0].Operand, DT: in.DT, Index: k.Body[in.Args[0]].DT,
		Indices: touched(codegen.Phases(k, codegen.PhaseOptions{}).Phases[0].Kernel, len(k.Operands)),
		Mode:    codegen.ModeOf(in), How: codegen.CombineOf(in),
	}
}

// rowReach returns the lowest and the highest element of such an operand; lo is above hi if there
// is none.
func rowReach(a *runtime.Access, kept []int64) (lo, hi int64) {
	if a.IndexSize == 0 {
		return 0, -1
	}
	if lo, hi = reach(a, kept); lo > hi {
		return lo, hi
	}
	if most := a.IndexStride * (a.IndexSize - 1); most < 0 {
		lo += most
	} else {
		hi += most
	}
	return lo, hi
}

// orderScatter chooses how a scatter is walked.
func (r *ready) orderScatter() {
	r.scatter = r.p.scatter.Order(r.l, r.threads)
	r.mode, r.tile = modeRows, r.scatter.Tile
	if r.scatter.Cols {
		r.mode = modeCols
	}
}

// scatterJob runs the scatters of an executor.
type scatterJob struct {
	scatter.Job
	args args
}

// scatter runs a launch with a scatter.
func (e *executor) scatter(r *ready) {
	x := &e.scatters
	r.writeArgs(&x.args)
	x.Launch = scatter.Launch{
		Kernel: r.p.scatter, Order: r.scatter, Args: x.args.Args, Threads: min(r.threads, int64(e.threads)), Values: r.plan().Ops[1][0].Load,
		Scratch: max(r.evaluator(0).scratch(), r.evaluator(1).scratch()), DType: &r.p.folds().DTypes[r.p.scatter.DT], Recorder: r.recorder(),
	}
	e.host.r = r
	if !x.Run(&e.host, e.pool) {
		e.failed.Store(true)
	}
	e.host.r = nil
	x.args.forget()
}
