package autotune

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// ErrStopped is returned by a run that the tuner no longer begins.
var ErrStopped = errors.New("tuning was stopped")

// ErrUnfit says that the default itself cannot be run for timing, so there is nothing to compare
// with.
var ErrUnfit = errors.New("the default cannot be timed")

// Unconfirmed is the reason for refusing a candidate that first seemed to be faster. It is not an
// error of the candidate.
const Unconfirmed = "later rounds did not confirm that it is faster"

var errUnconfirmed = errors.New(Unconfirmed)

// Subject is something to tune.
type Subject struct {
	Names []string // of the candidates, the default first
	// Check runs a candidate and compares its results with the default's, which is checked first. It
	// returns how long the run took. An error refuses the candidate.
	Check func(i int) (time.Duration, error)
	// Run runs a candidate once and says how long it took.
	Run func(i int) (time.Duration, error)
	// Told is called for every step.
	Told func(Event)
	// Longest limits a single run; 0 means no limit. If the default takes longer, nothing is
	// compared. A candidate that takes longer is not run again.
	Longest time.Duration
	// Spent says that the time for tuning is over.
	Spent func() bool
}

// Step is what was done with a candidate.
type Step string

const (
	Checked Step = "checked" // it gives the same results
	Timed   Step = "timed"   // a sample of runs was taken
	Refused Step = "refused" // it will not be used
	Chosen  Step = "chosen"  // it will be used
)

// Event reports a step.
type Event struct {
	Step      Step
	Candidate string
	Took      time.Duration // time of one run
	Runs      int           // number of runs in the sample
	Err       error         // why it was refused
}

const (
	// Each candidate is timed in rounds rounds, and in up to moreRounds as long as it is undecided
	// whether some candidate is faster. Candidates found faster get as many rounds again; see
	// confirm.
	rounds     = 15
	moreRounds = 31
	// A sample is as many runs as take this time, at most maxRuns: clocks are not finer, and
	// short runs are noisy.
	sample  = 100 * time.Microsecond
	maxRuns = 64
)

// sifting maps a number of rounds to the ratio above which slower candidates then leave.
var sifting = map[int]float64{1: 2, 4: 1.15, 8: 1.05}

// measurement is one call of Measure.
type measurement struct {
	Subject
	table *Table
	runs  int    // per sample
	in    []bool // candidates that still take part
}

// Measure checks the candidates, times them in turns with the default, confirms which of them are
// faster, and returns the table. Without a table, the error is ErrStopped, or ErrUnfit with the
// reason.
func Measure(s Subject) (*Table, error) {
	m := &measurement{Subject: s, table: NewTable(s.Names), in: make([]bool, len(s.Names))}
	for i := range m.in {
		if err := m.check(i); err != nil {
			return nil, err
		}
		if m.table.Untimed() {
			return m.table, nil
		}
	}
	for round := range moreRounds {
		if m.Spent() {
			break // the timings so far must suffice
		}
		if err := m.round(round); err != nil {
			return nil, err
		}
		if behind := sifting[round+1]; behind > 0 {
			m.leave(func(r paired.Estimate) bool { return r.Mid > behind })
		}
		if round+1 >= rounds {
			m.leave(func(r paired.Estimate) bool { return r.Mid >= gain })
			if !m.undecided() {
				break
			}
		}
	}
	if err := m.confirm(); err != nil {
		return nil, err
	}
	m.tell(m.table.Order()[0], Event{Step: Chosen})
	return m.table, nil
}

func (m *measurement) tell(i int, e Event) {
	e.Candidate = m.table.Rows[i].Name
	m.Told(e)
}

// refuse excludes a candidate for good.
func (m *measurement) refuse(i int, err error) {
	m.table.Rows[i].Refused, m.in[i] = err.Error(), false
	m.tell(i, Event{Step: Refused, Err: err})
}

