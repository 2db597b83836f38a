package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// timeSuite runs a suite on every target and writes the report.
func timeSuite(c *config, s *Suite, io streams) error {
	devices, err := targets(c, io)
	if err != nil {
		return err
	}
	show := newProgress(io.err)
	show.say("making inputs")
	problems, err := c.problems(s)
	show.clear()
	if err != nil {
		return err
	}
	report, err := c.report(io, len(devices), func(i int, share time.Duration, show *progress) ([]Row, error) {
		rows, err := timeDevice(c, s, problems, devices[i], share, show)
		return rows, on(devices[i], err)
	})
	if err != nil || slices.ContainsFunc(report.Rows, func(r Row) bool { return r.Error == "" }) {
		return err
	}
	return errors.New("nothing could be timed")
}

// report times n parts, one after another, each in an equal share of the remaining budget, and
// delivers their rows.
func (c *config) report(io streams, n int, part func(i int, share time.Duration, show *progress) ([]Row, error)) (*Report, error) {
	report := &Report{Machine: thisMachine(), Rows: []Row{}}
	show := newProgress(io.err)
	err := inTurn(c.budget, n, func(i int, share time.Duration) error {
		rows, err := part(i, share, show)
		show.clear()
		report.Rows = append(report.Rows, rows...)
		return err
	})
	if err == nil {
		err = c.deliver(io, report)
	}
	return report, err
}

// on puts a device's name before an error.
func on(device string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", device, err)
}

// inTurn calls f for n parts, one after another. Each gets an equal share of the remaining
// budget.
func inTurn(budget time.Duration, n int, f func(i int, share time.Duration) error) error {
	for i := range n {
		start := time.Now()
		if err := f(i, budget/time.Duration(n-i)); err != nil {
			return err
		}
		budget -= time.Since(start)
	}
	return nil
}

// costlyShare is the share of a device's budget for one run that makes a contestant costly.
const costlyShare = 0.1

// timeDevice runs every variant in every mode on one device, within about the budget.
func timeDevice(c *config, s *Suite, problems map[string]*problem, device string, budget time.Duration, show *progress) ([]Row, error) {
	start := time.Now()
	var benches []*bench
	defer func() {
		for _, b := range benches {
			b.close()
		}
	}()
	for _, mode := range c.modes {
		show.say("%s: opening, %s", device, mode)
		b, err := openBench(c, device, mode)
		if err != nil {
			return nil, err
		}
		benches = append(benches, b)
	}
	var all []*timed
	for _, b := range benches {
		for _, v := range c.variants {
			show.say("%s: %s %s, first run", device, v, b.mode)
			t := newTimed(c, s, device, v, b, problems[v])
			t.contestant.costly = t.firstWork.Seconds() > costlyShare*budget.Seconds()
			all = append(all, t)
		}
	}
	bs := newBases(c, benches[0], all)
	contestants := bs.all
	for _, t := range all {
		if t.row.Error == "" {
			contestants = append(contestants, t.contestant)
		}
	}
	tell := func(k *contestant) { show.say("%s: %s, warm-up", device, k.name) }
	if err := warm(c.warmup, start.Add(budget/3), contestants, benches, tell); err != nil {
		return nil, err
	}
	interleave(time.Now, budget-time.Since(start), c.runs, contestants, func(round int, k *contestant) {
		show.part(round, c.runs, "%s: %s, run %d of %d", device, k.name, round+1, c.runs)
	})
	return fill(c, all, bs), nil
}

// warm runs everything until it is hot: at least once, then until n rounds are over and the last
// round compiled and tuned nothing, but not much longer than the deadline. When it returns, no
// background work is running.
func warm(n int, deadline time.Time, cs []*contestant, benches []*bench, tell func(*contestant)) error {
	for i, settled := 0, false; i == 0 || (i < n || !settled && i < n+5) && time.Now().Before(deadline); i++ {
		before, err := compiles(benches)
		if err != nil {
			return err
		}
		for _, c := range cs {
			if c.out || c.costly {
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

// compiles waits for compilers and tuning, and returns how much they have done so far.
func compiles(benches []*bench) (n int64, err error) {
	for _, b := range benches {
		if err := b.dev.Wait(); err != nil {
			return 0, err
		}
		s := b.dev.Stats()
		n += s.Runtime.Compiles + s.Tunings
	}
	return n, nil
}

// fill turns the measurements into rows.
func fill(c *config, all []*timed, bs *bases) []Row {
	var rows []Row
	for _, t := range all {
		if t.row.Error == "" && t.contestant.err != nil {
			t.row.Error = t.contestant.err.Error()
		}
		if t.row.Error == "" {
			t.finish(c, bs)
			t.compare(all)
			t.row.tuning(t.pairs)
		}
		rows = append(rows, t.row)
	}
	return rows
}

// compare fills the row's ratios to other variants and to the unfused mode.
func (t *timed) compare(all []*timed) {
	for _, u := range all {
		if u.row.Error != "" {
			continue
		}
		if u.bench.mode == unfused && u.row.Variant == t.row.Variant {
			t.row.compare(t.contestant, u.contestant)
		}
		for _, v := range t.problem.versus {
			if u.bench.mode == t.bench.mode && u.row.Variant == v.variant {
				own, other := pairs(t.contestant, u.contestant)
				v.note(&t.row, own, other)
			}
		}
	}
}
