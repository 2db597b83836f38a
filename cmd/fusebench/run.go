package main

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace"
)

// timeSuite runs a suite on every target and writes the report.
func timeSuite(c *config, s Suite, io streams) error {
	devices, err := targets(c, io)
	if err != nil {
		return err
	}
	report := &Report{Machine: thisMachine(), Rows: []Row{}}
	show := newProgress(io.err)
	left := c.budget
	for i, name := range devices {
		start := time.Now()
		rows, err := timeDevice(c, s, name, left/time.Duration(len(devices)-i), show)
		show.clear()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		report.Rows = append(report.Rows, rows...)
		left -= time.Since(start)
	}
	return deliver(io.out, report, c.format, c.out)
}

// dearShare of a device's budget in one run makes a contestant dear.
const dearShare = 0.1

// timeDevice runs every variant in every mode on one device, within about the
// budget.
func timeDevice(c *config, s Suite, device string, budget time.Duration, show *progress) ([]Row, error) {
	start := time.Now()
	host := newInput(c.shape, c.dtype)
	var benches []*bench
	defer func() {
		for _, b := range benches {
			b.close()
		}
	}()
	for _, mode := range c.modes {
		show.say("%s: opening, %s", device, mode)
		b, err := openBench(c, device, mode, host.upload)
		if err != nil {
			return nil, err
		}
		benches = append(benches, b)
	}
	var all []*timed
	for _, b := range benches {
		for _, v := range c.variants {
			show.say("%s: %s %s, first run", device, v, b.mode)
			t := newTimed(c, s, device, v, b, host)
			t.contestant.dear = float64(t.row.ColdMS) > dearShare*float64(budget.Milliseconds())
			all = append(all, t)
		}
	}
	copies := copyContestants(c, device, benches[0], host)
	contestants := copies
	for _, t := range all {
		if t.row.Error == "" {
			contestants = append(contestants, t.contestant)
		}
	}
	tell := func(k *contestant) { show.say("%s: %s, warm-up", device, k.name) }
	if err := warm(c.warmup, start.Add(budget/3), contestants, benches, tell); err != nil {
		return nil, err
	}
	for _, t := range all {
		t.counting = true
	}
	interleave(time.Now, budget-time.Since(start), c.runs, contestants, func(round int, k *contestant) {
		show.say("%s: %s, run %d of %d", device, k.name, round+1, c.runs)
	})
	return fill(all, copies), nil
}

// warm runs everything until it is hot: at least once, then until n rounds are
// over and the last one started no compile, not much longer than the deadline.
// Background work is idle when it returns.
func warm(n int, deadline time.Time, cs []*contestant, benches []*bench, tell func(*contestant)) error {
	for i, settled := 0, false; i == 0 || (i < n || !settled && i < n+5) && time.Now().Before(deadline); i++ {
		before, err := compiles(benches)
		if err != nil {
			return err
		}
		for _, c := range cs {
			if c.out || c.dear {
				continue
			}
			tell(c)
			if _, err := c.run(); err != nil {
				c.err, c.out = err, true
			}
		}
		after, err := compiles(benches)
		if err != nil {
			return err
		}
		settled = after == before
	}
	return nil
}

// compiles waits for compilers and counts what they did so far.
func compiles(benches []*bench) (n int64, err error) {
	for _, b := range benches {
		if err := b.dev.Wait(); err != nil {
			return 0, err
		}
		n += b.dev.Stats().Runtime.Compiles
	}
	return n, nil
}

// copyContestants are the plain copies of a device: its own kernel that only
// loads and stores, and on the CPU also memcpy.
func copyContestants(c *config, device string, b *bench, host *input) []*contestant {
	cs := []*contestant{{name: "copy kernel", base: true, run: func() (time.Duration, error) {
		return b.once(copyKernel)
	}}}
	if b.dev.Name() == "cpu" {
		m := newMemcpy(host.bytes(), c.threads)
		cs = append(cs, &contestant{name: "memcpy", base: true, run: func() (time.Duration, error) { return m.run(), nil }})
	}
	return cs
}

// fill turns what was measured into rows.
func fill(all []*timed, copies []*contestant) []Row {
	var copied *contestant
	for _, k := range copies {
		copied = faster(copied, k)
	}
	var rows []Row
	for _, t := range all {
		if t.row.Error == "" && t.contestant.err != nil {
			t.row.Error = t.contestant.err.Error()
		}
		if t.row.Error == "" {
			t.finish(copied)
			for _, u := range all {
				if u.bench.mode == unfused && u.row.Variant == t.row.Variant && u.row.Error == "" {
					t.row.compare(t.contestant, u.contestant)
				}
			}
		}
		rows = append(rows, t.row)
	}
	return rows
}

// once times one run: the program on the input, inside a scope, until the
// result is in memory.
func (b *bench) once(program func(*millrace.Tensor) *millrace.Tensor) (time.Duration, error) {
	start := time.Now()
	var took time.Duration
	err := b.dev.Scope(func(sc *millrace.Scope) error {
		err := program(b.x.To(sc)).Eval()
		took = time.Since(start)
		return err
	})
	return took, err
}

// copyKernel makes the device run the cheapest kernel that reads and writes
// every element. (A kernel without any operation is none: the engine answers
// with the same memory.)
func copyKernel(x *millrace.Tensor) *millrace.Tensor { return x.Neg() }
