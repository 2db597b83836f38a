package stream

import (
	"context"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/segment"
)

// Sync runs what is queued and waits for it, or until ctx is done: then it goes on
// by itself. It returns the first error that nobody has seen yet.
func (s *Stream) Sync(ctx context.Context) error {
	return s.dev.synced(ctx, &s.faults, s.flushAll)
}

// Sync is every stream's Sync.
func (d *Device) Sync(ctx context.Context) error {
	return d.synced(ctx, &d.faults, func() {
		for _, s := range d.open.list() {
			s.flushAll()
		}
		d.plans.Flush()
	})
}

func (d *Device) synced(ctx context.Context, seen *operror.List, flush func()) error {
	err := d.Within(ctx, func() error {
		flush()
		d.mem.Boundary()
		return d.Driver.Wait(false)
	})
	if ctx != nil && err != nil && err == ctx.Err() {
		return err // a fault is for the next one to see
	}
	if e := seen.Take(); e != nil {
		return e
	}
	return err
}

// Err returns the first error that nobody has seen yet, once.
func (s *Stream) Err() error { return s.faults.Take() }

// Err returns the first error of any stream that nobody has seen yet, once.
func (d *Device) Err() error { return d.faults.Take() }

// flushAll runs what is queued, and returns when all that was submitted has run.
func (s *Stream) flushAll() {
	s.mu.Lock()
	defer s.unlock()
	s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
	s.due = s.lane.Next // there may be nothing to flush
}

// streams are those of a device that somebody can still reach. A stream with
// queued ops is reached by their results, as far as those matter.
type streams struct {
	mu   sync.Mutex
	refs []weak.Pointer[Stream]
}

func (r *streams) add(s *Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.refs); n == cap(r.refs) { // programs take one for each request
		r.refs = slices.DeleteFunc(r.refs, func(p weak.Pointer[Stream]) bool { return p.Value() == nil })
		if len(r.refs) > n/2 {
			r.refs = slices.Grow(r.refs, n)
		}
	}
	r.refs = append(r.refs, weak.Make(s))
}

func (r *streams) list() (live []*Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.refs {
		if s := p.Value(); s != nil {
			live = append(live, s)
		}
	}
	return live
}

// openNumbers are the numbers of the streams that are neither closed nor collected.
func (d *Device) openNumbers() map[uint64]bool {
	open := map[uint64]bool{}
	for _, s := range d.open.list() {
		if !s.closed.Load() {
			open[s.num] = true
		}
	}
	return open
}
