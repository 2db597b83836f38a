package cpu

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// counters are the device's counters, from which Stats is made.
type counters struct {
	launches, read, written  atomic.Int64
	tier0, hidden            atomic.Int64
	tier0Points              atomic.Int64
	grouped, prepared        atomic.Int64
	fallbacks                atomic.Int64
	compiles, fails, dropped atomic.Int64
	compiled                 atomic.Int64 // nanoseconds of compiling
	native, nativeRefused    atomic.Int64 // variants; refused phases
}

// account counts a launch.
func (d *device) account(r *ready) {
	read, written := codegen.Traffic(r.p.kernel, r.l, &d.caps.ElemSize)
	d.count.launches.Add(1)
	d.count.read.Add(read)
	d.count.written.Add(written)
}

// Stats returns the counters since the device was opened.
func (d *device) Stats() runtime.Stats {
	c := &d.count
	s := runtime.Stats{
		Launches:     c.launches.Load(),
		BytesRead:    c.read.Load(),
		BytesWritten: c.written.Load(),
		Compiles:     c.compiles.Load(),
		CompileFails: c.fails.Load(),
		Dropped:      c.dropped.Load(),
		Fallbacks:    c.fallbacks.Load() + d.mem.Refused(),
		Tier0:        c.tier0.Load(),
		Tier0Points:  c.tier0Points.Load(),
		Hidden:       c.hidden.Load(),
		Grouped:      c.grouped.Load(),
		Prepared:     c.prepared.Load(),
		CompileNanos: c.compiled.Load(),

		NativeKernels: c.native.Load(),
		NativeRefused: c.nativeRefused.Load() + jit.Refused.Load(),
	}
	_, s.NativeBytes = machine.Live()
	d.mem.Stats(&s)
	return s
}
