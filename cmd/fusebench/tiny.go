package main

import (
	"cmp"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/paired"
)

// tinyVariants are two graphs of scalars, and saving and loading files of seven scalars.
var tinyVariants = list{"tiny", "small", "save", "load"}

// The ways to run a graph: op by op, as a Recording, bound, and bound in loops of RunN. The mode
// of files is eager. A plain Go function always runs too.
const (
	eager    = "eager"
	recorded = "recorded"
	bound    = "bound"
	looped   = "looped"
	plain    = "go"
)

var tinyHows = list{eager, recorded, bound, looped}

// loopLength is the number of runs in a loop of the mode looped.
const loopLength = 1000

func setupTiny() ([]cli.Flag, action) {
	c := &config{dtype: dtype{millrace.Float64}, modes: list{fused}, variants: tinyVariants}
	how := tinyHows
	flags := slices.Concat(c.targetFlags(), c.timingFlags(), []cli.Flag{
		&cli.GenericFlag{Name: "variants", Value: &c.variants, Usage: "`graphs` to time forward and backward, and files: some of " + strings.Join(tinyVariants, ", ")},
		&cli.GenericFlag{Name: "how", Value: &how, Usage: "`ways` to run a graph: some of " + strings.Join(tinyHows, ", ")},
	})
	flags = slices.DeleteFunc(flags, func(f cli.Flag) bool { return slices.Contains([]string{"modes", "dtype", "device"}, f.Names()[0]) })
	return flags, func(io streams, args []string) error {
		if err := c.checkTiming(args); err != nil {
			return err
		}
		if err := among("-variants", c.variants, tinyVariants); err != nil {
			return err
		}
		if err := among("-how", how, tinyHows); err != nil {
			return err
		}
		return timeTiny(c, how, io)
	}
}

// timeTiny times all variants on the CPU. On other devices a single launch takes longer than any
// of them.
func timeTiny(c *config, how list, io streams) error {
	if err := c.usePlans(); err != nil {
		return err
	}
	report, err := c.report(io, len(c.variants), func(i int, share time.Duration, show *progress) ([]Row, error) {
		return tinyRows(c, c.variants[i], how, share, show)
	})
	return cmp.Or(err, report.failed())
}

// scalarRun is one way to run a graph, to save or to load, while it is timed.
type scalarRun struct {
	once       func() error
	many       int // runs per call of once
	dev        *millrace.Device
	contestant *contestant
	row        Row
	repeats    int // of a sample
	ran        int64
	hot        counts
	bound      [2]int64 // runs and calls
}

func tinyRows(c *config, variant string, how list, budget time.Duration, show *progress) ([]Row, error) {
	start := time.Now()
	b, err := openBench(c, "cpu", fused)
	if err != nil {
		return nil, err
	}
	defer b.close()
	var all []*scalarRun
	if g, is := graphs[variant]; is {
		runs, closeRuns, err := g.ways(b.dev, how)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variant, err)
		}
		defer closeRuns()
		all = runs
	} else {
		runs, closeRuns, err := fileRuns(b.dev, variant)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variant, err)
		}
		defer closeRuns()
		all = runs
	}
	var cs []*contestant
	for _, r := range all {
		r.repeats, r.many = 1, max(r.many, 1)
		mode := r.row.Mode
		r.row = c.newRow("tiny", "cpu", variant, mode)
		r.contestant = &contestant{name: variant + " " + mode, base: mode == plain, run: r.sample}
		cs = append(cs, r.contestant)
	}
	if err := warm(c.warmup, start.Add(budget/2), cs, []*bench{b}, func(k *contestant) { show.say("%s, warm-up", k.name) }); err != nil {
		return nil, err
	}
	interleave(time.Now, budget-time.Since(start), c.runs, cs, func(round int, k *contestant) {
		show.part(round, c.runs, "%s, run %d of %d", k.name, round+1, c.runs)
	})
	var rows []Row
	for _, r := range all {
		r.finish(all[0])
		rows = append(rows, r.row)
	}
	return rows, nil
}

// sample runs it for about batchTime, and returns the time of a run.
func (r *scalarRun) sample() (time.Duration, error) {
	for {
		before := r.stats()
		start := time.Now()
		for range r.repeats {
			if err := r.once(); err != nil {
				return 0, err
			}
		}
		took := time.Since(start)
		if took < batchTime && r.repeats < 1<<24 {
			r.repeats *= 2
			continue
		}
		n := r.repeats * r.many
		if r.contestant.counting {
			after := r.stats()
			r.hot = r.hot.plus(countsOf(after), countsOf(before))
			r.bound[0] += after.BoundRuns - before.BoundRuns
			r.bound[1] += after.BoundCalls - before.BoundCalls
			r.ran += int64(n)
		}
		// In picoseconds: a Duration is too coarse for a run of 2 ns. See finish.
		return took * 1000 / time.Duration(n), nil
	}
}

func (r *scalarRun) stats() millrace.Stats {
	if r.dev == nil {
		return millrace.Stats{}
	}
	return r.dev.Stats()
}

func (r *scalarRun) finish(base *scalarRun) {
	row, k := &r.row, r.contestant
	if k.err != nil {
		row.Error = k.err.Error()
		return
	}
	own, others := pairs(k, base.contestant)
	f := &TinyFigures{Allocs: number(r.allocs()), Calls: absent}
	e := paired.Ratio(own, others)
	f.VsGo, f.VsGoLo, f.VsGoHi = number(e.Mid), number(e.Lo), number(e.Hi)
	beyond := make([]float64, len(own))
	for i := range own {
		beyond[i] = (own[i] - 1.5*others[i]) * 1e6 // picoseconds become ns
	}
	f.BeyondNS = number(paired.Median(beyond))
	f.NS = number(paired.Median(k.times) * 1e6)
	if r.bound[0] > 0 {
		f.Calls = number(float64(r.bound[1]) / float64(r.bound[0]))
	}
	row.Runs, row.Tiny = len(k.times), f
	for _, t := range k.times {
		row.seconds = append(row.seconds, t/1000)
	}
	row.MedianMS, row.MinMS = number(paired.Median(row.seconds)*1e3), number(paired.Minimum(row.seconds)*1e3)
	if r.dev != nil && r.ran > 0 {
		row.count("cpu", r.hot, r.ran)
	}
}

// allocs returns the Go heap allocations of a run. It takes the least of several counts, because
// the process also allocates in the background.
func (r *scalarRun) allocs() float64 {
	const n = 200
	least := math.Inf(1)
	for range 5 {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		for range n {
			if err := r.once(); err != nil {
				return float64(absent)
			}
		}
		goruntime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/float64(n*r.many))
	}
	return least
}
