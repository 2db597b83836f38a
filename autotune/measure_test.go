package autotune

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// fake is a subject whose candidates take these times.
type fake struct {
	times  []time.Duration
	fail   map[int]error // errors of runs
	wrong  map[int]error // errors of checks
	runs   []int
	spent  time.Duration
	budget time.Duration
	checks []int
}

func (f *fake) subject() Subject {
	f.runs = make([]int, len(f.times))
	s := Subject{
		Check: func(i int) (time.Duration, error) {
			f.checks = append(f.checks, i)
			return f.times[i], f.wrong[i]
		},
		Run: func(i int) (time.Duration, error) {
			f.runs[i]++
			f.spent += f.times[i]
			return f.times[i], f.fail[i]
		},
		Told:  func(Event) {},
		Spent: func() bool { return f.budget > 0 && f.spent > f.budget },
	}
	for i := range f.times {
		s.Names = append(s.Names, string(rune('a'+i)))
	}
	return s
}

const ms = time.Millisecond

func TestMeasure(t *testing.T) {
	f := &fake{times: []time.Duration{10 * ms, 8 * ms, 9 * ms, 12 * ms, ms, ms, 30 * ms},
		wrong: map[int]error{4: errors.New("other bits")}, fail: map[int]error{5: errors.New("no such thing")}}
	table, err := Measure(f.subject())
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Order(); !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("order %v of\n%s", got, table.Text())
	}
	if !slices.Equal(f.checks, []int{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("checked %v", f.checks)
	}
	if f.runs[4] != 0 {
		t.Error("a candidate with other results was timed")
	}
	for i, want := range []int{2 * rounds, 2 * rounds, 2 * rounds, 4, 0, 0, 1} {
		if n := len(table.Rows[i].Nanos); n != want {
			t.Errorf("candidate %d was timed in %d rounds, want %d", i, n, want)
		}
	}
	for i, want := range []string{"", "", "", "", "other bits", "no such thing", ""} {
		if table.Rows[i].Refused != want {
			t.Errorf("candidate %d: refused %q, want %q", i, table.Rows[i].Refused, want)
		}
	}
}

// A sample has several short runs, the same number for all candidates.
func TestMeasureShort(t *testing.T) {
	f := &fake{times: []time.Duration{10 * time.Microsecond, 5 * time.Microsecond}}
	table, err := Measure(f.subject())
	if err != nil {
		t.Fatal(err)
	}
	if f.runs[0] != f.runs[1] || f.runs[0] < 10*rounds {
		t.Errorf("runs %v", f.runs)
	}
	if n := table.Rows[1].Nanos[0]; n != 5000 {
		t.Errorf("%d ns", n)
	}
}

// A candidate that may be faster, but not certainly, is timed for longer.
func TestMeasureGoesOn(t *testing.T) {
	f := &fake{times: []time.Duration{10 * ms, 10 * ms, 10 * ms}}
	s := f.subject()
	run := s.Run
	s.Run = func(i int) (time.Duration, error) {
		d, err := run(i)
		if i == 1 && f.runs[1]%5 > 1 || i == 1 && f.runs[1] > 2*rounds {
			d = 9 * ms // undecided at first
		}
		return d, err
	}
	table, err := Measure(s)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(table.Rows[1].Nanos); n <= 2*rounds || n > moreRounds+rounds {
		t.Errorf("%d rounds", n)
	}
	if n := len(table.Rows[2].Nanos); n != rounds {
		t.Errorf("%d rounds of one that is no faster", n)
	}
	if !slices.Equal(table.Order(), []int{1, 0}) {
		t.Errorf("order %v of\n%s", table.Order(), table.Text())
	}
}

