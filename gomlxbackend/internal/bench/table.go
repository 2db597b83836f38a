package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// row is a result as a line of a table: times in microseconds, how many times
// faster than the reference with its interval, and the first run.
func (r *result) row() string {
	x := paired.Ratio(r.times[0], r.times[1])
	return fmt.Sprintf("| %s | %s | %s | %.2f [%.2f %.2f] | %s |", r.name, micros(paired.Median(r.times[0])), micros(paired.Median(r.times[1])),
		x.Mid, x.Lo, x.Hi, r.first[1].Round(10*time.Microsecond))
}

func micros(seconds float64) string {
	us := seconds * 1e6
	if us < 100 {
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

// summary is what all cases come to, and how decomposed forms compare with fused
// ones.
func summary(w io.Writer, all []result) {
	logs, slower := 0.0, 0
	for _, r := range all {
		x := paired.Ratio(r.times[0], r.times[1])
		logs += math.Log(x.Mid)
		if x.Mid < 1 {
			slower++
		}
	}
	fmt.Fprintf(w, "\n%d cases, geometric mean %.2f times faster, %d slower\n", len(all), math.Exp(logs/float64(len(all))), slower)
	fmt.Fprintln(w, "\n| decomposed over fused | Millrace | reference |\n|---|---|---|")
	fused := map[string]*result{}
	for i := range all {
		if key, f := form(all[i].name); f == "Fused" {
			fused[key] = &all[i]
		}
	}
	for i := range all {
		key, f := form(all[i].name)
		if f != "Decomposed" || fused[key] == nil {
			continue
		}
		ours := paired.Ratio(all[i].times[1], fused[key].times[1])
		theirs := paired.Ratio(all[i].times[0], fused[key].times[0])
		fmt.Fprintf(w, "| %s | %.2f [%.2f %.2f] | %.2f |\n", key, ours.Mid, ours.Lo, ours.Hi, theirs.Mid)
	}
}
