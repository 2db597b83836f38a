package stream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/memory"
)

// A tape is bound after it was played: the launches of its parts and the memory of their
// intermediate results are kept as one list. A run then only supplies the memory of arguments,
// states and results. The plans of the parts, the choices for their launches and the shared use
// of memory stay as they were found, as long as the plan store and the tuner would decide the
// same.

// bounds are the Bounds of a tape, one for each lane that runs it at the same time.
type bounds struct {
	mu   sync.Mutex
	list []*exec.Bound
	seen bool // the tape was played before
	rest int  // plays before the next try to bind the tape; last: the value of rest after the next failure
	last int
}

const (
	// mostBounds is the largest number of Bounds of a tape, each with memory of its own.
	mostBounds = 4
	// longestRest is the largest number of plays before the next try to bind a tape.
	longestRest = 16
)

// claim reserves a Bound for a run on the stream, or makes a new one. It returns nil if the parts
// have to be queued. The lock is held.
func (t *Tape) claim(s *Stream) *exec.Bound {
	if s.dev.Opts.Check || s.taping != nil || s.trial != nil || len(t.parts) == 0 {
		return nil
	}
	x := &t.bounds
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := 0; i < len(x.list); i++ {
		b := x.list[i]
		if !b.Claim(s.lane) {
			if b.Over() { // another user took its memory, or a run failed
				x.list = slices.Delete(x.list, i, i+1)
				b.Drop()
				x.later()
				i--
			}
			continue
		}
		if s.current(t, b) {
			s.dev.kept.use(b)
			x.last = 0
			return b
		}
		b.Unclaim()
		x.list = slices.Delete(x.list, i, i+1)
		b.Drop()
		x.rest = 1 // the present plans run once before they are bound
		i--
	}
	if !x.seen || x.rest > 0 { // the first play finds the plans
		x.seen, x.rest = true, max(0, x.rest-1)
		return nil
	}
	if len(x.list) >= mostBounds {
		return nil
	}
	b := s.sketch(t, false)
	if b == nil {
		x.later()
		return nil
	}
	x.list = append(x.list, b)
	return b
}

// later postpones the next try to bind the tape. The wait doubles with each failure, until a
// Bound runs a second time. mu is held.
func (x *bounds) later() { x.rest, x.last = x.last, min(2*x.last+1, longestRest) }

// drop drops all Bounds.
func (x *bounds) drop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, b := range x.list {
		b.Drop()
	}
	x.list = nil
}

// current reports that each part would still run in the way in which it is bound. The lock is
// held.
func (s *Stream) current(t *Tape, b *exec.Bound) bool {
	trie := s.dev.plans.Trie
	i := 0
	for part := range t.segments {
		at := trie.Find(part.node.Load(), part.end)
		if at == nil || !b.Current(&s.dev.tune, i, at.Plans()) {
			return false
		}
		i++
	}
	return true
}

// segments yields the parts that are segments.
func (t *Tape) segments(yield func(*tapePart) bool) {
	for _, part := range t.parts {
		if part.host == nil && !yield(part) {
			return
		}
	}
}

// replay runs the tape in a Bound. It returns false if memory is lacking. The parts then have to
// be queued, and some handles that the tape sets may be set already. The lock is held.
func (p *playing) replay(b *exec.Bound, out []*Value) bool {
	s, t := p.s, p.t
	told := s.dev.TellsFlush()
	var start time.Time
	if told {
		start = time.Now()
	}
	p.beginOuts(out)
	for _, part := range t.parts {
		for _, r := range part.results {
			if v := p.made[r.product]; v != nil {
				v.home, v.dt, v.form, v.state = s, r.dt, r.form, stPending
			}
		}
	}
	p.setAll()
	r, err := b.Replay(&s.bind, p.inputs)
	if err != nil {
		b.Unclaim()
		return false
	}
	t.users.Add(1) // until the run has ended
	for i, n := range t.outliving {
		v, st := p.made[n], r.Result(i)
		st.RetainAs(memory.Handles)
		v.state = stReady
		v.mem.Store(st)
		if v.unscoped() {
			st.Watch()
		}
	}
	c := &s.dev.Counts
	n := b.Parts()
	last := uint64(c.Segments.Add(int64(n)))
	r.Segment = last - uint64(n) + 1
	first := r.Segment
	r.Submit(!p.wait)
	s.submitted(p.wait)
	c.Replays.Add(1)
	c.Hits.Add(int64(n))
	c.Kernels.Add(int64(b.Kernels()))
	c.Aliases.Add(b.Aliases)
	i := 0
	for part := range t.segments {
		ops, kernels, plan := b.Part(i)
		c.Ops.Add(int64(ops))
		if told {
			s.dev.OnFlush(device.FlushEvent{Device: s.dev.Number, Stream: s.num, Segment: first + uint64(i), Reason: part.end.Reason.String(), Ops: ops, Kernels: kernels,
				Hit: true, Plan: plan, Start: start, Elapsed: time.Since(start)})
		}
		i++
	}
	p.finish(out)
	return true
}

// kept are the Bounds of a device. They give up their memory when the program needs it.
type kept struct {
	mu    sync.Mutex
	list  []weak.Pointer[exec.Bound]
	clock atomic.Uint64
}

// add counts a Bound among those that hold memory, with at most the given bytes in total. To make
// room it drops the Bounds that were used longest ago. It returns false if there is no room.
func (k *kept) add(b *exec.Bound, most int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.use(b)
	bytes := b.Bytes
	for _, x := range k.live() {
		bytes += x.Bytes
	}
	for bytes > most {
		freed, any := k.dropOldest()
		if !any {
			return false
		}
		bytes -= freed
	}
	k.list = append(k.list, weak.Make(b))
	return true
}

// use notes that a Bound runs now.
func (k *kept) use(b *exec.Bound) { b.Used.Store(k.clock.Add(1)) }

// live returns the Bounds that still have memory.
func (k *kept) live() (list []*exec.Bound) {
	left := k.list[:0]
	for _, p := range k.list {
		if b := p.Value(); b != nil && b.Holds() {
			list, left = append(list, b), append(left, p)
		}
	}
	clear(k.list[len(left):])
	k.list = left
	return list
}

// dropOldest takes the memory of the Bound that was used longest ago and does not run.
func (k *kept) dropOldest() (bytes int64, any bool) {
	list := k.live()
	slices.SortFunc(list, func(a, b *exec.Bound) int { return int(a.Used.Load()) - int(b.Used.Load()) })
	for _, b := range list {
		if b.Yield() {
			return b.Bytes, true
		}
	}
	return 0, false
}

// yield takes the memory of all Bounds that do not run. It reports whether it freed any.
func (k *kept) yield() (some bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		bytes, any := k.dropOldest()
		if !any {
			return some
		}
		some = some || bytes > 0
	}
}
