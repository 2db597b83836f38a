package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/millrace-go/millrace"
)

// pair is a case on both backends.
type pair [2]*workload

// group matches the cases of both backends by name, and puts those that are
// forms of one computation, fused and decomposed, together.
func group(lists [2][]workload, run *regexp.Regexp) (groups [][]pair, err error) {
	at := map[string]int{}
	other := map[string]*workload{}
	for i := range lists[1] {
		other[lists[1][i].name] = &lists[1][i]
	}
	if len(lists[0]) != len(other) {
		return nil, fmt.Errorf("%d cases on one backend, %d on the other", len(lists[0]), len(other))
	}
	for i := range lists[0] {
		w := &lists[0][i]
		m := other[w.name]
		if m == nil {
			return nil, fmt.Errorf("%s is run on one backend only", w.name)
		}
		if !run.MatchString(w.name) {
			continue
		}
		key, _ := form(w.name)
		k, known := at[key]
		if !known {
			k = len(groups)
			at[key], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], pair{w, m})
	}
	return groups, nil
}

// form is the name of a computation, and which form of it a case is: "Fused",
// "Decomposed" or "".
func form(name string) (key, form string) {
	for _, f := range []string{"Fused", "Decomposed"} {
		if before, after, found := strings.Cut(name, f+"/"); found {
			return before + after, f
		}
	}
	return name, ""
}

// settler is a device that works in the background.
type settler interface {
	Wait() error
	Stats() millrace.Stats
}

// result is the seconds that runs of a case took, round by round.
type result struct {
	name  string
	times [2][]float64
	first [2]time.Duration
}

// measure times a group's cases in turns: in each round every case on every
// backend, one right after the other, in an order that changes.
func measure(c config, devices [2]settler, g []pair) ([]result, error) {
	type contestant struct {
		*workload
		turns int
		into  *[]float64
	}
	rs := make([]result, len(g))
	var all []contestant
	for i, p := range g {
		rs[i].name = p[0].name
		for k, w := range p {
			rs[i].first[k] = w.first
			turns, err := warm(c, devices[k], w)
			if err != nil {
				return nil, err
			}
			all = append(all, contestant{w, turns, &rs[i].times[k]})
		}
	}
	for round := range c.rounds {
		for i := range all {
			at := &all[(i+round)%len(all)]
			if err := at.run(); err != nil { // the one before it has left its data in the caches
				return nil, err
			}
			start := time.Now()
			for range at.turns {
				if err := at.run(); err != nil {
					return nil, err
				}
			}
			*at.into = append(*at.into, time.Since(start).Seconds()/float64(at.turns))
		}
	}
	return rs, nil
}

// warm runs a workload until nothing is made for it in the background any more,
// and finds how often it runs in one measurement. What is hot is measured: a
// kernel that takes next to no time is compiled after some hundred runs.
func warm(c config, dev settler, w *workload) (turns int, err error) {
	work := func() (n int64, err error) {
		if dev == nil {
			return 0, nil
		}
		if err := dev.Wait(); err != nil {
			return 0, err
		}
		s := dev.Stats()
		return s.Runtime.Compiles + s.Tunings + s.Explorations, nil
	}
	const runs, least = 12, 50 * time.Millisecond
	end := time.Now().Add(c.warm)
	for settled := false; !settled && time.Now().Before(end); {
		before, err := work()
		if err != nil {
			return 0, err
		}
		start := time.Now()
		n := 0
		for ; (n < runs || time.Since(start) < least) && (n == 0 || time.Now().Before(end)); n++ {
			if err := w.run(); err != nil {
				return 0, err
			}
		}
		each := time.Since(start) / time.Duration(n)
		turns = max(1, int(c.batch/max(each, 1)))
		after, err := work()
		if err != nil {
			return 0, err
		}
		settled = before == after
	}
	return turns, nil
}
