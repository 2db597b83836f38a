package stream

import "fmt"

// reportFits checks that the report of a device has each launch that the driver knows
// of. Where runs failed, those are not in it.
func reportFits(d *Device) error {
	if d.Profile == nil {
		return nil
	}
	r := d.Report(Roofs{})
	n := r.KernelsLeft
	for i := range r.Kernels {
		n += r.Kernels[i].Runs
	}
	if want := d.Driver.Stats().Launches; n > want || n < want && d.Counts.Fallbacks.Load() == 0 {
		return fmt.Errorf("the report has %d launches, the driver ran %d", n, want)
	}
	return nil
}
