package profile

import "time"

// Row is a row of the time line: a stream by its number, or one of the rows below.
type Row uint64

// Rows that are no stream.
const (
	RowExplore Row = 1<<32 + iota
	RowCompile
	RowTune
	RowCache
	RowFault
	RowHost
)

// Kind is the kind of a Span.
type Kind uint8

const (
	Segment  Kind = iota // planned, bound and submitted
	Run                  // launches of a list
	LaunchOf             // one of them
	Explore
	Compile
	Tune
	Cache
	Fault
	Host // op, such as a collective
	Wait // of a stream for another lane
)

// Span is something that took time.
type Span struct {
	Row   Row
	Kind  Kind
	Start time.Time
	Took  time.Duration
	Of    int    // LaunchOf, Compile, Tune: the kernel's number, -1 for none; Segment, Explore: ops; Run: launches
	Key   uint64 // Compile, Tune: key of the kernel, which may run only later
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

// span adds a span; a full ring loses the oldest. The caller holds the lock.
func (p *Profile) span(s Span) {
	if len(p.spans) < maxSpans {
		p.spans = append(p.spans, s)
		return
	}
	p.spans[p.next] = s
	p.next = (p.next + 1) % maxSpans
	p.dropped++
}

// Kernel returns the index of the kernel with that key, -1 if none has run.
func (s *State) Kernel(key uint64) int {
	for i := range s.Kernels {
		if s.Kernels[i].Key == key {
			return i
		}
	}
	return -1
}