func TestMeasureEnds(t *testing.T) {
	f := &fake{times: []time.Duration{ms, ms}, fail: map[int]error{0: errors.New("broken")}}
	if table, err := Measure(f.subject()); !errors.Is(err, ErrUnfit) || table != nil {
		t.Errorf("a default that fails: %v, %v", table, err)
	}
	f = &fake{times: []time.Duration{ms, ms}, wrong: map[int]error{1: ErrStopped}}
	if table, err := Measure(f.subject()); !errors.Is(err, ErrStopped) || table != nil {
		t.Errorf("stopped: %v, %v", table, err)
	}
	f = &fake{times: []time.Duration{50 * ms, ms}}
	s := f.subject()
	s.Longest = 25 * ms
	if table, err := Measure(s); err != nil || !table.Untimed() || table.Rows[0].Refused != "a run is too long: 50ms" || !slices.Equal(table.Order(), []int{0}) {
		t.Errorf("too long: %v, %v after %d runs", table, err, f.runs[0])
	}
	if len(f.checks) != 1 || f.runs[0] != 1 {
		t.Errorf("too long: %d checks and %d runs", len(f.checks), f.runs[0])
	}
	// A run that is far too long happens once and never again, for candidates as well as the
	// default.
	f = &fake{times: []time.Duration{2000 * ms, ms}}
	s = f.subject()
	s.Longest = 25 * ms
	if table, err := Measure(s); err != nil || !table.Untimed() || len(f.checks) != 1 || f.runs[0] != 0 {
		t.Errorf("far too long: %v after %d checks and %d runs", err, len(f.checks), f.runs[0])
	}
	f = &fake{times: []time.Duration{10 * ms, 500 * ms, 30 * ms, 5 * ms}}
	s = f.subject()
	s.Longest = 25 * ms
	if table, err := Measure(s); err != nil || f.runs[1] != 0 || f.runs[2] != 1 || !slices.Equal(table.Order(), []int{3, 0}) {
		t.Errorf("slow candidates: %v, runs %v", err, f.runs)
	}
	f = &fake{times: []time.Duration{10 * ms, 5 * ms}}
	s = f.subject()
	f.budget = 200 * ms
	table, err := Measure(s)
	if err != nil || len(table.Rows[0].Nanos) == 0 || len(table.Rows[0].Nanos) == rounds || f.spent > 240*ms {
		t.Errorf("budget: %v, %v, spent %v", table, err, f.spent)
	}
}

// A candidate that fails during the rounds is refused, and the others go on.
func TestMeasureFailsLate(t *testing.T) {
	f := &fake{times: []time.Duration{10 * ms, 5 * ms, 7 * ms}}
	s := f.subject()
	run := s.Run
	s.Run = func(i int) (time.Duration, error) {
		d, err := run(i)
		if i == 1 && f.runs[1] > 8 {
			err = errors.New("worn out")
		}
		return d, err
	}
	table, err := Measure(s)
	if err != nil || table.Rows[1].Refused != "worn out" || !slices.Equal(table.Order(), []int{2, 0}) {
		t.Errorf("%v, %v", table, err)
	}
}

// A candidate that was only lucky when it was found faster is not used.
func TestMeasureConfirms(t *testing.T) {
	f := &fake{times: []time.Duration{10 * ms, 10 * ms, 9 * ms}}
	s := f.subject()
	run := s.Run
	s.Run = func(i int) (time.Duration, error) {
		d, err := run(i)
		if i == 1 && f.runs[1] <= 2*rounds+1 { // two runs per round, and one at the beginning
			d = 5 * ms
		}
		return d, err
	}
	table, err := Measure(s)
	if err != nil || table.Rows[1].Refused != Unconfirmed || table.Rows[2].Refused != "" || !slices.Equal(table.Order(), []int{2, 0}) {
		t.Errorf("%v\n%s", err, table.Text())
	}
	// A candidate is not used either if there was no time to confirm it.
	f = &fake{times: []time.Duration{10 * ms, 5 * ms}}
	s = f.subject()
	f.budget = 450 * ms
	if table, err = Measure(s); err != nil || table.Rows[1].Refused != Unconfirmed || len(table.Rows[1].Nanos) < leastRounds {
		t.Errorf("%v\n%s", err, table.Text())
	}
}

// Told is called for every step.
func TestMeasureTells(t *testing.T) {
	f := &fake{times: []time.Duration{10 * ms, 9 * ms, 12 * ms, 8 * ms}, wrong: map[int]error{2: errors.New("no such thing")}}
	s := f.subject()
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
	table, err := Measure(s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(steps, ", "), "checked a, checked b, refused c, checked d, chosen d"; got != want {
		t.Errorf("told of %q, want %q", got, want)
	}
	for i, r := range table.Rows {
		if timed[r.Name] != len(r.Nanos) {
			t.Errorf("candidate %d: told of %d samples, %d are in the table", i, timed[r.Name], len(r.Nanos))
		}
	}
}
