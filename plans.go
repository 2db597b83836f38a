package millrace

import (
	"io"

	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/stream"
)

// PlanFilter says what [ExportPlans] writes. The zero value is for all that the
// process used so far, on the devices that are open. The fields:
//
//	Device  a driver's name, such as "cpu": what was made for it only
//	Cache   a cache directory: what other processes left there is written, too
//	Since   a time: of the directory, only what was used since; it knows that to the hour
type PlanFilter = plans.PlanFilter

// ExportPlans writes a bundle of what the process found out about its code: the
// plans of the segments that it ran, whether they were made, read from the cache
// or came from another bundle, and how fast the choices of its kernels are. A
// program that is given the bundle by [UsePlans] explores nothing that is in it.
//
// Call it at the end of a run that does what the program's users will do, before
// the devices are closed. It waits for searches for better plans; background
// tuning is waited for by [Device.Wait]. Only plans of the fusion mode that a
// device was opened with are written, and of the segments that it ran last, up to
// 4096. The same plans give the same bytes. Where there is nothing to write the
// error is ErrNoPlans.
//
// Which kernels ran on the CPU, and how their operands lay, is in it too, for
// fusebench plans gen, which makes code of them. A kernel is noted when it runs:
// where the best plan was found in the background the work must be run once more,
// after [Device.Wait], or the device opened with Explore set to ExploreWait.
//
// A plan serves all scalars and all sizes, a batch of one included. A run that is
// recorded with a size of 1, though, gives plans for that size: larger ones have
// others.
//
// A bundle is data and holds no code, and of the program's data only what
// [Tensor.Explain] shows: the operations of each segment with the sizes and scalars
// that it was explored on, for people. It is of use to devices of the same driver
// in programs with the same version of plans: those for the CPU are the same on
// all CPUs, those for a GPU on adapters with the same limits or higher ones.
func ExportPlans(w io.Writer, f PlanFilter) error {
	if w == nil {
		return errNilWriter
	}
	return stream.ExportPlans(w, f)
}

// UsePlans has all devices of the process use a bundle, whether they are open
// already or opened later, with a cache or without one. The bytes are kept and
// must not change any more: pass what go:embed holds. Bundles add up, the newest
// is asked first, and all of them before the cache on disk. Nothing is read before
// a segment asks for it.
//
// It never breaks a program: the error says that this is no bundle, or why parts
// of it are of no use to any device, such as plans of another version, and what
// can be used is used all the same. What a particular device cannot use is
// counted in Stats().Cache.Foreign; [Device.ForeignPlans] has the reasons. A
// bundle that was tampered with can make a program slow; it cannot change what is
// computed.
func UsePlans(bundle []byte) error { return stream.UsePlans(bundle) }

// ForeignPlans says which entries of the bundles in use were made for a device
// of this driver and yet are of no use to this one, and why: another version,
// another adapter, another fusion mode. It is nil where there are none.
func (d *Device) ForeignPlans() error {
	if !d.made() {
		return errNilDevice
	}
	return d.d.ForeignPlans()
}
