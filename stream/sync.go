package stream

import (
	"context"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/segment"
)

// Sync runs the queued ops and waits for them. It stops waiting when ctx is done; the work then
// continues. Sync returns the first error that was not reported before.
func (s *Stream) Sync(ctx context.Context) error {
	return s.dev.synced(ctx, &s.faults, func() {
		s.flushAll()
		s.ends.wait()
	})
}

// Sync does what Stream.Sync does, for all streams of the device.
func (d *Device) Sync(ctx context.Context) error {
	return d.synced(ctx, &d.faults, func() {
		for _, s := range d.open.list() {
			s.flushAll()
			s.ends.wait()
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
		return err // keep the faults for the next call
	}
	if e := seen.Take(); e != nil {
		return e
	}
	return err
}

// Err returns and forgets the stream's first error that was not reported before.
func (s *Stream) Err() error { return s.faults.Take() }

// Err returns and forgets the first error of any stream that was not reported before.
func (d *Device) Err() error { return d.faults.Take() }

// flushAll runs the queued ops, and returns when all submitted jobs have run.
func (s *Stream) flushAll() {
	s.mu.Lock()
	defer s.unlock()
	s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
	s.due = s.lane.Next // also wait when the queue is empty
}

// hostEnds is the last host ops of a stream, one of each lane that has not run yet. Sync waits for
// them and not for the lanes, where ops of other streams may wait for the caller.
type hostEnds struct {
	mu   sync.Mutex
	list []jobqueue.Moment
}

// note adds the last op of a lane, instead of its earlier ones.
func (h *hostEnds) note(last jobqueue.Moment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = slices.DeleteFunc(h.list, func(m jobqueue.Moment) bool { return m.Lane == last.Lane || m.Passed() })
	h.list = append(h.list, last)
}

// wait returns when the host ops noted so far have run.
func (h *hostEnds) wait() {
	h.mu.Lock()
	list := slices.Clone(h.list)
	h.mu.Unlock()
	for _, m := range list {
		m.Wait()
	}
}

// reachable lists the streams, or the lanes for host ops, of a device that are still reachable.
// Queued work keeps them reachable: the results of ops their stream, and runs of host ops their
// lane.
type reachable[T any] struct {
	mu   sync.Mutex
	refs []weak.Pointer[T]
}

func (r *reachable[T]) add(x *T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.refs); n == cap(r.refs) { // a program may open one stream per request
		r.refs = slices.DeleteFunc(r.refs, func(p weak.Pointer[T]) bool { return p.Value() == nil })
		if len(r.refs) > n/2 {
			r.refs = slices.Grow(r.refs, n)
		}
	}
	r.refs = append(r.refs, weak.Make(x))
}

func (r *reachable[T]) list() (live []*T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.refs {
		if x := p.Value(); x != nil {
			live = append(live, x)
		}
	}
	return live
}

// openNumbers returns the numbers of the streams that are neither closed nor collected.
func (d *Device) openNumbers() map[uint64]bool {
	open := map[uint64]bool{}
	for _, s := range d.open.list() {
		if !s.closed.Load() {
			open[s.num] = true
		}
	}
	return open
}
