package device

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Hook calls a user's hook. Locks may be held and a plan may be half bound at that moment. Hook
// therefore keeps a panic of the hook until the engine is consistent again; Rethrow then continues
// it.
func (d *Base) Hook(call func()) {
	defer func() {
		if r := recover(); r != nil {
			d.hookPanic.CompareAndSwap(nil, &r)
		}
	}()
	call()
}

// Rethrow continues the panic of a hook, if there was one.
func (d *Base) Rethrow() {
	if d.hookPanic.Load() == nil {
		return
	}
	if r := d.hookPanic.Swap(nil); r != nil {
		panic(*r)
	}
}

// ended passes a span that ends now to the profile.
func (d *Base) ended(s profile.Span) {
	if d.Profile != nil {
		s.Start = time.Now().Add(-s.Took)
		d.Profile.Tell(s)
	}
}

// errorNote adds the error, if any, to the note of an event.
func errorNote(note string, err error) string {
	if err == nil {
		return note
	}
	if note != "" {
		note += ": "
	}
	return note + err.Error()
}

// OnCompile reports that a compiler finished a kernel, or failed.
func (d *Base) OnCompile(k runtime.Kernel, seconds float64, err error) {
	took := time.Duration(seconds * 1e9)
	d.ended(profile.Span{Row: profile.RowCompile, Kind: profile.Compile, Took: took, Key: k.Key(), Note: errorNote("", err)})
	if t := d.Opts.Trace; t != nil && t.Compile != nil {
		d.Hook(func() { t.Compile(CompileEvent{Kernel: keyText(k.Key()), Elapsed: took, Err: err}) })
	}
}

// keyText is a kernel's key in hexadecimal.
func keyText(key uint64) string { return fmt.Sprintf("%016x", key) }

// TellsTune reports whether a profile or a hook wants the steps of tuning.
func (d *Base) TellsTune() bool {
	return d.Profile != nil || d.Opts.Trace != nil && d.Opts.Trace.Tune != nil
}

// OnTune reports a step of tuning. The caller has checked TellsTune.
func (d *Base) OnTune(key uint64, ev TuneEvent) {
	d.ended(profile.Span{Row: profile.RowTune, Kind: profile.Tune, Took: ev.Elapsed * time.Duration(ev.Runs), Key: key,
		Note: errorNote(ev.Step+" "+ev.Candidate, ev.Err)})
	if ev.Step == "chosen" {
		d.Profile.Chose(key, ev.Candidate)
	}
	if t := d.Opts.Trace; t != nil && t.Tune != nil {
		ev.Kernel = keyText(key)
		d.Hook(func() { t.Tune(ev) })
	}
}

// OnError reports a fault.
func (d *Base) OnError(err error) {
	if d.Profile != nil {
		d.ended(profile.Span{Row: profile.RowFault, Kind: profile.Fault, Note: err.Error()})
	}
	if t := d.Opts.Trace; t != nil && t.Error != nil {
		d.Hook(func() { t.Error(err) })
	}
}

// TellsHostOp reports whether a profile or a hook wants host ops.
func (d *Base) TellsHostOp() bool {
	return d.Profile != nil || d.Opts.Trace != nil && d.Opts.Trace.HostOp != nil
}

// OnHostOp reports a host op that ran. The caller has checked TellsHostOp.
func (d *Base) OnHostOp(ev HostOpEvent) {
	if d.Profile != nil {
		note := errorNote(fmt.Sprintf("%s of %d bytes, stream %d", ev.Op, ev.Bytes, ev.Stream), ev.Err)
		d.Profile.Tell(profile.Span{Row: profile.RowHost, Kind: profile.Host, Start: ev.Start, Took: ev.Elapsed, Of: -1, Note: note})
	}
	if t := d.Opts.Trace; t != nil && t.HostOp != nil {
		ev.Device = d.Number
		d.Hook(func() { t.HostOp(ev) })
	}
}

// OnExplore reports a new plan.
func (d *Base) OnExplore(ev ExploreEvent) {
	note := ev.Plan
	if ev.Background {
		note += ", in the background"
	}
	d.ended(profile.Span{Row: profile.RowExplore, Kind: profile.Explore, Took: ev.Elapsed, Of: ev.Ops, Note: note})
	if t := d.Opts.Trace; t != nil && t.Explore != nil {
		d.Hook(func() { t.Explore(ev) })
	}
}

// OnCache reports an action of the cache or a bundle, and its faults.
func (d *Base) OnCache(e plancache.Event) {
	d.ended(profile.Span{Row: profile.RowCache, Kind: profile.Cache, Took: e.Elapsed, Of: int(e.Bytes), Note: errorNote(e.Kind+" "+string(e.Outcome), e.Err)})
	if t := d.Opts.Trace; t != nil && t.Cache != nil {
		d.Hook(func() {
			t.Cache(CacheEvent{Kind: e.Kind, Outcome: string(e.Outcome), Bytes: e.Bytes, Elapsed: e.Elapsed, Err: e.Err})
		})
	}
	if e.Err != nil && e.Outcome != plancache.Foreign { // Foreign is no fault
		d.OnError(e.Err)
	}
}

// TellsFlush reports whether a profile or a hook wants flushes, or the launches of flushes. In that
// case a bound recording does not run as one call, which would hide its launches.
func (d *Base) TellsFlush() bool {
	return d.Watched() || d.Opts.Trace != nil && d.Opts.Trace.Flush != nil
}

// OnFlush reports a segment that ran. The caller has checked TellsFlush.
func (d *Base) OnFlush(ev FlushEvent) {
	if d.Profile != nil {
		note := ev.Reason + ", plan " + ev.Plan
		if !ev.Hit {
			note += " is new"
		}
		d.Profile.Tell(profile.Span{Row: profile.Row(ev.Stream), Kind: profile.Segment, Start: ev.Start, Took: ev.Elapsed, Of: ev.Ops, Note: note})
	}
	if t := d.Opts.Trace; t != nil && t.Flush != nil {
		d.Hook(func() { t.Flush(ev) })
	}
}
