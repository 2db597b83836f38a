// Package report is the page that shows what devices ran: one HTML file without
// references to others. It knows nothing of the engine: what there is to show is a
// Report, which package millrace fills.
package report

import (
	"cmp"
	"slices"
	"time"
)

// Report is what one page shows.
type Report struct {
	Made    time.Time `json:"made"`
	Program string    `json:"program"` // main module and version, as far as known
	Go      string    `json:"go"`      // go1.26 linux/amd64
	Machine string    `json:"machine"` // processor, as far as known
	Every   float64   `json:"every"`   // seconds between two writings of a page that is written again and again, 0 for one that is not
	Devices []Device  `json:"devices"`

	DevicesLeft int `json:"devicesLeft"` // closed ones that are left out
}

// Device is one device, from when it was opened. Times are microseconds since then.
type Device struct {
	Name        string    `json:"name"`        // "cpu"
	Description string    `json:"description"` // adapter or instruction set
	Opened      time.Time `json:"opened"`
	Now         float64   `json:"now"` // when the page was made
	Closed      bool      `json:"closed"`
	Sampled     string    `json:"sampled"` // which launches are timed one by one, in a sentence

	// Peaks, 0 where they are not known.
	Flops float64 `json:"flops"` // floating-point operations a second, two for a multiply-add
	Bytes float64 `json:"bytes"` // a second, read and written

	Counters []Counter `json:"counters"`
	Plans    []Plan    `json:"plans"`
	Kernels  []Kernel  `json:"kernels"`  // those that took longest first
	Rows     []string  `json:"rows"`     // of the time line: "stream 1", "exploration", ...
	Spans    []Span    `json:"spans"`    // in the order of their ends
	Findings []Finding `json:"findings"` // what made the program slower than it need be, the costliest first
	Memory   []Point   `json:"memory"`
	Peak     Peak      `json:"peak"`

	Launch float64 `json:"launch"` // µs that a launch takes beside its kernel, as far as known

	// What is left out, counted.
	SpansLeft   int64 `json:"spansLeft"`
	PlansLeft   int64 `json:"plansLeft"`
	KernelsLeft int64 `json:"kernelsLeft"`
	RunsLeft    int64 `json:"runsLeft"`    // launches of kernels that are left out
	SourcesLeft int64 `json:"sourcesLeft"` // texts that are too long for the page
}

// Counter is a counter of Stats.
type Counter struct {
	Group string `json:"group"` // "engine", "driver", "cache on disk"
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Finding is something that took time for nothing, and what to do about it.
type Finding struct {
	What  string `json:"what"` // "recomputed", "interpreted", "op by op"
	Of    string `json:"of"`   // the op or the kernel
	Line  string `json:"line"` // file:line of the program, as far as known
	Count int64  `json:"count"`
}

// SortFindings puts the most frequent first, and equal counts in an order of their own.
func SortFindings(list []Finding) {
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Of, b.Of))
	})
}

// Plan is one segment and how it is run.
type Plan struct {
	Segment string `json:"segment"` // text form of the ops
	Text    string `json:"text"`    // text form of the plan
	Mode    string `json:"mode"`    // "best", "greedy" or "unfused"
	Ops     int    `json:"ops"`
	Runs    int64  `json:"runs"`
	Kernels []int  `json:"kernels"` // indices into Device.Kernels; -1 for one that is left out
	// Refused says what was not fused, and why: "kernels 0 and 1: ... (would save 4096 bytes)".
	Refused []string `json:"refused"`
	Tuning  string   `json:"tuning"` // what the tuner timed, "" for nothing
	Lines   []string `json:"lines"`  // file:line of the program per op, as far as known
}

// Kernel is one kernel and what its launches cost.
type Kernel struct {
	Key     string   `json:"key"`  // in hex
	Name    string   `json:"name"` // short, of its ops: "mul+add+tanh", "sum", "contraction"
	Ops     string   `json:"ops"`  // canonical text
	Runs    int64    `json:"runs"`
	Timed   int64    `json:"timed"`  // of these, launches that were timed
	Micros  float64  `json:"micros"` // of all runs, by what the timed ones took
	Bytes   float64  `json:"bytes"`  // read and written by a run, mean
	Flops   float64  `json:"flops"`  // floating-point operations of a run, mean
	Tier    string   `json:"tier"`   // of the newest variant
	Choice  string   `json:"choice"` // of the tuner, "" for the device's own
	Sources []Source `json:"sources"`
}

// Source is code that was made for a kernel.
type Source struct {
	Tier  string `json:"tier"`  // "tier 1 avx2", "wgsl", "glsl"
	Class string `json:"class"` // of operands that it is for
	Text  string `json:"text"`  // "" where it is left out
}

// Span is something that took time. Kernel spans lie within a run's, in its row.
type Span struct {
	Row   int     `json:"r"` // index into Device.Rows
	Kind  Kind    `json:"k"`
	Start float64 `json:"s"` // µs
	Dur   float64 `json:"d"` // µs
	Ref   int     `json:"i"` // Kind Kernel, Compile and Tune: of Device.Kernels; Run and Segment: ops; -1 for none
	Note  string  `json:"n,omitempty"`
}

// Kind is what a Span is of.
type Kind int

const (
	Segment Kind = iota // planned, bound and handed over to run
	Run                 // launches of a plan, or of a recording, run
	Launch              // one launch of these
	Explore             // a plan was made
	Compile             // a kernel was compiled
	Tune                // a way to run a kernel was timed
	Cache               // the cache on disk was asked, or written to
	Fault               // an instant
)

// Point is the memory at a time.
type Point struct {
	Time float64 `json:"t"` // µs
	Live int64   `json:"l"` // bytes handed out
	Pool int64   `json:"p"` // bytes kept for reuse
}

// Peak is the most that was handed out at a time, and to whom.
type Peak struct {
	Time   float64 `json:"t"` // µs
	Bytes  int64   `json:"b"`
	Owners []Owner `json:"owners"` // the largest first
}

// Owner is who has memory.
type Owner struct {
	What  string `json:"what"` // "%12 f32[32,512] of plan 3", "data of the program"
	Line  string `json:"line"` // file:line of the program, as far as known
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}
