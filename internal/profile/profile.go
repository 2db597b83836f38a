package profile

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Profile is what is known of one device. Its methods may be called by many at a time,
// those of nil do nothing.
type Profile struct {
	Opened time.Time
	// Memory gives the bytes that are handed out and those kept for reuse.
	Memory func() (live, pool int64)
	// Owners gives who has memory now, the largest first.
	Owners func() []Owner

	mu      sync.Mutex
	byKey   map[uint64]int
	byProg  map[runtime.Program]int // to find a key takes printing the kernel
	kernels []*Kernel
	left    Kernel            // sums of those for which there was no room
	choices map[uint64]string // of the tuner, by key
	lists   map[*List]struct{}
	spans   []Span // a ring, when it is full
	next    int
	dropped int64
	points  points
	peak    Peak
	found   map[Finding]int64 // by what, op and line; their Count is 0
}

// New is an empty profile that starts now.
func New() *Profile {
	return &Profile{Opened: time.Now(), byKey: map[uint64]int{}, byProg: map[runtime.Program]int{}, choices: map[uint64]string{}, lists: map[*List]struct{}{}, found: map[Finding]int64{}}
}

// Bounds of what is kept.
const (
	maxKernels = 4096
	maxSpans   = 16384
	maxLists   = 4096
)

// Kernel is what launches of a kernel cost.
type Kernel struct {
	Key         uint64
	Name, Text  string
	Choice      string // of the tuner, "" where it made none
	Runs, Timed int64
	Nanos       float64 // of all runs
	Bytes       float64 // of all runs, read and written
	Flops       float64 // of all runs

	counted *codegen.Kernel // the kernel as primitives, whose operations are counted
}

// List is what is known of a list of launches that runs again and again. The zero List is
// of one that did not run.
type List struct {
	mu      sync.Mutex
	runs    int64
	pending int64 // runs since the last timed one
	last    []cost

	elsewhere atomic.Int64
}

// Elsewhere counts a run within another list, which has its times.
func (l *List) Elsewhere() {
	if l != nil {
		l.elsewhere.Add(1)
	}
}

// Runs is how often it ran, as a part of others included.
func (l *List) Runs() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs + l.elsewhere.Load()
}

// cost is that of a launch.
type cost struct {
	kernel              int // its number, -1 where there was no room
	nanos, bytes, flops float64
}

// Every is how many runs lie at most between two that are timed launch by launch.
const Every = 32

// Due reports that the list's next run is to be timed launch by launch. A run of its own
// for each launch takes away what a device does for a list as a whole, so that it must be
// rare: the first, the third, the eighth, the sixteenth and then each Every-th.
func (l *List) Due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n := l.runs + 1; n {
	case 1, 3, 8, 16:
		return true
	default:
		return n%Every == 0
	}
}

// Whole tells of a run that was not timed launch by launch.
func (p *Profile) Whole(l *List, row Row, start time.Time, launches int, waited bool) {
	took := time.Since(start)
	l.mu.Lock()
	l.runs++
	l.pending++
	first := l.pending == 1
	l.mu.Unlock()
	if p == nil {
		return
	}
	note := ""
	if !waited {
		note = "handed over"
	}
	p.mu.Lock()
	if first {
		if len(p.lists) >= maxLists {
			p.settle()
		}
		p.lists[l] = struct{}{}
	}
	p.span(Span{Row: row, Kind: Run, Start: start, Took: took, Of: launches, Note: note})
	p.mu.Unlock()
	p.remember()
}

// Launch is one launch of a list, or one chain, that was timed.
type Launch struct {
	Start time.Time
	Took  time.Duration
	First int // in the list
	N     int // of a chain, else 1
}

// Timed tells of a run of a list each of whose launches was timed.
func (p *Profile) Timed(l *List, row Row, start time.Time, took time.Duration, list []runtime.Launch, elemSize *[ir.NumDTypes]int, timed []Launch) {
	if p == nil {
		l.mu.Lock()
		l.runs++
		l.mu.Unlock()
		return
	}
	counted := p.counted(list)
	costs := make([]cost, 0, len(list))
	for _, t := range timed {
		costs = append(costs, shares(list[t.First:t.First+t.N], counted[t.First:t.First+t.N], elemSize, t.Took)...)
	}
	p.mu.Lock()
	defer p.remember()
	defer p.mu.Unlock()
	l.mu.Lock()
	runs := l.pending + 1 // those before were hardly slower than this one, unlike the first
	l.runs, l.pending, l.last = l.runs+1, 0, costs
	l.mu.Unlock()
	delete(p.lists, l)
	p.span(Span{Row: row, Kind: Run, Start: start, Took: took, Of: len(list)})
	for i := range costs {
		k := p.kernel(list[i].Prog)
		if costs[i].kernel = k; k >= 0 {
			p.kernels[k].Timed++
		}
	}
	for _, t := range timed {
		note := ""
		if t.N > 1 {
			note = "a chain, tile by tile"
		}
		p.span(Span{Row: row, Kind: LaunchOf, Start: t.Start, Took: t.Took, Of: costs[t.First].kernel, Note: note})
	}
	p.add(costs, runs)
}

