package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
)

// splitJob is one phase of few rows, shared by threads in blocks of rows. A phase completes before
// the next one begins. The temporaries are shared by the whole launch.
type splitJob struct {
	x     *rowJob
	phase int
}

func (s *splitJob) share(who int, begin, end int64) {
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
func (x *rowJob) runSplit() {
	temps := int64(0)
	for k := range x.plan.Temps {
		temps += x.tempBytes(x.outputs, k)
	}
	x.shared = x.e.memory[x.e.threads].reserve(temps + int64(x.plan.reduces)*x.blocks*x.outputs*partBytes + 64)
	if x.shared == nil {
		x.e.failed.Store(true)
		return
	}
	x.partials = unsafe.Add(x.shared, temps)
	x.split.x = x
	for i := range x.plan.Phases {
		level := x.plan.Phases[i].Level
		if x.split.phase = i; level == codegen.Point {
			units := x.tiles * x.blocks
			x.e.pool.split(int(x.r.threads), units, units/(x.r.threads*8)+1, &x.split)
		}
		if level == codegen.Row || len(x.plan.rowOps[i]) > 0 {
			x.finish(i)
		}
		if x.e.failed.Load() {
			return
		}
	}
}

// finish completes a phase after all its blocks, tile by tile.
func (x *rowJob) finish(i int) {
	t := x.makeTile(0)
	if t == nil {
		return
	}
	for u := range x.tiles {
		if t.place(u); x.plan.Phases[i].Level == codegen.Row {
			t.rowPhase(i)
		} else {
			t.combine(x.plan.rowOps[i])
		}
	}
	t.forget()
}
