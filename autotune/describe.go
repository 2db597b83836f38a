package autotune

import (
	"fmt"
	"strings"
)

// Describe prints the timings of a plan's launches at some sizes, and their present choices.
func (t *Tuned) Describe(b *strings.Builder) {
	if t == nil {
		return
	}
	for _, u := range t.units {
		u.describe(b, u.at)
	}
}

// describe prints a table of timings.
func (t *Tuning) describe(b *strings.Builder, kernel int) {
	r := t.Ranked.Load()
	if r == nil || r.Table.Untimed() {
		why := "not timed so far"
		if err := t.unfit.Load(); err != nil {
			why = "not timed: " + (*err).Error()
		} else if r != nil {
			why = "not timed: " + r.Table.Rows[0].Refused
		}
		fmt.Fprintf(b, "kernel %d can be run in %d ways, %s\n", kernel, len(t.list), why)
		return
	}
	fmt.Fprintf(b, "kernel %d can be run in %d ways and runs by %q:\n", kernel, len(r.list), r.taken().Name)
	for i, row := range r.Table.Rows {
		switch {
		case row.Refused != "":
			fmt.Fprintf(b, "  %-24s not used: %s\n", row.Name, row.Refused)
		case len(row.Nanos) == 0:
			fmt.Fprintf(b, "  %-24s not timed\n", row.Name)
		default:
			ratio := r.Table.Ratio(i)
			fmt.Fprintf(b, "  %-24s %10.4g ms, %.3f of the default's time (%.3f to %.3f), %d rounds\n",
				row.Name, r.Table.Median(i)/1e6, ratio.Mid, ratio.Lo, ratio.Hi, len(row.Nanos))
		}
	}
}
