package profile

import "time"

// Row is where a span is on a time line: a stream by its number, or one of those below.
type Row uint64

// Rows that are no stream.
const (
	RowExplore Row = 1<<32 + iota
	RowCompile
	RowTune
	RowCache
	RowFault
)

// Kind is what a Span is of.
type Kind uint8

const (
	Segment  Kind = iota // planned, bound and handed over to run
	Run                  // launches of a list
	LaunchOf             // one of these
	Explore
	Compile
	Tune
	Cache
	Fault
)

// Span is something that took time.
type Span struct {
	Row   Row
	Kind  Kind
	Start time.Time
	Took  time.Duration
	Of    int    // LaunchOf, Compile, Tune: the kernel's number, -1 for none; Segment, Explore: ops; Run: launches
	Key   uint64 // Compile, Tune: of the kernel, which may run later only
	Note  string
}

// Tell adds a span.
func (p *Profile) Tell(s Span) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.span(s)
}

// span adds one, in the place of the oldest where there are too many. The lock is held.
func (p *Profile) span(s Span) {
	if len(p.spans) < maxSpans {
		p.spans = append(p.spans, s)
		return
	}
	p.spans[p.next] = s
	p.next = (p.next + 1) % maxSpans
	p.dropped++
}

// Kernel is the number of the kernel with that key, -1 where none has run.
func (s *State) Kernel(key uint64) int {
	for i := range s.Kernels {
		if s.Kernels[i].Key == key {
			return i
		}
	}
	return -1
}
