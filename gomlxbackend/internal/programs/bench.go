package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// bench measures all programs and prints a table.
func bench(c config, w io.Writer) (err error) {
	var names []string
	var runners []runner
	for _, b := range c.backends {
		name := strings.TrimSuffix(b, ":cache=off")
		if simd && strings.HasPrefix(name, "go") {
			name += " with SIMD"
			if c.plain {
				dir, err := os.MkdirTemp("", "programs")
				if err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				r, err := newRemote(dir, b)
				if err != nil {
					return err
				}
				defer r.end()
				names, runners = append(names, b), append(runners, r)
			}
		}
		names, runners = append(names, name), append(runners, &local{config: b})
	}
	last := names[len(names)-1]
	fmt.Fprint(w, "| program | step ")
	for _, name := range names {
		fmt.Fprintf(w, "| %s, ms ", name)
	}
	for _, name := range names[:len(names)-1] {
		fmt.Fprintf(w, "| %s over %s ", name, last)
	}
	fmt.Fprintf(w, "|\n|---%s|\n", strings.Repeat("|---", 2*len(names)))
	for _, p := range programs {
		if !c.run.MatchString(p.name) {
			continue
		}
		if err := measure(c, w, p, runners); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// measure prints the lines of a program.
func measure(c config, w io.Writer, p program, runners []runner) error {
	first := make([][]float64, len(runners))
	turns := make([]int, len(runners))
	defer func() {
		for _, r := range runners {
			r.stop()
		}
	}()
	for i, r := range runners {
		start := time.Now()
		if err := r.start(p); err != nil {
			return err
		}
		if _, err := r.steps(p.known, 1); err != nil {
			return err
		}
		first[i] = []float64{time.Since(start).Seconds()}
	}
	row(w, p, "the first", first)
	for i, r := range runners {
		var err error
		if turns[i], err = warm(c, r, p.known); err != nil {
			return err
		}
	}
	known, err := inTurns(c, runners, func(int) int { return p.known }, turns)
	if err != nil {
		return err
	}
	row(w, p, fmt.Sprintf("%s %d", p.what, p.known), known)
	for i := range turns {
		turns[i] = 1
	}
	fresh, err := inTurns(c, runners, func(round int) int { return p.least + round }, turns)
	if err != nil {
		return err
	}
	row(w, p, fmt.Sprintf("another %s each time", p.what), fresh)
	for _, r := range runners {
		if l, ok := r.(*local); ok {
			if s, ok := l.stats(); ok && s.Unbuilt+s.Fallbacks > 0 {
				return fmt.Errorf("%d plans could not be built, %d segments fell back", s.Unbuilt, s.Fallbacks)
			}
		}
	}
	return nil
}

// inTurns is the seconds of a step in each round, on each runner, in an order that changes.
func inTurns(c config, runners []runner, size func(round int) int, turns []int) ([][]float64, error) {
	times := make([][]float64, len(runners))
	for round := range c.rounds {
		for k := range runners {
			i := (k + round) % len(runners)
			took, err := runners[i].steps(size(round), turns[i])
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], took.Seconds()/float64(turns[i]))
		}
	}
	return times, nil
}

// warm runs steps until nothing is made in the background any more, and says how many
// are one measurement.
func warm(c config, r runner, size int) (turns int, err error) {
	const runs, least = 12, 50 * time.Millisecond
	end := time.Now().Add(c.warm)
	before, err := r.busy()
	for settled := false; err == nil && !settled && time.Now().Before(end); {
		var took time.Duration
		n := 0
		for took < least || n < runs {
			var t time.Duration
			if t, err = r.steps(size, 1); err != nil {
				return 0, err
			}
			took, n = took+t, n+1
		}
		turns = max(1, int(c.batch/max(took/time.Duration(n), 1)))
		var after int64
		after, err = r.busy()
		settled, before = after == before, after
	}
	return max(turns, 1), err
}

// row is a line of the table: medians, and how often the last is faster than each other one.
func row(w io.Writer, p program, step string, times [][]float64) {
	fmt.Fprintf(w, "| %s | %s ", p.name, step)
	for _, t := range times {
		fmt.Fprintf(w, "| %.2f ", 1e3*paired.Median(t))
	}
	last := times[len(times)-1]
	for _, t := range times[:len(times)-1] {
		if len(t) == 1 {
			fmt.Fprintf(w, "| %.2f ", t[0]/last[0])
			continue
		}
		x := paired.Ratio(t, last)
		fmt.Fprintf(w, "| %.2f [%.2f %.2f] ", x.Mid, x.Lo, x.Hi)
	}
	fmt.Fprintln(w, "|")
}
