package autotune

import (
	"cmp"
	"slices"

	"github.com/millrace-go/millrace/internal/paired"
)

// Table is all that is known of the candidates for one thing: the default is
// the first.
type Table struct {
	Rows []Row
}

// Row is one candidate.
type Row struct {
	Name  string
	Nanos []int64 // of the rounds that it took part in, one after another
	// From is the default's round in which it began: 0, but for a combination of
	// candidates that were found faster alone.
	From int
	// Refused says why it is not used: it failed, it gave other results, or it is
	// Unconfirmed. Lacking: it could not be tried, and another process may have what
	// was lacking.
	Refused string
	Lacking bool
}

// gain is how much faster than the default a candidate must be at least, by the
// end of the interval that speaks against it, for a change to be worth it.
const gain = 0.98

// leastRounds a candidate needs to be preferred.
const leastRounds = paired.LeastPairs

// Ratio is how the times of row i compare with the default's of the same rounds.
func (t *Table) Ratio(i int) paired.Estimate {
	own, base := t.Rows[i].Nanos, t.Rows[0].Nanos
	base = base[min(t.Rows[i].From, len(base)):]
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
func (t *Table) Order() []int { return append(t.better(func(*Row) bool { return true }), 0) }

// Won lists those of the candidates proper that are faster than the default, the
// fastest first: what a combination of them is made of.
func (t *Table) Won() []int { return t.better(func(r *Row) bool { return r.From == 0 }) }

func (t *Table) better(among func(*Row) bool) []int {
	type rated struct {
		row   int
		ratio float64
	}
	var better []rated
	for i := 1; i < len(t.Rows); i++ {
		if r := &t.Rows[i]; !among(r) || r.Refused != "" || len(r.Nanos) < leastRounds {
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
	return order
}

// Median time of a row in nanoseconds; NaN where it was not timed.
func (t *Table) Median(i int) float64 { return paired.Median(floats(t.Rows[i].Nanos)) }

// Unfit is the table of something that is not tuned: its default was not timed.
func Unfit(names []string, why error) *Table {
	t := &Table{Rows: make([]Row, len(names))}
	for i, name := range names {
		t.Rows[i].Name = name
	}
	t.Rows[0].Refused = why.Error()
	return t
}

// Unfit says why the default was not timed, which is an ErrTooLong; nil where it was.
func (t *Table) Unfit() error {
	if why := t.Rows[0].Refused; why != "" {
		return unfit(why)
	}
	return nil
}

// unfit is what a table says of its default.
type unfit string

func (e unfit) Error() string { return string(e) }

func (e unfit) Is(target error) bool { return target == ErrTooLong || target == ErrUnfit }

// Lacking lists candidates that could not be tried: see Row.
func (t *Table) Lacking() (rows []int) {
	for i := range t.Rows {
		if t.Rows[i].Lacking {
			rows = append(rows, i)
		}
	}
	return rows
}

// Holds reports that the table is of these candidates, in this order, and at most
// one combination of them. Whether its name is that of Won is for the caller to say.
func (t *Table) Holds(names []string) bool {
	n := len(names)
	if len(t.Rows) < n || len(t.Rows) > n+1 {
		return false
	}
	for i, r := range t.Rows {
		if i < n && r.Name != names[i] || (r.From > 0) != (i == n) {
			return false
		}
	}
	return true
}
