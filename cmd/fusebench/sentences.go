package main

import (
	"fmt"
	"slices"
)

// sentences summarise a report for people who see one for the first time. There is one sentence
// for each device, about the variant that fusing makes fastest.
func sentences(r *Report) (lines []string) {
	var devices []string
	for _, row := range r.Rows {
		if !slices.Contains(devices, row.Device) {
			devices = append(devices, row.Device)
		}
	}
	for _, d := range devices {
		if best := mostFused(r.Rows, d); best != nil {
			lines = append(lines, fmt.Sprintf("On %s, fusing makes %s %s times as fast: %s ms in %s, for %s ms one operation at a time%s.",
				d, best.Variant, short(best.SpeedupVsUnfused), short(best.MedianMS), kernelCount(best.Kernels),
				short(best.SpeedupVsUnfused*best.MedianMS), copyClause(*best)))
		}
	}
	return lines
}

// mostFused returns the fused row of a device that is ahead of unfused by the largest factor.
func mostFused(rows []Row, device string) (best *Row) {
	for i := range rows {
		r := &rows[i]
		if r.Error != "" || r.Device != device || r.Mode != fused || r.SpeedupVsUnfused.missing() {
			continue
		}
		if best == nil || r.SpeedupVsUnfused > best.SpeedupVsUnfused {
			best = r
		}
	}
	return best
}

func kernelCount(n float64) string {
	if n == 1 {
		return "one kernel"
	}
	return short(number(n)) + " kernels"
}

func copyClause(r Row) string {
	if r.CopyRatio.missing() {
		return ""
	}
	return fmt.Sprintf("; copying the same bytes takes %s ms", short(r.CopyMS))
}
