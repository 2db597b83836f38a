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

// ErrUnfit says that the default itself cannot be run for timing: there is
// nothing to compare with.
var ErrUnfit = errors.New("the default cannot be timed")

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
	// Told is called for all that is found out.
	Told func(Event)
	// Longest, where it is not 0, is how long a single run may take: where the
	// default takes longer nothing is compared, a candidate is not run again.
	Longest time.Duration
	// Spent says that the time for it is over.
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

// measurement is one call of Measure.
type measurement struct {
	Subject
	table *Table
	runs  int    // of a sample
	in    []bool // candidates that take part
}

// Measure checks the candidates, times them in turns with the default, confirms
// which of them are faster, and gives the table. It is ErrStopped, or ErrUnfit
// with the reason, where there is none.
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
			break // what was timed so far has to do
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

// refuse takes a candidate out for good.
func (m *measurement) refuse(i int, err error) {
	m.table.Rows[i].Refused, m.in[i] = err.Error(), false
	m.tell(i, Event{Step: Refused, Err: err})
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
	m.refuse(i, err)
	return nil
}

// check finds out whether a candidate takes part. It is also its warm-up.
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
	case long: // one time prefers nothing: see leastRounds
		m.table.Rows[i].Nanos = []int64{int64(took)}
		m.tell(i, Event{Step: Timed, Took: took, Runs: 1})
		return nil
	case i == 0: // all samples are of equally many runs
		m.runs = min(int(sample/max(took, 1))+1, maxRuns)
	}
	m.in[i] = true
	return nil
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

// confirm times those that were found faster once more, and refuses whose fresh
// rounds do not say so: of many candidates, looked at often, one may have been
// lucky.
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

// tooLong is what a table says of a default that was not timed.
func tooLong(took time.Duration) string { return fmt.Sprintf("a run is too long: %v", took) }