// counted are the launches' kernels as primitives, nil for what is no kernel of the engine.
func (p *Profile) counted(list []runtime.Launch) []*codegen.Kernel {
	p.mu.Lock()
	defer p.mu.Unlock()
	ks := make([]*codegen.Kernel, len(list))
	for i := range list {
		k, ok := list[i].Prog.Kernel().(*codegen.Kernel)
		if !ok {
			continue
		}
		ks[i] = k // where there is no room to keep more, a function counts as one operation
		n := p.kernel(list[i].Prog)
		if n < 0 {
			continue
		}
		known := p.kernels[n]
		if known.counted == nil {
			known.counted = k
			if c, err := codegen.Counted(k); err == nil {
				known.counted = c
			}
		}
		ks[i] = known.counted
	}
	return ks
}

// shares are the costs of launches that took so long together: by how much they move and
// compute.
func shares(list []runtime.Launch, counted []*codegen.Kernel, elemSize *[ir.NumDTypes]int, took time.Duration) []cost {
	costs := make([]cost, len(list))
	sum := 0.0
	for i := range list {
		k, ok := list[i].Prog.Kernel().(*codegen.Kernel)
		if !ok {
			continue
		}
		r, w := codegen.Traffic(k, &list[i], elemSize)
		c := cost{bytes: float64(r + w), flops: codegen.Operations(counted[i], &list[i])}
		costs[i] = c
		sum += c.bytes + c.flops
	}
	for i := range costs {
		part := 1 / float64(len(costs))
		if sum > 0 {
			part = (costs[i].bytes + costs[i].flops) / sum
		}
		costs[i].nanos = part * float64(took)
	}
	return costs
}

// add counts so many runs. The lock is held.
func (p *Profile) add(costs []cost, runs int64) {
	if runs == 0 {
		return
	}
	for _, c := range costs {
		k := &p.left
		if c.kernel >= 0 {
			k = p.kernels[c.kernel]
		}
		n := float64(runs)
		k.Runs += runs
		k.Nanos += n * c.nanos
		k.Bytes += n * c.bytes
		k.Flops += n * c.flops
	}
}

// kernel is the number of a program's kernel, -1 where there is no room. The lock is held.
func (p *Profile) kernel(prog runtime.Program) int {
	if i, ok := p.byProg[prog]; ok {
		return i
	}
	k, ok := prog.Kernel().(*codegen.Kernel)
	if !ok {
		return -1
	}
	key := k.Key()
	i, ok := p.byKey[key]
	if !ok {
		if len(p.kernels) == maxKernels {
			return -1
		}
		i = len(p.kernels)
		p.byKey[key] = i
		p.kernels = append(p.kernels, &Kernel{Key: key, Name: k.Name(), Text: k.String()})
	}
	if len(p.byProg) == maxKernels {
		clear(p.byProg) // nobody else may have them any more
	}
	p.byProg[prog] = i
	return i
}

// Chose tells what the tuner has a kernel run by from now on, at some sizes.
func (p *Profile) Chose(key uint64, candidate string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.choices) < maxKernels || p.choices[key] != "" {
		p.choices[key] = candidate
	}
}

// settle counts the runs that wait for it. The lock is held.
func (p *Profile) settle() {
	for l := range p.lists {
		l.mu.Lock()
		p.add(l.last, l.pending)
		l.pending = 0
		l.mu.Unlock()
	}
	clear(p.lists)
}

// Work is how long all launches took, and which share of that they would have taken at
// least, each at the nearer of two roofs: operations and bytes a second. The share is 0
// where a roof is not known.
func (p *Profile) Work(flops, bytes float64) (took time.Duration, share float64) {
	if p == nil {
		return 0, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	sum, least := 0.0, 0.0
	for _, k := range slices.Concat(p.kernels, []*Kernel{&p.left}) {
		sum += k.Nanos
		if flops > 0 && bytes > 0 {
			least += 1e9 * max(k.Flops/flops, k.Bytes/bytes)
		}
	}
	if sum > 0 {
		share = least / sum
	}
	return time.Duration(sum), share
}

// State is a copy of what a profile knows.
type State struct {
	Kernels []Kernel // in the order of their first launches; spans name them by number
	Left    Kernel   // sums of those for which there was no room
	Spans   []Span   // in the order of their ends
	Dropped int64    // spans that are not there any more
	Points  []Point
	Peak    Peak
	Found   []Finding
}

// State copies it.
func (p *Profile) State() State {
	p.remember()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	s := State{Left: p.left, Dropped: p.dropped, Points: slices.Clone(p.points.list), Peak: p.peak, Found: p.findings()}
	for _, k := range p.kernels {
		k.Choice = p.choices[k.Key]
		s.Kernels = append(s.Kernels, *k)
	}
	s.Spans = append(append(s.Spans, p.spans[p.next:]...), p.spans[:p.next]...)
	return s
}
