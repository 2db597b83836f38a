package device

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Hook calls a hook of the user's, mostly in the middle of something: locks are
// held, a plan is half bound. A panic there waits until the engine is in order
// again and goes on from there: see unlock.
func (d *Base) Hook(call func()) {
	defer func() {
		if r := recover(); r != nil {
			d.hookPanic.CompareAndSwap(nil, &r)
		}
	}()
	call()
}

// Rethrow goes on with the panic of a hook, if there was one.
func (d *Base) Rethrow() {
	if d.hookPanic.Load() == nil {
		return
	}
	if r := d.hookPanic.Swap(nil); r != nil {
		panic(*r)
	}
}

// OnCompile tells of a kernel that a compiler finished, or failed.
func (d *Base) OnCompile(k runtime.Kernel, seconds float64, err error) {
	if t := d.Opts.Trace; t != nil && t.Compile != nil {
		d.Hook(func() {
			t.Compile(CompileEvent{Kernel: fmt.Sprintf("%016x", k.Key()), Elapsed: time.Duration(seconds * 1e9), Err: err})
		})
	}
}

// OnError tells of a fault.
func (d *Base) OnError(err error) {
	if t := d.Opts.Trace; t != nil && t.Error != nil {
		d.Hook(func() { t.Error(err) })
	}
}

// OnExplore tells of a plan that was made.
func (d *Base) OnExplore(ev ExploreEvent) {
	if t := d.Opts.Trace; t != nil && t.Explore != nil {
		d.Hook(func() { t.Explore(ev) })
	}
}

// OnCache tells of what the cache or a bundle did, and of its faults.
func (d *Base) OnCache(e plancache.Event) {
	if t := d.Opts.Trace; t != nil && t.Cache != nil {
		d.Hook(func() {
			t.Cache(CacheEvent{Kind: e.Kind, Outcome: string(e.Outcome), Bytes: e.Bytes, Elapsed: e.Elapsed, Err: e.Err})
		})
	}
	if e.Err != nil && e.Outcome != plancache.Foreign { // which is no fault
		d.OnError(e.Err)
	}
}

// TellsFlush reports that somebody wants to hear of flushes.
func (d *Base) TellsFlush() bool { return d.Opts.Trace != nil && d.Opts.Trace.Flush != nil }

// OnFlush tells of a segment; who calls it has asked TellsFlush.
func (d *Base) OnFlush(ev FlushEvent) { d.Hook(func() { d.Opts.Trace.Flush(ev) }) }
