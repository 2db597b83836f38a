package autotune

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// ErrStopped is what a run returns that was not to begin any more.
var ErrStopped = errors.New("tuning was stopped")

// ErrLacking is what a candidate is refused with that cannot be tried for want of
// something that another process may have.
var ErrLacking = errors.New("it cannot be tried here")

// ErrUnfit says that the default itself cannot be run for timing: there is
// nothing to compare with.
var ErrUnfit = errors.New("the default cannot be timed")

// ErrTooLong says that a run of the default takes longer than Subject.Longest.
// It is an ErrUnfit.
var ErrTooLong = errors.New("a run is too long")

// TooLong is the error of a run that took, or would take, this time.
func TooLong(took time.Duration) error {
	return errors.Join(ErrUnfit, fmt.Errorf("%w: %v", ErrTooLong, took))
}

// Unconfirmed is why a candidate is refused that seemed to be faster. It is no
// fault.
const Unconfirmed = "later rounds did not confirm that it is faster"

var errUnconfirmed = errors.New(Unconfirmed)

// Subject is something to tune.
type Subject struct {
	Names []string // of the candidates, the default first
	// Check runs a candidate and compares what it gave with what the default gave,
	// which is checked first, and says how long the run took. Its error refuses the
	// candidate.
	Check func(i int) (time.Duration, error)
	// Run runs a candidate once and says how long it took.
	Run func(i int) (time.Duration, error)
	// Combine, where it is not nil, makes one candidate more, whose number is
	// len(Names), of several that were found faster alone, the fastest first. It is
	// false where they do not go together.
	Combine func(won []int) (name string, ok bool)
	// Told, where it is not nil, is called for all that is found out.
	Told func(Event)
	// Longest, where it is not 0, is how long a single run may take: a default that
	// takes longer is not tuned, a candidate is not run again.
	Longest time.Duration
	// Budget, where it is not 0, is how long all of it may take; see Spent.
	Budget time.Duration
	// Spent is the time that counts for the budget.
	Spent func() time.Duration
}

// Step is what was done with a candidate.
type Step string

const (
	Checked Step = "checked" // it gives the same results
	Timed   Step = "timed"   // a sample of runs was taken
	Refused Step = "refused" // it will not be used
	Chosen  Step = "chosen"  // it will be used
)

// Event tells of a step.
type Event struct {
	Step      Step
	Candidate string
	Took      time.Duration // a run
	Runs      int           // of the sample
	Err       error         // why it was refused
}

const (
	// rounds is how many times each candidate is timed, and moreRounds how many
	// times at most, as long as some of them may be faster or not. Those that are
	// found faster have as many rounds again: see confirm.
	rounds     = 15
	moreRounds = 31
	// A sample is of as many runs as take this time: clocks are no finer, and
	// short runs are noisy. Runs of less than that are timed together.
	sample  = 100 * time.Microsecond
	maxRuns = 64
)

// sifting says after which rounds candidates leave that are so far behind the
// default.
var sifting = map[int]float64{1: 2, 4: 1.15, 8: 1.05}

// Measure checks and times the candidates, then the combination of those that
// were found faster, and gives the table. It is ErrStopped, or ErrUnfit with the
// reason, where there is none.
func Measure(s Subject) (*Table, error) {
	m := &measurement{Subject: s, table: &Table{}}
	for _, name := range s.Names {
		m.add(name)
	}
	if err := m.compete(0); err != nil {
		return nil, err
	}
	if err := m.combine(); err != nil {
		return nil, err
	}
	m.tell(Event{Step: Chosen, Candidate: m.table.Rows[m.table.Order()[0]].Name})
	return m.table, nil
}

