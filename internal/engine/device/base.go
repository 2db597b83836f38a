package device

import (
	"errors"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Base is an open device as all its parts see it: the driver and its capabilities, the options, the
// user's hooks, the programs and the counters.
type Base struct {
	Opts   Options
	Number uint64 // in the process, from 1
	Driver runtime.Device
	Caps   *runtime.Caps
	Closed atomic.Bool
	Counts Counters

	// Profile records what runs, for a report; nil if the options do not request one.
	Profile *profile.Profile
	// AfterWait is called after the program has waited for running work; may be nil. The caller may
	// hold the lock of another stream.
	AfterWait func()

	progs     programs
	hookPanic atomic.Pointer[any]
}

// Counters are the counters of all parts; Stats exports them.
type Counters struct {
	Ops, Segments, Hits, Kernels                     atomic.Int64
	Explored, Searches, Tunings                      atomic.Int64
	InPlace, Recomputes, Aliases, Fallbacks, Unbuilt atomic.Int64
	Recordings, Resizes, Trials                      atomic.Int64
	Layouts, Replays                                 atomic.Int64
	BoundRuns, BoundCalls                            atomic.Int64
}

// Bytes is the size of a dense tensor on the device.
func (d *Base) Bytes(dt ir.DType, shape ir.Shape) int64 {
	return int64(shape.Elems()) * int64(d.Caps.ElemSize[dt])
}

// Mode is the amount of search for plans.
func (d *Base) Mode() fusion.Mode { return fusionMode[d.Opts.Fusion] }

var fusionMode = [...]fusion.Mode{FusionOn: fusion.Best, FusionGreedy: fusion.Greedy, FusionOff: fusion.Unfused}

// Gone reports whether the error means that nothing can run on the device any more.
func Gone(err error) bool {
	return errors.Is(err, runtime.ErrDeviceLost) || errors.Is(err, runtime.ErrClosed)
}
