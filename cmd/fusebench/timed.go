package main

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testhook"
)

// timed is one variant in one mode on one device while it is measured.
type timed struct {
	bench      *bench
	problem    *problem
	contestant *contestant
	row        Row
	firstWork  time.Duration // first run, without compiling

	hot     counts       // sums over the timed runs
	hotRuns int64        // how many runs these are
	pairs   [][2]float64 // of the tuned mode: seconds, and those by the default variants
}

// counts are the counters that fusebench reports.
type counts struct {
	launches, tier0, read, written int64
	explorations, compiles, allocs int64
}

func countsOf(s millrace.Stats) counts {
	return counts{
		launches: s.Runtime.Launches, tier0: s.Runtime.Tier0,
		read: s.Runtime.BytesRead, written: s.Runtime.BytesWritten,
		explorations: s.Explorations, compiles: s.Runtime.Compiles,
		allocs: s.Runtime.Allocs - s.Runtime.PoolHits,
	}
}

func (c counts) plus(after, before counts) counts {
	c.launches += after.launches - before.launches
	c.tier0 += after.tier0 - before.tier0
	c.read += after.read - before.read
	c.written += after.written - before.written
	c.explorations += after.explorations - before.explorations
	c.compiles += after.compiles - before.compiles
	c.allocs += after.allocs - before.allocs
	return c
}

// newTimed makes the first run, and keeps how long it took and how far the result is from the
// oracle. If the run fails, the row has the reason.
func newTimed(c *config, s *Suite, device, variant string, b *bench, p *problem) *timed {
	t := &timed{bench: b, problem: p, row: c.newRow(s.name, device, variant, b.mode)}
	t.row.Shape, t.row.IOBytes, t.row.IntermediateBytes = p.shape, int64(p.bytes(c.dtype)), int64(p.intermediate*c.dtype.size())
	t.contestant = &contestant{name: fmt.Sprintf("%s %s", variant, b.mode)}
	xs, err := b.inputs(p)
	if err == nil {
		err = t.first(xs)
	}
	if err != nil {
		t.row.Error = err.Error()
		return t
	}
	t.contestant.run = func() (time.Duration, error) { return t.hotRun(xs) }
	if b.mode == tuned {
		t.contestant.run = func() (time.Duration, error) { return t.pair(xs) }
	}
	return t
}

// pair times a program in the tuned mode and with the default variants, on the same device,
// because the same code may take another time in other memory. Each is timed in the second of two
// runs: the first one finds threads asleep and caches full of other data. Each of the two goes
// first in every other pair.
func (t *timed) pair(xs []*millrace.Tensor) (time.Duration, error) {
	var took [2]time.Duration // tuned, by default
	first := len(t.pairs) % 2
	for _, which := range []int{first, 1 - first} {
		for range 2 {
			var err error
			if took[which], err = t.forced(which == 1, xs); err != nil {
				return 0, err
			}
		}
	}
	if t.contestant.counting {
		t.pairs = append(t.pairs, [2]float64{took[0].Seconds(), took[1].Seconds()})
	}
	return took[0], nil
}

// forced is hotRun, with the default variants if byDefault is set. Runs with default variants are
// not counted.
func (t *timed) forced(byDefault bool, xs []*millrace.Tensor) (time.Duration, error) {
	if !byDefault {
		return t.hotRun(xs)
	}
	counting := t.contestant.counting
	t.contestant.counting = false
	testhook.SetChoice(0)
	defer func() {
		testhook.SetChoice(-1)
		t.contestant.counting = counting
	}()
	return t.hotRun(xs)
}

func (t *timed) first(xs []*millrace.Tensor) error {
	compiled := t.bench.dev.Stats().Runtime.CompileNanos
	start := time.Now()
	return t.bench.dev.Scope(func(sc *millrace.Scope) error {
		in := make([]*millrace.Tensor, len(xs))
		for i, x := range xs {
			in[i] = x.To(sc)
		}
		y := t.problem.program(in)
		if err := y.Eval(); err != nil {
			return err
		}
		took := time.Since(start)
		t.row.ColdMS = number(took.Seconds() * 1e3)
		t.firstWork = took - time.Duration(t.bench.dev.Stats().Runtime.CompileNanos-compiled)
		off, err := t.problem.oracle.maxError(y)
		t.row.MaxAbsErr = number(off)
		return err
	})
}

// hotRun is once, and adds the counters.
func (t *timed) hotRun(xs []*millrace.Tensor) (time.Duration, error) {
	t.bench.dev.ResetPeak()
	before := t.bench.dev.Stats()
	took, err := t.bench.once(t.problem.program, xs)
	if t.contestant.counting {
		after := t.bench.dev.Stats()
		t.hotRuns++
		t.hot = t.hot.plus(countsOf(after), countsOf(before))
		// Inputs of other variants are live too, but do not count for this one.
		grown := after.Runtime.PeakBytes - before.Runtime.AllocBytes
		t.row.PeakBytes = max(t.row.PeakBytes, int64(t.problem.inputBytes())+grown)
	}
	return took, err
}

// finish fills the row from the timed runs.
func (t *timed) finish(c *config, bs *bases) {
	r, n := &t.row, t.hotRuns
	if n == 0 {
		return
	}
	r.count(t.bench.dev.Name(), t.hot, n)
	r.time(t.contestant, bs.copied(c, t.problem))
	r.contract(t.contestant, t.problem.flops, bs.blas(t.problem))
	r.read(t.contestant, bs.read(t.problem))
	if bs.peaks != nil {
		bs.peaks.share(r, c, t.problem, t.contestant)
	}
}

// tierName returns the tier that the timed runs used.
func tierName(device string, hot counts) string {
	switch {
	case device != "cpu":
		return "gpu"
	case hot.tier0 == 0:
		return "1"
	case hot.tier0 == hot.launches:
		return "0"
	}
	return "mixed"
}
