package millrace

import (
	"io"

	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/stream"
)

// PlanFilter says what [ExportPlans] writes. The zero value means all that the process used so
// far, on the devices that are open. The fields:
//
//	Device  a driver's name, such as "cpu": write only what was made for it
//	Cache   a cache directory: also write what other processes left there
//	Since   a time: from the directory, write only what was used since, accurate to the hour
type PlanFilter = planstore.PlanFilter

// ExportPlans writes a bundle of what the process learned about its code: the plans of the
// segments that it ran, and how fast the ways to run its kernels are. A plan is written whether
// the process made it, read it from the cache or got it from another bundle. A program that
// passes the bundle to [UsePlans] does not explore the segments that are in it.
//
// Call it before the devices are closed, at the end of a run that does the same work as the
// program's users. It waits for searches for better plans; [Device.Wait] waits for background
// tuning. It writes only plans of the fusion mode that a device was opened with, for the segments
// that ran last, up to 4096. The same plans give the same bytes. If there is nothing to write,
// the error is ErrNoPlans.
//
// The bundle also has the texts of the shaders that ran on GPUs. If the best plan was found in the
// background, its shaders have not run yet: run the work again after [Device.Wait], or open the
// device with Explore set to ExploreWait.
//
// A plan serves all scalars and all sizes, also a batch of one. But a run that is recorded with a
// size of 1 gives plans for that size only; larger sizes have other plans.
//
// A bundle is data and holds no code. Of the program's data it holds only what [Tensor.Explain]
// shows: the operations of each segment with the sizes and scalars that it was explored with, for
// people. It serves devices of the same driver, in programs with the same version of plans. Plans
// for the CPU are the same on all CPUs; plans for a GPU serve adapters with the same limits or
// higher ones.
func ExportPlans(w io.Writer, f PlanFilter) error {
	if w == nil {
		return errNilWriter
	}
	return stream.ExportPlans(w, f)
}

// UsePlans makes all devices of the process use a bundle, with or without a cache, whether they
// are open already or opened later. The bytes are kept and must not change: pass bytes that
// go:embed holds. Several bundles add up. A device looks in the newest bundle first, and in all
// bundles before the cache on disk. It reads an entry only when a segment needs it.
//
// A bundle never breaks a program. The error says that the bytes are no bundle, or why parts of
// it serve no device, such as plans of another version; the other parts are used. Entries that a
// particular device cannot use are counted in Stats().Cache.Foreign, and [Device.ForeignPlans]
// has the reasons. A bundle that was tampered with can make a program slow, but cannot change its
// results.
func UsePlans(bundle []byte) error { return stream.UsePlans(bundle) }

// ForeignPlans says which entries of the bundles were made for a device of this driver but cannot
// be used by this one, and why: another version, another adapter, another fusion mode. It is nil
// if there are none.
func (d *Device) ForeignPlans() error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.ForeignPlans()
}
