package main

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace"
)

// timed is one variant in one mode on one device while it is measured.
type timed struct {
	bench      *bench
	contestant *contestant
	row        Row

	counting bool   // set when warm-up is over
	hot      counts // sums over the timed runs
}

// counts are the counters fusebench reports.
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

// newTimed makes the first run, keeps how long it took and how far the result
// is from the oracle. Where that fails the row says why.
func newTimed(c *config, s Suite, device, variant string, b *bench, host *input) *timed {
	program := s.Program(variant)
	t := &timed{bench: b, row: emptyRow()}
	t.row.Suite, t.row.Device, t.row.Variant, t.row.Mode = s.Name(), device, variant, b.mode
	t.row.Shape, t.row.DType, t.row.Threads = c.shape, c.dtype.String(), c.threads
	t.contestant = &contestant{name: fmt.Sprintf("%s %s", variant, b.mode), run: func() (time.Duration, error) {
		before := countsOf(b.dev.Stats())
		took, err := b.once(program)
		if t.counting {
			t.hot = t.hot.plus(countsOf(b.dev.Stats()), before)
		}
		return took, err
	}}
	cold, off, err := t.first(program, host, s.Oracle)
	if err != nil {
		t.row.Error = err.Error()
		return t
	}
	t.row.ColdMS, t.row.MaxAbsErr = number(cold.Seconds()*1e3), number(off)
	return t
}

func (t *timed) first(program func(*millrace.Tensor) *millrace.Tensor, host *input, oracle func(float64) float64) (cold time.Duration, off float64, err error) {
	start := time.Now()
	err = t.bench.dev.Scope(func(sc *millrace.Scope) error {
		y := program(t.bench.x.To(sc))
		if err := y.Eval(); err != nil {
			return err
		}
		cold = time.Since(start)
		off, err = host.maxError(y, oracle)
		return err
	})
	return cold, off, err
}

// finish fills the row from the timed runs.
func (t *timed) finish(copied *contestant) {
	r, n := &t.row, int64(len(t.contestant.times))
	if n == 0 {
		return
	}
	r.Kernels = float64(t.hot.launches) / float64(n)
	r.BytesRead, r.BytesWritten = t.hot.read/n, t.hot.written/n
	r.ExplorationsHot, r.CompilesHot, r.AllocsHot = t.hot.explorations, t.hot.compiles, t.hot.allocs
	r.Tier = tierName(t.bench.dev.Name(), t.hot)
	r.time(t.contestant, copied)
}

// tierName says which tier the timed runs ran on.
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
