package main

import (
	"time"
)

// serveOn runs every load and the readers on one device in one mode, within about
// the budget, in rounds.
func serveOn(c *config, v *serve, offers []*offer, device, mode string, budget time.Duration, show *progress) ([]Row, error) {
	start := time.Now()
	show.say("%s: opening, %s", device, mode)
	b, err := openBench(c, device, mode)
	if err != nil {
		return nil, err
	}
	defer b.close()
	var loads []*load
	var readers []*reader
	var all []*contestant
	for _, o := range offers {
		show.say("%s: %s alone, %s", device, o.variant, mode)
		s, err := newService(c, b, o)
		if err != nil {
			return nil, err
		}
		defer s.close()
		for _, n := range v.counts {
			l := newLoad(s, n, v.cancel)
			loads, all = append(loads, l), append(all, l.contestant)
		}
	}
	if v.reader {
		for i := range neighbours {
			r := newReader(c, b, i, time.Duration(costlyShare*float64(budget)))
			readers, all = append(readers, r), append(all, r.contestant)
		}
	}
	setSlice := func(d time.Duration) {
		for _, l := range loads {
			l.slice = d
		}
		for _, r := range readers {
			r.slice = d
		}
	}
	setSlice(v.within(budget/4, len(all)*max(c.warmup, 1)))
	tell := func(k *contestant) { show.say("%s: %s, warm-up", device, k.name) }
	if err := warm(c.warmup, start.Add(budget/3), all, []*bench{b}, tell); err != nil {
		return nil, err
	}
	left := max(budget-time.Since(start), 0)
	setSlice(v.within(left, len(all)*c.runs))
	interleave(time.Now, left, c.runs, all, func(round int, k *contestant) {
		show.part(round, c.runs, "%s: %s, run %d of %d", device, k.name, round+1, c.runs)
	})
	var rows []Row
	for _, l := range loads {
		rows = append(rows, l.finish(single(loads, l)))
	}
	for _, r := range readers {
		rows = append(rows, r.finish())
	}
	return rows, nil
}

// within returns the slice for each of so many turns in the remaining time.
func (v *serve) within(left time.Duration, turns int) time.Duration {
	return min(v.slice, max(left/time.Duration(turns), leastSlice))
}

// leastSlice is long enough for some requests of each of many goroutines.
const leastSlice = 20 * time.Millisecond

// single returns the load that l is compared with: one goroutine with the same requests.
func single(loads []*load, l *load) *load {
	for _, o := range loads {
		if o.service == l.service && len(o.clients) == 1 && o.contestant.err == nil {
			return o
		}
	}
	return nil
}