// compete checks the candidates from this one on, times them in turns with the
// default, and confirms which of them are faster.
func (m *measurement) compete(first int) error {
	for i := first; i < len(m.in); i++ {
		if err := m.check(i); err != nil {
			return err
		}
	}
	// All samples are of equally many runs: that of the default.
	for i := range m.runs {
		m.runs[i] = m.runs[0]
	}
	for round := range moreRounds {
		if m.overBudget() {
			break // what was timed so far has to do
		}
		if err := m.round(round); err != nil {
			return err
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
	return m.confirm(first)
}

// combine has the combination of the candidates that were found faster compete,
// too: what helps alone may help together.
func (m *measurement) combine() error {
	won := m.table.Won()
	if m.Combine == nil || len(won) < 2 || m.overBudget() {
		return nil
	}
	name, ok := m.Combine(won)
	if !ok {
		return nil
	}
	for i := 1; i < len(m.in); i++ {
		m.in[i] = false
	}
	m.add(name)
	m.table.Rows[len(m.Names)].From = len(m.table.Rows[0].Nanos)
	return m.compete(len(m.Names))
}

func (m *measurement) overBudget() bool { return m.Budget > 0 && m.Spent() > m.Budget }

// add makes room for a candidate.
func (m *measurement) add(name string) {
	m.table.Rows = append(m.table.Rows, Row{Name: name})
	m.runs, m.in = append(m.runs, 0), append(m.in, false)
}

func (m *measurement) tell(e Event) {
	if m.Told != nil {
		m.Told(e)
	}
}

// refuse takes a candidate out for good.
func (m *measurement) refuse(i int, why string, err error) {
	r := &m.table.Rows[i]
	r.Refused, r.Lacking, m.in[i] = why, errors.Is(err, ErrLacking), false
	m.tell(Event{Step: Refused, Candidate: r.Name, Err: err})
}

// failed takes a candidate out that could not be run. There is no table without
// the default, nor where the tuner was stopped.
func (m *measurement) failed(i int, err error) error {
	switch {
	case errors.Is(err, ErrStopped):
		return err
	case i == 0:
		return errors.Join(ErrUnfit, err)
	}
	m.refuse(i, err.Error(), err)
	return nil
}

// measurement is one call of Measure.
type measurement struct {
	Subject
	table *Table
	runs  []int  // of a sample, by candidate
	in    []bool // takes part
}

// check finds out whether a candidate takes part, and how many runs a sample of it
// has. It is also its warm-up.
func (m *measurement) check(i int) error {
	took, err := m.Check(i)
	long := m.tooLong(took, 2) // the first run may be a cold one
	if err == nil {
		m.tell(Event{Step: Checked, Candidate: m.table.Rows[i].Name, Took: took, Runs: 1})
	}
	if err == nil && !long {
		took, err = m.Run(i)
		long = m.tooLong(took, 1)
	}
	switch {
	case err != nil:
		return m.failed(i, err)
	case long && i == 0:
		return TooLong(took)
	case long: // one time prefers nothing: see leastRounds
		m.table.Rows[i].Nanos = []int64{int64(took)}
		m.tell(Event{Step: Timed, Candidate: m.table.Rows[i].Name, Took: took, Runs: 1})
		return nil
	}
	m.runs[i], m.in[i] = min(int(sample/max(took, 1))+1, maxRuns), true
	return nil
}

// tooLong reports a run of more than so many times the longest.
func (m *measurement) tooLong(took time.Duration, times int) bool {
	return m.Longest > 0 && took > time.Duration(times)*m.Longest
}

// round takes a sample of every candidate, after a run that is not timed: what the
// neighbour left in caches, and its threads, are not the candidate's. Each round
// begins with another one.
func (m *measurement) round(number int) error {
	n := len(m.in)
	took := make([]int64, n)
	for k := range n {
		i := (k + number) % n
		if !m.in[i] {
			continue
		}
		total := time.Duration(0)
		for run := range m.runs[i] + 1 {
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
		took[i] = int64(total) / int64(m.runs[i])
	}
	for i := range took {
		if m.in[i] {
			m.table.Rows[i].Nanos = append(m.table.Rows[i].Nanos, took[i])
			m.tell(Event{Step: Timed, Candidate: m.table.Rows[i].Name, Took: time.Duration(took[i]), Runs: m.runs[i]})
		}
	}
	return nil
}

// leave takes out the candidates of which that is true.
func (m *measurement) leave(out func(paired.Estimate) bool) {
	for i := 1; i < len(m.in); i++ {
		m.in[i] = m.in[i] && !out(m.table.Ratio(i))
	}
}

// undecided reports candidates that may be faster or not.
func (m *measurement) undecided() bool {
	for i := 1; i < len(m.in); i++ {
		if m.in[i] && m.table.Ratio(i).Hi >= gain {
			return true
		}
	}
	return false
}

// confirm times those, from a candidate on, that were found faster once more, and
// refuses whose fresh rounds do not say so: of many candidates, looked at often, one
// may have been lucky.
func (m *measurement) confirm(first int) error {
	better := slices.DeleteFunc(m.table.Order(), func(i int) bool { return i < max(first, 1) })
	if len(better) == 0 {
		return nil
	}
	for i := 1; i < len(m.in); i++ {
		m.in[i] = slices.Contains(better, i)
	}
	before := len(m.table.Rows[0].Nanos)
	for round := range rounds {
		if m.overBudget() {
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
		fresh := floats(r.Nanos[min(before-r.From, len(r.Nanos)):])
		if len(fresh) < leastRounds || paired.Ratio(fresh, base).Hi >= gain {
			m.refuse(i, Unconfirmed, errUnconfirmed)
		}
	}
	return nil
}
