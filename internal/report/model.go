package report

import (
	"cmp"
	"slices"
	"time"
)

// Report is the content of one page.
type Report struct {
	Made    time.Time `json:"made"`
	Program string    `json:"program"` // main module and version, if known
	Go      string    `json:"go"`      // go1.26 linux/amd64
	Machine string    `json:"machine"` // processor, if known
	Every   float64   `json:"every"`   // seconds between two writes of a page that is rewritten, else 0
	Devices []Device  `json:"devices"`

	DevicesLeft int `json:"devicesLeft"` // number of closed devices left out
}

// Device is one device. Times are microseconds since it was opened.
type Device struct {
	Name        string    `json:"name"`        // "cpu"
	Description string    `json:"description"` // adapter or instruction set
	Opened      time.Time `json:"opened"`
	Now         float64   `json:"now"` // time of the page
	Closed      bool      `json:"closed"`
	Sampled     string    `json:"sampled"` // a sentence that says which launches are timed one by one

	// Peaks, 0 if not known.
	Flops float64 `json:"flops"` // floating-point operations per second; a multiply-add counts as two
	Bytes float64 `json:"bytes"` // bytes per second, read and written

	Counters []Counter `json:"counters"`
	Plans    []Plan    `json:"plans"`
	Kernels  []Kernel  `json:"kernels"`  // longest total time first
	Rows     []string  `json:"rows"`     // of the time line: "stream 1", "exploration", ...
	Spans    []Span    `json:"spans"`    // in the order of their ends
	Findings []Finding `json:"findings"` // what made the program slower than necessary, the most frequent first
	Memory   []Point   `json:"memory"`
	Peak     Peak      `json:"peak"`

	Launch float64 `json:"launch"` // µs of a launch besides its kernel, if known

	// Numbers of omitted parts.
	SpansLeft   int64 `json:"spansLeft"`
	PlansLeft   int64 `json:"plansLeft"`
	KernelsLeft int64 `json:"kernelsLeft"`
	RunsLeft    int64 `json:"runsLeft"`    // launches of omitted kernels
	SourcesLeft int64 `json:"sourcesLeft"` // texts too long for the page
}

// Counter is a counter of Stats.
type Counter struct {
	Group string `json:"group"` // "engine", "driver", "cache on disk"
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// Finding is a waste of time, with advice.
type Finding struct {
	What  string `json:"what"` // "recomputed", "interpreted", "op by op"
	Of    string `json:"of"`   // the op or the kernel
	Line  string `json:"line"` // file:line of the program, if known
	Count int64  `json:"count"`
}

// SortFindings sorts by count, largest first, and equal counts by the other fields.
func SortFindings(list []Finding) {
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Of, b.Of))
	})
}

// Plan is one segment with its plan.
type Plan struct {
	Segment string `json:"segment"` // text form of the ops
	Text    string `json:"text"`    // text form of the plan
	Mode    string `json:"mode"`    // "best", "greedy" or "unfused"
	Ops     int    `json:"ops"`
	Runs    int64  `json:"runs"`
	Kernels []int  `json:"kernels"` // indices into Device.Kernels; -1 for an omitted one
	// Refused lists kernels that were not fused, with reasons: "kernels 0 and 1: ... (would save
	// 4096 bytes)".
	Refused []string `json:"refused"`
	Tuning  string   `json:"tuning"` // timings of the tuner, "" for none
	Lines   []string `json:"lines"`  // file:line of the program per op, if known
}

// Kernel is one kernel with the cost of its launches.
type Kernel struct {
	Key     string   `json:"key"`  // in hex
	Name    string   `json:"name"` // short, made of its ops: "mul+add+tanh", "sum", "contraction"
	Ops     string   `json:"ops"`  // canonical text
	Runs    int64    `json:"runs"`
	Timed   int64    `json:"timed"`  // number of timed launches
	Micros  float64  `json:"micros"` // of all runs, estimated from the timed ones
	Bytes   float64  `json:"bytes"`  // bytes read and written per run, mean
	Flops   float64  `json:"flops"`  // floating-point operations per run, mean
	Tier    string   `json:"tier"`   // of the newest variant
	Choice  string   `json:"choice"` // of the tuner, "" for the device's default
	Sources []Source `json:"sources"`
}

// Source is generated code of a kernel.
type Source struct {
	Tier  string `json:"tier"`  // "tier 1 avx2", "wgsl", "glsl"
	Class string `json:"class"` // class of operands that it is for
	Text  string `json:"text"`  // "" if omitted
}

// Span is something that took time. Kernel spans are within the span of a run, in its row.
type Span struct {
	Row   int     `json:"r"` // index into Device.Rows
	Kind  Kind    `json:"k"`
	Start float64 `json:"s"` // µs
	Dur   float64 `json:"d"` // µs
	Ref   int     `json:"i"` // Kind Kernel, Compile and Tune: of Device.Kernels; Run and Segment: ops; -1 for none
	Note  string  `json:"n,omitempty"`
}

// Kind is the kind of a Span.
type Kind int

const (
	Segment Kind = iota // planned, bound and submitted
	Run                 // launches of a plan, or of a recording, run
	Launch              // one of these launches
	Explore             // a plan was made
	Compile             // a kernel was compiled
	Tune                // a way to run a kernel was timed
	Cache               // a read or write of the cache on disk
	Fault               // an instant
	Host                // a host op ran, such as a collective
	Wait                // a stream waited for a host op or for another stream
)

// Point is the use of memory at one time.
type Point struct {
	Time float64 `json:"t"` // µs
	Live int64   `json:"l"` // bytes in use
	Pool int64   `json:"p"` // bytes kept for reuse
}

// Peak is the largest use of memory at one time, with its owners.
type Peak struct {
	Time   float64 `json:"t"` // µs
	Bytes  int64   `json:"b"`
	Owners []Owner `json:"owners"` // the largest first
}

// Owner is a user of memory.
type Owner struct {
	What  string `json:"what"` // "%12 f32[32,512] of plan 3", "data of the program"
	Line  string `json:"line"` // file:line of the program, if known
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}
