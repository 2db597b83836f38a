package main

import (
	"encoding/json"

	"github.com/millrace-go/millrace/internal/hostinfo"
	"github.com/millrace-go/millrace/internal/paired"
)

// A Report is what one call found. Its JSON is kept beside the tables: samples are
// there, ratios can be taken again.
type Report struct {
	Machine     hostinfo.Machine  `json:"machine"`
	Threads     int               `json:"threads"`
	Rounds      int               `json:"rounds"`
	WarmUps     int               `json:"warm_ups"`
	Environment map[string]string `json:"environment,omitempty"` // what was set of the variables that libraries heed
	Contestants []*Presence       `json:"contestants"`
	Workloads   []*Result         `json:"workloads"`
}

// A Presence says which versions a contestant uses, or why it is missing.
type Presence struct {
	Name     string            `json:"name"`
	Kept     bool              `json:"kept,omitempty"`
	Ours     bool              `json:"ours,omitempty"`
	Versions map[string]string `json:"versions,omitempty"`
	Missing  string            `json:"missing,omitempty"`
}

// A Result has a workload's entries, of every contestant that is installed.
type Result struct {
	Name      string   `json:"name"`
	About     string   `json:"about"`
	Bound     string   `json:"bound"`
	Shapes    []shape  `json:"shapes"`
	Runs      int      `json:"runs"` // in one sample
	Tolerance float64  `json:"tolerance"`
	Floor     float64  `json:"floor"`
	Entries   []*Entry `json:"entries"`
}

// The outcomes of a contestant in a workload.
const (
	ok          = "ok"
	unsupported = "unsupported" // the library has no such operations
	failed      = "failed"      // it ended, gave no answer, or another one than it was asked for
	disagrees   = "disagrees"   // with the oracle: its times count for nothing and are left out
)

// An Entry is what one contestant did in one workload.
type Entry struct {
	Contestant string    `json:"contestant"`
	Status     string    `json:"status"`
	Why        string    `json:"why,omitempty"`
	Error      float64   `json:"error,omitempty"`   // the largest, in the tolerance's units
	Seconds    []float64 `json:"seconds,omitempty"` // of one run, a sample per round
}

// bad says that the command must not end as if all were well.
func (e *Entry) bad() bool { return e.Status == failed || e.Status == disagrees }

// entry is a contestant's, or nil.
func (r *Result) entry(contestant string) *Entry {
	for _, e := range r.Entries {
		if e.Contestant == contestant {
			return e
		}
	}
	return nil
}

// base is the entry that others are compared with: the first of ours that ran.
func (r *Report) base(w *Result) *Entry {
	for _, c := range r.Contestants {
		if e := w.entry(c.Name); c.Ours && e != nil && e.Status == ok {
			return e
		}
	}
	return nil
}

// ratio is an entry's time over the base's, round by round, and whether the entry
// is ahead by more than an interval of 95 %, which few rounds do not have.
func ratio(e, base *Entry) (est paired.Estimate, ahead bool) {
	est = paired.Ratio(e.Seconds, base.Seconds)
	return est, est.Hi < 1 && len(e.Seconds) >= paired.LeastPairs
}

// failures are the entries that make the command fail.
func (r *Report) failures() (list []string) {
	for _, w := range r.Workloads {
		for _, e := range w.Entries {
			if e.bad() {
				list = append(list, w.Name+", "+e.Contestant+" "+e.Status+": "+e.Why)
			}
		}
		if r.base(w) == nil {
			list = append(list, w.Name+": nothing of ours to compare with")
		}
	}
	return list
}

// json is the report with a line for each entry.
func (r *Report) json() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", " ")
	return append(b, '\n'), err
}
