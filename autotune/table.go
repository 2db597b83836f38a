package autotune

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// Table holds all timings of the candidates for one thing. The default is the first row.
type Table struct {
	Rows []Row
}

// Row is one candidate.
type Row struct {
	Name  string  `json:"candidate"`
	Nanos []int64 `json:"nanos,omitempty"` // one per round that it took part in, in order
	// Refused says why the candidate is not used: it failed, its results differ, or it is
	// Unconfirmed. For the default it says why nothing was timed.
	Refused string `json:"refused,omitempty"`
}

// gain is the largest ratio to the default's time at which a change is worth it. The upper end of
// a candidate's interval must be below it.
const gain = 0.98

// leastRounds is the number of rounds that a candidate needs to be preferred.
const leastRounds = paired.LeastPairs

// NewTable makes a table of candidates without timings.
func NewTable(names []string) *Table {
	t := &Table{Rows: make([]Row, len(names))}
	for i, name := range names {
		t.Rows[i].Name = name
	}
	return t
}

// TooLong records that the default takes too long for a comparison.
func (t *Table) TooLong(took time.Duration) { t.Rows[0].Refused = tooLong(took) }

// Untimed reports a table that says only why nothing was compared.
func (t *Table) Untimed() bool { return t.Rows[0].Refused != "" }

// Ratio returns the ratio of row i's times to the default's times of the same rounds.
func (t *Table) Ratio(i int) paired.Estimate {
	own, base := t.Rows[i].Nanos, t.Rows[0].Nanos
	n := min(len(own), len(base))
	return paired.Ratio(floats(own[:n]), floats(base[:n]))
}

func floats(ns []int64) []float64 {
	xs := make([]float64, len(ns))
	for i, n := range ns {
		xs[i] = float64(max(n, 1))
	}
	return xs
}

// Order lists the usable rows in order of preference: those that are faster than the default,
// fastest first, then the default. A slower candidate is no substitute when these fail, so it is
// not listed.
func (t *Table) Order() []int {
	type rated struct {
		row   int
		ratio float64
	}
	var better []rated
	for i := 1; i < len(t.Rows); i++ {
		if r := &t.Rows[i]; r.Refused != "" || len(r.Nanos) < leastRounds {
			continue
		}
		if r := t.Ratio(i); r.Hi < gain {
			better = append(better, rated{i, r.Mid})
		}
	}
	slices.SortStableFunc(better, func(a, b rated) int { return cmp.Compare(a.ratio, b.ratio) })
	order := make([]int, 0, len(better)+1)
	for _, b := range better {
		order = append(order, b.row)
	}
	return append(order, 0)
}

// Median returns the median time of a row in nanoseconds, NaN if it was not timed.
func (t *Table) Median(i int) float64 { return paired.Median(floats(t.Rows[i].Nanos)) }

// Holds reports that the table is of these candidates, in this order.
func (t *Table) Holds(names []string) bool {
	return slices.EqualFunc(t.Rows, names, func(r Row, name string) bool { return r.Name == name })
}
