//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

func init() { programs["figures"] = figures }

// TestFigures logs how long a barrier and sums take, and what an idle World costs. It fails for no
// figure.
func TestFigures(t *testing.T) {
	if os.Getenv("MILLRACE_LONG") == "" {
		t.Skip("it only measures: MILLRACE_LONG=1 runs it")
	}
	for name, j := range jobs(t) {
		for _, n := range []int{2, 3} {
			out, err := j.run(t, "figures", n)
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			for _, line := range regexp.MustCompile(`(?m)^figure: .*$`).FindAllString(out, -1) {
				t.Logf("%s, %d ranks: %s", name, n, line)
			}
		}
	}
}

func figures() error {
	ctx := context.Background()
	w, err := dist.Open(ctx, dist.Options{})
	if err != nil {
		return err
	}
	say := func(format string, args ...any) {
		if w.Rank() == 0 {
			os.Stdout.WriteString("\nfigure: " + fmt.Sprintf(format, args...) + "\n")
		}
	}
	// median is that of so many calls, after a few that do not count.
	median := func(calls int, f func() error) (time.Duration, error) {
		var all []time.Duration
		for i := range calls + 5 {
			start := time.Now()
			if err := f(); err != nil {
				return 0, err
			}
			if i >= 5 {
				all = append(all, time.Since(start))
			}
		}
		slices.Sort(all)
		return all[len(all)/2], nil
	}
	d, err := median(5000, func() error { return w.Barrier(ctx) })
	if err != nil {
		return err
	}
	say("a barrier takes %v", d)
	for _, bytes := range []int{4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20} {
		x := millrace.Ones(millrace.Float32, bytes/4)
		if err := x.Err(); err != nil {
			return err
		}
		d, err := median(50, func() error {
			r := w.AllReduce(x)
			defer r.Release()
			return r.Eval()
		})
		if err != nil {
			return err
		}
		say("a sum of %d KiB takes %v", bytes>>10, d)
		x.Release()
	}
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const idle = 5 * time.Second
	begun := used()
	time.Sleep(idle)
	say("an idle World takes %.2f %% of a core", 100*float64(used()-begun)/float64(idle))
	return w.Close()
}
