package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
)

// rowJob runs the launches with rows of an executor.
type rowJob struct {
	rows.Job
	args  args
	ahead []int64
	even  []bool
}

// walkRows runs a launch with rows.
func (e *executor) walkRows(r *ready) {
	x, plan := &e.rows, r.plan()
	r.writeArgs(&x.args)
	x.Launch = rows.Launch{
		Plan: plan.Plan, Folds: r.p.folds(), Operands: r.p.kernel.Operands, Args: x.args.Args, Kept: r.l.Kept, Outputs: r.outputs, Points: r.total,
		Cols: r.mode == modeCols, Tile: r.tile, Threads: min(r.threads, int64(e.threads)), Split: r.split, Transposed: r.transposed.ops, Look: -1,
		Recorder: r.recorder(),
	}
	for i := range plan.Phases {
		x.Scratch = max(x.Scratch, r.evaluator(i).scratch())
	}
	if !r.split {
		x.Look = r.lookPhase()
	}
	if x.Look >= 0 {
		x.ahead = x.ahead[:0]
		for i := range r.l.Args {
			x.ahead = append(x.ahead, int64(r.ahead(i)))
		}
		x.Ahead = x.ahead
	}
	if r.tails.at != nil {
		x.even = x.even[:0]
		for i := range plan.Phases {
			x.even = append(x.even, r.even(&plan.Phases[i]))
		}
		x.Even, x.Tails = x.even, unsafe.Slice((*int64)(r.tails.at), r.outputs)
	}
	e.host.r = r
	if !x.Run(&e.host, e.pool) {
		e.failed.Store(true)
	}
	e.host.r = nil
	x.args.forget()
}

// totalAt returns the element that a total's access refers to.
func totalAt(a *runtime.Access, l *runtime.Launch) int64 {
	var point [runtime.MaxRank]int64
	return codegen.Position(a, point[:l.Rank])
}
