package device

import (
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Stats are a device's counters since it was opened: the engine's own, those of the cache on disk
// in Cache, and the driver's in Runtime.
type Stats struct {
	Ops          int64   // recorded
	Segments     int64   // run
	PlanHits     int64   // segments whose plan was known
	Explorations int64   // plans made
	Tunings      int64   // kernels whose choices were timed
	TuneNanos    int64   // time spent on tuning
	TuneTaken    int64   // nanoseconds of TuneNanos taken from a program that did not pause: at most a twentieth of its time
	Searches     int64   // better plans found by the background search; part of Explorations
	Plans        int64   // held now
	Layouts      int64   // times that a plan was laid out for sizes that it had not run with recently
	Kernels      int64   // launches requested by plans
	InPlace      int64   // outputs that reused an operand's buffer
	Recomputes   int64   // virtual tensors recomputed from their recipes
	Recordings   int64   // calls of a Recording's function by Run, because nothing recorded fitted
	Resizes      int64   // other sizes of marked axes for which a Recording was adapted
	Trials       int64   // calls of a Recording's function without values, to find out how it depends on sizes
	Replays      int64   // runs of a Recording as one list of launches, in memory reserved for it
	BoundRuns    int64   // runs of bound recordings
	BoundCalls   int64   // part of BoundRuns: those that ran as one function of machine code
	Aliases      int64   // results that are views of existing memory
	Fallbacks    int64   // plans or kernels replaced by a slower path after a fault
	Unbuilt      int64   // part of Fallbacks: plans that could not be built or bound, whose segments run op by op
	Evictions    int64   // plans dropped from the bounded store
	Collections  int64   // garbage collections forced for device memory
	PinnedBytes  int64   // held by recipes now
	LiveBytes    int64   // held by tensors now
	KernelNanos  int64   // time of launches, on a device with a profile
	PeakShare    float64 // share of KernelNanos that the launches would take at the nearer of the machine's peaks
	Cache        plancache.Stats
	Runtime      runtime.Stats
}
