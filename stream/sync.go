package stream

import (
	"context"
	"slices"
	"sync"
	"weak"

	"github.com/millrace-go/millrace/segment"
)

// Sync runs what is queued and waits for it. It returns the first error that
// nobody has seen yet.
func (s *Stream) Sync(ctx context.Context) error {
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	s.flushAll()
	return s.dev.finish(ctx, &s.faults, nil)
}

// Sync is every stream's Sync.
func (d *Device) Sync(ctx context.Context) error {
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, s := range d.open.list() {
		s.flushAll()
	}
	return d.finish(ctx, &d.faults, d.plans)
}

// orBackground is what a nil context means: nobody will call it off.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

// Err returns the first error that nobody has seen yet, once.
func (s *Stream) Err() error { return s.faults.take() }

// Err returns the first error of any stream that nobody has seen yet, once.
func (d *Device) Err() error { return d.faults.take() }

func (s *Stream) flushAll() {
	s.mu.Lock()
	defer s.unlock()
	s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, true)
}

// finish waits until what was submitted is done and these plans are saved, or
// ctx is.
func (d *Device) finish(ctx context.Context, seen *faults, plans *planStore) error {
	done := make(chan error, 1)
	go func() {
		d.exec.drain()
		plans.flush()
		done <- d.drv.Wait(false)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-done:
		d.rethrow()
		if e := seen.take(); e != nil {
			return e
		}
		return err
	}
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

// faults are errors that nobody may have seen yet, in order; those somebody saw
// meanwhile are passed over.
type faults struct {
	mu     sync.Mutex
	unseen []*OpError
}

// maxUnseen bounds the errors kept for Err: a loop that never asks makes one
// per turn.
const maxUnseen = 64

func (f *faults) add(e *OpError) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unseen) == maxUnseen {
		f.unseen = slices.DeleteFunc(f.unseen, func(e *OpError) bool { return e.seen.Load() })
	}
	if len(f.unseen) < maxUnseen {
		f.unseen = append(f.unseen, e)
	}
}

func (f *faults) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.unseen) > 0 {
		e := f.unseen[0]
		f.unseen = f.unseen[1:]
		if !e.seen.Swap(true) {
			return e
		}
	}
	return nil
}
