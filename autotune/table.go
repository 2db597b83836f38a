package autotune

import (
	"cmp"
	"slices"
	"time"

	"github.com/millrace-go/millrace/internal/paired"
)

// Table is all that is known of the candidates for one thing: the default is
// the first.
type Table struct {
	Rows []Row
}

// Row is one candidate.
type Row struct {
	Name  string  `json:"candidate"`
	Nanos []int64 `json:"nanos,omitempty"` // of the rounds that it took part in, one after another
	// Refused says why it is not used: it failed, it gave other results, or it is
	// Unconfirmed. Of the default: why nothing was timed.
	Refused string `json:"refused,omitempty"`
}

// gain is how much faster than the default a candidate must be at least, by the
// end of the interval that speaks against it, for a change to be worth it.
const gain = 0.98

// leastRounds a candidate needs to be preferred.
const leastRounds = paired.LeastPairs

// NewTable is a table of candidates of which nothing is known.
func NewTable(names []string) *Table {
	t := &Table{Rows: make([]Row, len(names))}
	for i, name := range names {
		t.Rows[i].Name = name
	}
	return t
}

// TooLong notes that a run takes so long that nothing is compared.
func (t *Table) TooLong(took time.Duration) { t.Rows[0].Refused = tooLong(took) }

// Untimed reports a table that says only why nothing was compared.
func (t *Table) Untimed() bool { return t.Rows[0].Refused != "" }

// Ratio is how the times of row i compare with the default's of the same rounds.
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

// Order lists the rows that may be used, the one to be preferred first: those
// that are faster than the default, the fastest first, then the default. What
// is slower is no help where these fail.
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

// Median time of a row in nanoseconds; NaN where it was not timed.
func (t *Table) Median(i int) float64 { return paired.Median(floats(t.Rows[i].Nanos)) }

// Holds reports that the table is of these candidates, in this order.
func (t *Table) Holds(names []string) bool {
	return slices.EqualFunc(t.Rows, names, func(r Row, name string) bool { return r.Name == name })
}
