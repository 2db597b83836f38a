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
	for i := range t.units {
		u := &t.units[i]
		what := fmt.Sprintf("kernel %d", u.first)
		if u.n > 1 {
			what = fmt.Sprintf("kernels %d to %d", u.first, u.first+u.n-1)
		}
		u.explain(b, what)
	}
}

// explain prints a table of timings.
func (t *tuning) explain(b *strings.Builder, what string) {
	r := t.ranked.Load()
	if r == nil {
		why := "not timed so far"
		if err := t.unfit.Load(); err != nil {
			why = "not timed: " + (*err).Error()
		}
		fmt.Fprintf(b, "%s has %d variants, %s\n", what, len(t.list), why)
		return
	}
	fmt.Fprintf(b, "%s has %d variants and runs by %q:\n", what, len(r.list), r.taken().Name)
	for i, row := range r.table.Rows {
		switch {
		case row.Lacking:
			fmt.Fprintf(b, "  %-24s not tried: %s\n", row.Name, row.Refused)
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
