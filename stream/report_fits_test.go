package stream

import "fmt"

// reportFits checks that the report of a device on which nothing failed has each launch
// that the counters know of: kernels' runs and those of plans.
func reportFits(d *Device) error {
	if d.Profile == nil {
		return nil
	}
	r := d.Report(Roofs{})
	n := r.KernelsLeft
	for i := range r.Kernels {
		n += r.Kernels[i].Runs
	}
	if want := d.Driver.Stats().Launches; n != want {
		return fmt.Errorf("the report has %d launches, the driver ran %d", n, want)
	}
	return nil
}