// failed excludes a candidate that could not be run. It returns an error, and so ends the
// measurement, if the default failed or the tuner was stopped.
func (m *measurement) failed(i int, err error) error {
	switch {
	case errors.Is(err, ErrStopped):
		return err
	case i == 0:
		return errors.Join(ErrUnfit, err)
	}
	m.refuse(i, err)
	return nil
}

// check finds out whether a candidate takes part. It also serves as the warm-up.
func (m *measurement) check(i int) error {
	took, err := m.Check(i)
	long := m.Longest > 0 && took > 2*m.Longest // the first run may be a cold one
	if err == nil {
		m.tell(i, Event{Step: Checked, Took: took, Runs: 1})
	}
	if err == nil && !long {
		took, err = m.Run(i)
		long = m.Longest > 0 && took > m.Longest
	}
	switch {
	case err != nil:
		return m.failed(i, err)
	case long && i == 0:
		m.table.TooLong(took)
		return nil
	case long: // one timing cannot make it preferred: see leastRounds
		m.table.Rows[i].Nanos = []int64{int64(took)}
		m.tell(i, Event{Step: Timed, Took: took, Runs: 1})
		return nil
	case i == 0: // all samples have the same number of runs
		m.runs = min(int(sample/max(took, 1))+1, maxRuns)
	}
	m.in[i] = true
	return nil
}

// round takes a sample of every candidate. An untimed run comes first, because caches and threads
// still have the state that the previous candidate left. Each round starts with another candidate.
func (m *measurement) round(number int) error {
	n := len(m.in)
	took := make([]int64, n)
	for k := range n {
		i := (k + number) % n
		if !m.in[i] {
			continue
		}
		total := time.Duration(0)
		for run := range m.runs + 1 {
			d, err := m.Run(i)
			if err != nil {
				if err := m.failed(i, err); err != nil {
					return err
				}
				break
			}
			if run > 0 {
				total += d
			}
		}
		took[i] = int64(total) / int64(m.runs)
	}
	for i := range took {
		if m.in[i] {
			m.table.Rows[i].Nanos = append(m.table.Rows[i].Nanos, took[i])
			m.tell(i, Event{Step: Timed, Took: time.Duration(took[i]), Runs: m.runs})
		}
	}
	return nil
}

// leave excludes the candidates for which out returns true.
func (m *measurement) leave(out func(paired.Estimate) bool) {
	for i := 1; i < len(m.in); i++ {
		m.in[i] = m.in[i] && !out(m.table.Ratio(i))
	}
}

// undecided reports whether some candidate may or may not be faster.
func (m *measurement) undecided() bool {
	for i := 1; i < len(m.in); i++ {
		if m.in[i] && m.table.Ratio(i).Hi >= gain {
			return true
		}
	}
	return false
}

// confirm times the candidates that were found faster once more, and refuses those that the fresh
// rounds do not confirm. With many candidates and many looks, one may have been lucky.
func (m *measurement) confirm() error {
	order := m.table.Order()
	better := order[:len(order)-1]
	if len(better) == 0 {
		return nil
	}
	for i := 1; i < len(m.in); i++ {
		m.in[i] = slices.Contains(better, i)
	}
	before := len(m.table.Rows[0].Nanos)
	for round := range rounds {
		if m.Spent() {
			break
		}
		if err := m.round(round); err != nil {
			return err
		}
	}
	base := floats(m.table.Rows[0].Nanos[before:])
	for _, i := range better {
		r := &m.table.Rows[i]
		if r.Refused != "" {
			continue
		}
		fresh := floats(r.Nanos[min(before, len(r.Nanos)):])
		if len(fresh) < leastRounds || paired.Ratio(fresh, base).Hi >= gain {
			m.refuse(i, errUnconfirmed)
		}
	}
	return nil
}

// tooLong is the reason that a table gives for a default that was not timed.
func tooLong(took time.Duration) string { return fmt.Sprintf("a run is too long: %v", took) }
