package stream

import "fmt"

// reportFits checks that the report of a device has each launch of the plans, and few others:
// copies, also for host ops, and ops that ran one by one. It skips devices with failed runs, whose reports lack
// them.
func reportFits(d *Device, hostOps int) error {
	if d.Profile == nil || d.Counts.Fallbacks.Load() > 0 {
		return nil
	}
	r := d.Report()
	n := r.RunsLeft
	for i := range r.Kernels {
		n += r.Kernels[i].Runs
	}
	if want := d.Counts.Kernels.Load(); n < want || n > 4*want+16+4*int64(hostOps) {
		return fmt.Errorf("the report has %d launches, plans asked for %d", n, want)
	}
	return nil
}
