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

// Profile is the record of one device. Its methods are safe for concurrent use; those of nil do
// nothing.
type Profile struct {
	Opened time.Time
	// Memory returns the bytes in use and those kept for reuse.
	Memory func() (live, pool int64)
	// Owners returns the current users of memory, the largest first.
	Owners func() []Owner

	mu      sync.Mutex
	byKey   map[uint64]int
	byProg  map[runtime.Program]int // to find a key takes printing the kernel
	kernels []*Kernel
	left    Kernel            // sums of the kernels beyond the limit
	choices map[uint64]string // of the tuner, by key
	lists   map[*List]struct{}
	spans   []Span // a ring, when it is full
	next    int
	dropped int64
	points  points
	peak    Peak
	found   map[Finding]int64 // by What, Of and Line; the Count of the key is 0
}

// New makes an empty profile that starts now.
func New() *Profile {
	return &Profile{Opened: time.Now(), byKey: map[uint64]int{}, byProg: map[runtime.Program]int{}, choices: map[uint64]string{}, lists: map[*List]struct{}{}, found: map[Finding]int64{}}
}

// Bounds of the record.
const (
	maxKernels = 4096
	maxSpans   = 16384
	maxLists   = 4096
)

// Kernel is a kernel with the cost of its launches.
type Kernel struct {
	Key         uint64
	Name, Text  string
	Choice      string // of the tuner, "" if it made none
	Runs, Timed int64
	Nanos       float64 // of all runs
	Bytes       float64 // of all runs, read and written
	Flops       float64 // of all runs

	counted *codegen.Kernel // the kernel as primitives, whose operations are counted
}

// List is the record of a list of launches that runs repeatedly. The zero List has not run.
type List struct {
	mu      sync.Mutex
	runs    int64
	pending int64 // runs since the last timed one
	last    []cost

	elsewhere atomic.Int64
}

// Elsewhere counts a run as part of another list, which has its times.
func (l *List) Elsewhere() {
	if l != nil {
		l.elsewhere.Add(1)
	}
}

// Runs is the number of runs, including those as parts of other lists.
func (l *List) Runs() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs + l.elsewhere.Load()
}

// cost is the cost of a launch.
type cost struct {
	kernel              int // its index, -1 if beyond the limit
	nanos, bytes, flops float64
}

// Every is the largest number of runs from one run that is timed launch by launch to the next.
const Every = 32

// Due reports whether the list's next run should be timed launch by launch. Separate runs of
// launches prevent a device's optimisations for whole lists, so they must be rare: the first, the
// third, the eighth, the sixteenth and then each Every-th run.
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

// Whole records a run that was not timed launch by launch.
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

// Launch is a timed launch of a list, or a timed chain.
type Launch struct {
	Start time.Time
	Took  time.Duration
	First int // index in the list
	N     int // length of a chain, else 1
}

// Timed records a run of a list with the time of each launch.
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
	runs := l.pending + 1 // earlier runs were hardly slower than this one, unlike the first
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

// counted returns the launches' kernels as primitives, nil for programs without a kernel of the
// engine.
func (p *Profile) counted(list []runtime.Launch) []*codegen.Kernel {
	p.mu.Lock()
	defer p.mu.Unlock()
	ks := make([]*codegen.Kernel, len(list))
	for i := range list {
		k, ok := list[i].Prog.Kernel().(*codegen.Kernel)
		if !ok {
			continue
		}
		ks[i] = k // beyond the limit a function counts as one operation
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

// shares divides the time of launches that ran together, in proportion to their bytes and
// operations.
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

// add counts runs. The caller holds the lock.
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

// kernel returns the index of a program's kernel, -1 if beyond the limit. The caller holds the
// lock.
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
		clear(p.byProg) // other users may have dropped these programs
	}
	p.byProg[prog] = i
	return i
}

// Chose records the tuner's choice for a kernel, from now on, at some sizes.
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

// settle counts the pending runs. The caller holds the lock.
func (p *Profile) settle() {
	for l := range p.lists {
		l.mu.Lock()
		p.add(l.last, l.pending)
		l.pending = 0
		l.mu.Unlock()
	}
	clear(p.lists)
}

// Work returns the time of all launches, and the share of it that they would take at least, each at
// the nearer of two peaks: operations and bytes per second. The share is 0 if a peak is not known.
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

// State is a copy of a profile's data.
type State struct {
	Kernels []Kernel // in the order of their first launches; spans refer to them by index
	Left    Kernel   // sums of the kernels beyond the limit
	Spans   []Span   // in the order of their ends
	Dropped int64    // number of spans that were overwritten
	Points  []Point
	Peak    Peak
	Found   []Finding
}

// State copies the profile's data.
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
