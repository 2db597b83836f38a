package stream

import (
	"io"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/shelf"
)

// process is what all devices have in common. Devices that nobody holds any more
// are not kept by it.
var process struct {
	sync.Mutex
	bundles []*plancache.Bundle // those given last first
	devices []weak.Pointer[Device]
}

// UsePlans has all devices use a bundle, those that are open and those to come.
// The bytes are kept and must not be changed. The error says why nothing of it,
// or not all, can be used by this program; what can be is used all the same.
func UsePlans(data []byte) error {
	b, err := shelf.OpenBundle(data)
	if b == nil {
		return err
	}
	var tell []func()
	process.Lock()
	known := slices.ContainsFunc(process.bundles, func(have *plancache.Bundle) bool { return have.ID() == b.ID() })
	if !known {
		process.bundles = slices.Insert(process.bundles, 0, b)
		for _, d := range openDevices() {
			tell = append(tell, d.shelf.Attach(b))
		}
	}
	process.Unlock()
	for _, f := range tell {
		f()
	}
	return err
}

// ForgetBundles takes back what UsePlans did, for tests. Plans that were found in
// bundles stay known to the devices that found them.
func ForgetBundles() {
	process.Lock()
	defer process.Unlock()
	process.bundles = nil
	for _, d := range openDevices() {
		d.shelf.Forget()
	}
}

// openDevices are those that were not closed. The process's lock is held.
func openDevices() []*Device {
	var open []*Device
	process.devices = slices.DeleteFunc(process.devices, func(p weak.Pointer[Device]) bool {
		d := p.Value()
		if d != nil && !d.Closed.Load() {
			open = append(open, d)
			return false
		}
		return true
	})
	return open
}

// Devices are those that are open, in the order of their opening.
func Devices() []*Device {
	process.Lock()
	defer process.Unlock()
	return openDevices()
}

// useBundles makes a new device known, and has it use the bundles that were given
// before.
func (d *Device) useBundles() {
	var tell []func()
	process.Lock()
	openDevices()
	process.devices = append(process.devices, weak.Make(d))
	for _, b := range slices.Backward(process.bundles) {
		tell = append(tell, d.shelf.Attach(b))
	}
	process.Unlock()
	for _, f := range tell {
		f()
	}
}

// Unfit says why entries of a bundle, of this kind and made for this scope, are of
// no use to the device; "" where they are, and where they are for another driver.
func (d *Device) Unfit(kind, scope string) string { return d.shelf.Unfit(kind, scope) }

// ForeignPlans says which entries of the bundles in use this device cannot use
// although they were made for its driver, and why; nil where there are none.
func (d *Device) ForeignPlans() error { return d.shelf.ForeignPlans() }

// ExportPlans writes a bundle of plans and tunings. It waits for searches for
// better plans, so that those are in it.
func ExportPlans(w io.Writer, f plans.PlanFilter) error {
	process.Lock()
	devices := openDevices()
	process.Unlock()
	return exportOf(w, f, devices)
}

func exportOf(w io.Writer, f plans.PlanFilter, devices []*Device) error {
	from := make([]plans.Exporting, len(devices))
	for i, d := range devices {
		from[i] = plans.Exporting{Store: &d.plans, Tune: &d.tune}
	}
	return plans.ExportPlans(w, f, from)
}
