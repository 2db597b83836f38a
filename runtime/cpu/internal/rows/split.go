package rows

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// splitJob is one phase of few rows, shared by threads in blocks of rows. A phase completes before
// the next one begins. The temporaries are shared by the whole launch.
type splitJob struct {
	x     *Job
	phase int
}

func (s *splitJob) Share(who int, begin, end int64) {
	x := s.x
	t := x.makeTile(who)
	if t == nil {
		return
	}
	for u := begin; u < end; { // all blocks of the share that are in one tile
		b := u % x.blocks
		to := min(x.blocks, b+end-u)
		t.place(u / x.blocks)
		t.pointPhase(s.phase, b, to)
		u += to - b
	}
	t.forget()
}

// runSplit is run for threads that share rows.
func (x *Job) runSplit() {
	temps := int64(0)
	for k := range x.Plan.Temps {
		temps += x.tempBytes(x.Outputs, k)
	}
	x.shared = x.host.Reserve(operands.Shared, temps+int64(x.Plan.most)*x.blocks*x.Outputs*partBytes+64)
	if x.shared == nil {
		x.failed.Store(true)
		return
	}
	x.partials = unsafe.Add(x.shared, temps)
	x.split.x = x
	for i := range x.Plan.Phases {
		level := x.Plan.Phases[i].Level
		if x.split.phase = i; level == codegen.Point {
			units := x.count * x.blocks
			x.pool.Split(int(x.Threads), units, units/(x.Threads*8)+1, &x.split)
		}
		if level == codegen.Row || len(x.Plan.Ops[i]) > 0 {
			x.finish(i)
		}
		if x.failed.Load() {
			return
		}
	}
}

// finish completes a phase after all its blocks, tile by tile.
func (x *Job) finish(i int) {
	t := x.makeTile(0)
	if t == nil {
		return
	}
	for u := range x.count {
		if t.place(u); x.Plan.Phases[i].Level == codegen.Row {
			t.rowPhase(i)
		} else {
			t.combine(x.Plan.Ops[i])
		}
	}
	t.forget()
}
