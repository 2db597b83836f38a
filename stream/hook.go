package stream

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// hook calls a hook of the user's, mostly in the middle of something: locks are
// held, a plan is half bound. A panic there waits until the engine is in order
// again and goes on from there: see unlock.
func (d *Device) hook(call func()) {
	defer func() {
		if r := recover(); r != nil {
			d.hookPanic.CompareAndSwap(nil, &r)
		}
	}()
	call()
}

// unlock ends what was done under the stream's lock, and waits for a job that was
// flushed meanwhile for somebody to read, or for the device to come near to what is
// recorded: whoever else uses the stream need not. If a hook panicked, here or on
// another goroutine that ran jobs, it is the caller's turn now.
func (s *Stream) unlock() {
	due := s.due
	s.due = 0
	s.mu.Unlock()
	if due > 0 {
		moment{s.lane, due}.wait()
	}
	if s.dev.hookPanic.Load() != nil {
		s.dev.rethrow()
	}
}

func (d *Device) rethrow() {
	if r := d.hookPanic.Swap(nil); r != nil {
		panic(*r)
	}
}

func (d *Device) onCompile(k runtime.Kernel, seconds float64, err error) {
	if t := d.opts.Trace; t != nil && t.Compile != nil {
		d.hook(func() {
			t.Compile(CompileEvent{Kernel: fmt.Sprintf("%016x", k.Key()), Elapsed: time.Duration(seconds * 1e9), Err: err})
		})
	}
}

func (d *Device) onError(err error) {
	if t := d.opts.Trace; t != nil && t.Error != nil {
		d.hook(func() { t.Error(err) })
	}
}

func (d *Device) onExplore(ev ExploreEvent) {
	if t := d.opts.Trace; t != nil && t.Explore != nil {
		d.hook(func() { t.Explore(ev) })
	}
}

func (d *Device) onCache(e plancache.Event) {
	if t := d.opts.Trace; t != nil && t.Cache != nil {
		d.hook(func() {
			t.Cache(CacheEvent{Kind: e.Kind, Outcome: string(e.Outcome), Bytes: e.Bytes, Elapsed: e.Elapsed, Err: e.Err})
		})
	}
	if e.Err != nil && e.Outcome != plancache.Foreign { // which is no fault
		d.onError(e.Err)
	}
}

// tellsFlush reports that somebody wants to hear of flushes.
func (d *Device) tellsFlush() bool { return d.opts.Trace != nil && d.opts.Trace.Flush != nil }

func (d *Device) onFlush(ev FlushEvent) { d.hook(func() { d.opts.Trace.Flush(ev) }) }
