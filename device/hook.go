package device

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace/internal/profile"
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

// ended tells the profile of what ends now.
func (d *Base) ended(s profile.Span) {
	if d.Profile != nil {
		s.Start = time.Now().Add(-s.Took)
		d.Profile.Tell(s)
	}
}

// errorNote is what an event that failed notes.
func errorNote(note string, err error) string {
	if err == nil {
		return note
	}
	if note != "" {
		note += ": "
	}
	return note + err.Error()
}

// OnCompile tells of a kernel that a compiler finished, or failed.
func (d *Base) OnCompile(k runtime.Kernel, seconds float64, err error) {
	took := time.Duration(seconds * 1e9)
	d.ended(profile.Span{Row: profile.RowCompile, Kind: profile.Compile, Took: took, Key: k.Key(), Note: errorNote("", err)})
	if t := d.Opts.Trace; t != nil && t.Compile != nil {
		d.Hook(func() { t.Compile(CompileEvent{Kernel: keyText(k.Key()), Elapsed: took, Err: err}) })
	}
}

// keyText is a kernel's key in hex.
func keyText(key uint64) string { return fmt.Sprintf("%016x", key) }

// TellsTune reports that somebody wants to hear of tuning.
func (d *Base) TellsTune() bool {
	return d.Profile != nil || d.Opts.Trace != nil && d.Opts.Trace.Tune != nil
}

// OnTune tells of a step of tuning; who calls it has asked TellsTune.
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

// OnError tells of a fault.
func (d *Base) OnError(err error) {
	if d.Profile != nil {
		d.ended(profile.Span{Row: profile.RowFault, Kind: profile.Fault, Note: err.Error()})
	}
	if t := d.Opts.Trace; t != nil && t.Error != nil {
		d.Hook(func() { t.Error(err) })
	}
}

// OnExplore tells of a plan that was made.
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

// OnCache tells of what the cache or a bundle did, and of its faults.
func (d *Base) OnCache(e plancache.Event) {
	d.ended(profile.Span{Row: profile.RowCache, Kind: profile.Cache, Took: e.Elapsed, Of: int(e.Bytes), Note: errorNote(e.Kind+" "+string(e.Outcome), e.Err)})
	if t := d.Opts.Trace; t != nil && t.Cache != nil {
		d.Hook(func() {
			t.Cache(CacheEvent{Kind: e.Kind, Outcome: string(e.Outcome), Bytes: e.Bytes, Elapsed: e.Elapsed, Err: e.Err})
		})
	}
	if e.Err != nil && e.Outcome != plancache.Foreign { // which is no fault
		d.OnError(e.Err)
	}
}

// TellsFlush reports that somebody wants to hear of flushes, or of the launches that they
// bring about: bound recordings are no single call then, of which nobody would hear.
func (d *Base) TellsFlush() bool {
	return d.Watched() || d.Opts.Trace != nil && d.Opts.Trace.Flush != nil
}

// OnFlush tells of a segment; who calls it has asked TellsFlush.
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
