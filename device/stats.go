package device

import (
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Stats are a device's counters since it was opened: the engine's own, in Cache
// those of the cache on disk, and in Runtime the driver's.
type Stats struct {
	Ops          int64   // recorded
	Segments     int64   // run
	PlanHits     int64   // segments whose plan was known
	Explorations int64   // plans made
	Tunings      int64   // kernels whose choices were timed
	TuneNanos    int64   // that this took
	TuneTaken    int64   // of these, nanoseconds taken from a program that did not pause: at most a twentieth of its time
	Searches     int64   // of these, better ones made in the background
	Plans        int64   // held now
	Layouts      int64   // times that a plan was laid out for sizes which it had not run with lately
	Kernels      int64   // launches asked for by plans
	InPlace      int64   // outputs that reused an operand's buffer
	Recomputes   int64   // virtual tensors made again from their recipe
	Recordings   int64   // calls of a Recording's function by Run, as nothing that was recorded fits
	Resizes      int64   // other sizes of marked axes for which what a Recording had was made over
	Trials       int64   // calls of a Recording's function, without values, to find out how
	Replays      int64   // runs of a Recording as one list of launches, in memory that is kept for it
	BoundRuns    int64   // runs of bound recordings
	BoundCalls   int64   // of these, as one function of machine code
	Aliases      int64   // results that are views of other memory
	Fallbacks    int64   // plans or kernels replaced by a slower path after a fault
	Unbuilt      int64   // of these, plans that could not be built or bound: their segments run op by op
	Evictions    int64   // plans dropped from the bounded store
	Collections  int64   // garbage collections forced for device memory
	PinnedBytes  int64   // held by recipes now
	LiveBytes    int64   // held by tensors now
	KernelNanos  int64   // that launches took, where the device has a profile
	RoofShare    float64 // of these, what they would have taken at the nearer of the machine's roofs
	Cache        plancache.Stats
	Runtime      runtime.Stats
}
