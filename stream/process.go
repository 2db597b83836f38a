package stream

import (
	"io"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/plancache/lookup"
)

// process has the state that all devices share. It does not keep unreachable devices alive.
var process struct {
	sync.Mutex
	bundles []*plancache.Bundle // the newest one first
	devices []weak.Pointer[Device]
}

// UsePlans makes all devices use a bundle, both open ones and later ones. It keeps data, which
// must not be changed. The error tells why this program cannot use all or part of the bundle; the
// other part is used nevertheless.
func UsePlans(data []byte) error {
	b, err := lookup.OpenBundle(data)
	if b == nil {
		return err
	}
	var tell []func()
	process.Lock()
	known := slices.ContainsFunc(process.bundles, func(have *plancache.Bundle) bool { return have.ID() == b.ID() })
	if !known {
		process.bundles = slices.Insert(process.bundles, 0, b)
		for _, d := range openDevices() {
			tell = append(tell, d.finder.Attach(b))
		}
	}
	process.Unlock()
	for _, f := range tell {
		f()
	}
	return err
}

// ForgetBundles undoes UsePlans, for tests. A device keeps the plans that it found in a bundle.
func ForgetBundles() {
	process.Lock()
	defer process.Unlock()
	process.bundles = nil
	for _, d := range openDevices() {
		d.finder.Forget()
	}
}

// openDevices returns the devices that were not closed. The process's lock is held.
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

// Devices returns the open devices in the order in which they were opened.
func Devices() []*Device {
	process.Lock()
	defer process.Unlock()
	return openDevices()
}

// useBundles registers a new device and makes it use the bundles of earlier UsePlans calls.
func (d *Device) useBundles() {
	var tell []func()
	process.Lock()
	openDevices()
	process.devices = append(process.devices, weak.Make(d))
	for _, b := range slices.Backward(process.bundles) {
		tell = append(tell, d.finder.Attach(b))
	}
	process.Unlock()
	for _, f := range tell {
		f()
	}
}

// Unfit returns the reason why the device cannot use bundle entries of this kind and scope. It is
// "" if the device can use them, or if they are for another driver.
func (d *Device) Unfit(kind, scope string) string { return d.finder.Unfit(kind, scope) }

// ForeignPlans returns an error that lists the entries of bundles in use that were made for the
// device's driver but that the device cannot use, with the reasons. It is nil if there are none.
func (d *Device) ForeignPlans() error { return d.finder.ForeignPlans() }

// ExportPlans writes a bundle of plans and tunings. It first waits for running searches, so the
// bundle has the better plans that they find.
func ExportPlans(w io.Writer, f planstore.PlanFilter) error {
	process.Lock()
	devices := openDevices()
	process.Unlock()
	return exportOf(w, f, devices)
}

func exportOf(w io.Writer, f planstore.PlanFilter, devices []*Device) error {
	from := make([]planstore.Exporting, len(devices))
	for i, d := range devices {
		from[i] = planstore.Exporting{Store: &d.plans, Tune: &d.tune}
	}
	return planstore.ExportPlans(w, f, from)
}
