package stream

import (
	"fmt"
	"strings"
)

// explainTuning prints what was timed for the launches of the sizes that the
// plan ran with last, and what they run by.
func (e *entry) explainTuning(b *strings.Builder) {
	geo := e.memo.last.Load()
	if geo == nil {
		return
	}
	t := geo.tuned.Load()
	if t == nil {
		return
	}
	for _, u := range t.units {
		u.explain(b, u.at)
	}
}

// explain prints a table of timings.
func (t *tuning) explain(b *strings.Builder, kernel int) {
	r := t.ranked.Load()
	if r == nil || r.table.Untimed() {
		why := "not timed so far"
		if err := t.unfit.Load(); err != nil {
			why = "not timed: " + (*err).Error()
		} else if r != nil {
			why = "not timed: " + r.table.Rows[0].Refused
		}
		fmt.Fprintf(b, "kernel %d has %d variants, %s\n", kernel, len(t.list), why)
		return
	}
	fmt.Fprintf(b, "kernel %d has %d variants and runs by %q:\n", kernel, len(r.list), r.taken().Name)
	for i, row := range r.table.Rows {
		switch {
		case row.Refused != "":
			fmt.Fprintf(b, "  %-24s not used: %s\n", row.Name, row.Refused)
		case len(row.Nanos) == 0:
			fmt.Fprintf(b, "  %-24s not timed\n", row.Name)
		default:
			ratio := r.table.Ratio(i)
			fmt.Fprintf(b, "  %-24s %10.4g ms, %.3f of the default's time (%.3f to %.3f), %d rounds\n",
				row.Name, r.table.Median(i)/1e6, ratio.Mid, ratio.Lo, ratio.Hi, len(row.Nanos))
		}
	}
}
