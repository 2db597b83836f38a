package autotune

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// combined is a fake whose candidates a, b and c are faster, slower and faster
// alone; together the winners take what the test says.
func combined(together time.Duration) (*fake, Subject, *[][]int) {
	f := &fake{times: []time.Duration{10 * ms, 9 * ms, 12 * ms, 8 * ms}}
	s := f.subject()
	var asked [][]int
	s.Combine = func(won []int) (string, bool) {
		asked = append(asked, won)
		f.times, f.runs = append(f.times, together), append(f.runs, 0)
		return "both", together > 0
	}
	return f, s, &asked
}

// What was faster alone is tried together, once, checked and timed as the others.
func TestMeasureCombines(t *testing.T) {
	for _, c := range []struct {
		together time.Duration
		want     []int
	}{{7 * ms, []int{4, 3, 1, 0}}, {8500 * time.Microsecond, []int{3, 4, 1, 0}}, {11 * ms, []int{3, 1, 0}}, {0, []int{3, 1, 0}}} {
		f, s, asked := combined(c.together)
		table, err := Measure(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Order(); !slices.Equal(got, c.want) || len(*asked) != 1 || !slices.Equal((*asked)[0], []int{3, 1}) {
			t.Errorf("%v together: order %v, asked of %v\n%s", c.together, got, *asked, table.Text())
		}
		if c.together == 0 {
			continue
		}
		if n := slices.Index(f.checks, 4); n != 4 || !table.Holds(s.Names) {
			t.Errorf("%v together: checked %v\n%s", c.together, f.checks, table.Text())
		}
		if r := table.Rows[4]; r.From != 2*rounds || c.together < 9*ms && len(r.Nanos) != 2*rounds {
			t.Errorf("%v together: %d rounds from %d on", c.together, len(r.Nanos), r.From)
		}
	}
	// One with other results is not used.
	f, s, _ := combined(ms)
	f.wrong = map[int]error{4: errors.New("other bits")}
	table, err := Measure(s)
	if err != nil || table.Rows[4].Refused != "other bits" || !slices.Equal(table.Order(), []int{3, 1, 0}) || f.runs[4] != 0 {
		t.Errorf("%v\n%s", err, table.Text())
	}
	// One that was lucky is not used either.
	f, s, _ = combined(7 * ms)
	run := s.Run
	s.Run = func(i int) (time.Duration, error) {
		d, err := run(i)
		if i == 4 && f.runs[4] > 2*rounds+1 {
			d = 10 * ms
		}
		return d, err
	}
	if table, err = Measure(s); err != nil || table.Rows[4].Refused != Unconfirmed {
		t.Errorf("%v\n%s", err, table.Text())
	}
	// A single winner has nobody to go with.
	f, s, asked := combined(ms)
	f.times[1] = 10 * ms
	if table, err = Measure(s); err != nil || len(*asked) > 0 || len(table.Rows) != 4 {
		t.Errorf("%v, asked of %v\n%s", err, *asked, table.Text())
	}
}

// Whoever wants to know is told of every step.
func TestMeasureTells(t *testing.T) {
	_, s, _ := combined(7 * ms)
	var steps []string
	timed := map[string]int{}
	s.Told = func(e Event) {
		if e.Step == Timed {
			timed[e.Candidate]++
			if e.Took == 0 || e.Runs == 0 {
				t.Errorf("%+v", e)
			}
			return
		}
		if (e.Step == Refused) != (e.Err != nil) {
			t.Errorf("%+v", e)
		}
		steps = append(steps, string(e.Step)+" "+e.Candidate)
	}
	check := s.Check
	s.Check = func(i int) (time.Duration, error) {
		if i == 2 {
			return 0, errors.New("no such thing")
		}
		return check(i)
	}
	table, err := Measure(s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(steps, ", "), "checked a, checked b, refused c, checked d, checked both, chosen both"; got != want {
		t.Errorf("told of %q, want %q", got, want)
	}
	for i, r := range table.Rows {
		if timed[r.Name] != len(r.Nanos) {
			t.Errorf("candidate %d: told of %d samples, %d are in the table", i, timed[r.Name], len(r.Nanos))
		}
	}
}
