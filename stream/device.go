package stream

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Device is an open device: its driver, its plans, its memory and its streams.
type Device struct {
	device.Base
	finder   lookup.Finder
	plans    planstore.Store
	mem      memory.Pool
	lanes    jobqueue.Lanes
	tune     autotune.Tuner
	tapes    tapes
	kept     kept
	bindings bindings
	def      *Stream

	streams atomic.Uint64 // number of the last stream
	open    reachable[Stream]
	hosts   reachable[HostLane]
	peaks   atomic.Pointer[Peaks] // peaks of the machine, for reports
	faults  operror.List          // faults of all streams
}

// numbers is the number of the last device.
var numbers atomic.Uint64

// Open opens a device. The program must link the driver.
func Open(o device.Options) (*Device, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	drv, err := runtime.Lookup(o.Device)
	if err != nil {
		return nil, err
	}
	if _, ok := drv.(runtime.Isolator); !ok && (o.Isolate || o.Subgroups != 0 || o.Narrow != 0 || o.Matrices != 0 || o.Precision != 0) {
		return nil, fmt.Errorf("options isolate=on, subgroups=off, narrow=off, matrices=off and precision=bf16x6 or bf16x3 are for GPUs, and device %q is not a GPU", o.Device)
	}
	d := newDevice(o)
	var cache runtime.Cache
	if d.finder.Cache != nil {
		cache = d.finder.Cache
	}
	d.Driver, err = drv.Open(runtime.Config{
		Threads:     o.Threads,
		Compile:     o.Compile,
		Tier:        int(tierOf[o.Tier]),
		Adapter:     o.Adapter,
		Isolate:     o.Isolate,
		Subgroups:   o.Subgroups,
		Narrow:      o.Narrow,
		Matrices:    o.Matrices,
		Precision:   o.Precision,
		MemoryLimit: o.MemoryLimit,
		Denormals:   o.Denormals,
		Cache:       cache,
		OnCompile:   d.OnCompile,
		OnError:     d.OnError,
	})
	if err != nil {
		d.finder.Cache.Close()
		return nil, err
	}
	return d.start(), nil
}

// OpenOn makes a device from an open driver, for tests that need a driver with particular caps.
func OpenOn(drv runtime.Device, o device.Options) (*Device, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d := newDevice(o)
	d.Driver = drv
	return d.start(), nil
}

func newDevice(o device.Options) *Device {
	d := &Device{Base: device.Base{Opts: o, Number: numbers.Add(1)}}
	if o.Report {
		d.Profile = profile.New()
	}
	d.finder.Base = &d.Base
	d.finder.OpenCache()
	return d
}

func (d *Device) start() *Device {
	d.Caps = d.Driver.Caps()
	d.finder.Init(d.tune.Renew)
	d.plans.Init(&d.Base, &d.finder)
	d.mem.Init(&d.Base, d.yield, d.drain)
	if d.Profile != nil {
		d.Profile.Memory = func() (live, pool int64) { s := d.Driver.Stats(); return s.AllocBytes, s.PoolBytes }
		d.Profile.Owners = d.mem.Owners
	}
	d.tune.Init(&d.Base, &d.lanes, d.drain, &d.finder)
	d.useBundles()
	d.def = d.NewStream()
	return d
}

var tierOf = [...]int8{device.TierAuto: 0, device.TierInterpreter: -1, device.TierCompiled: 1}

// Name returns the name of the driver.
func (d *Device) Name() string { return d.Opts.Device }

// Options returns the options with which the device was opened.
func (d *Device) Options() device.Options { return d.Opts }

// Default returns the device's default stream.
func (d *Device) Default() *Stream { return d.def }

// NewStream makes a stream. It is cheap and starts no thread.
func (d *Device) NewStream() *Stream {
	s := &Stream{dev: d, caps: d.Caps, num: d.streams.Add(1)}
	s.lane = d.lanes.NewLane()
	s.bind = exec.Binder{Base: &d.Base, Pool: &d.mem, Tune: &d.tune, Lane: s.lane, Owner: s, Number: s.num}
	s.q.Interner = &d.plans.Attrs
	s.node = d.plans.Trie.Root()
	s.soft, s.stepOps, s.budget = d.softCap(), testhook.Step(stepCap), d.queueBudget()
	d.open.add(s)
	return s
}

// yield frees memory that is kept for later, because the program lacks memory. It reports whether
// it freed any.
func (d *Device) yield() bool {
	tuner, bounds := d.tune.Yield(), d.kept.yield()
	return tuner || bounds
}

// drain returns when all jobs of streams submitted so far have run.
func (d *Device) drain() {
	for _, s := range d.open.list() {
		s.lane.Queued().Wait()
	}
}

// SubmitAll submits the queued ops of all streams. It waits for no job: streams of other ranks in
// the process may wait for a host op of the caller. For the same reason it skips streams whose lock
// is held by a run with host ops.
func (d *Device) SubmitAll() {
	for _, s := range d.open.list() {
		if s.lockUnlessHosts() {
			s.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, false)
			s.due = 0
			s.mu.Unlock()
		}
	}
	d.Rethrow()
}

// lockUnlessHosts locks the stream, unless a run with host ops holds the lock.
func (s *Stream) lockUnlessHosts() bool {
	for !s.mu.TryLock() {
		if s.hosts.Load() {
			return false
		}
		time.Sleep(20 * time.Microsecond)
	}
	return true
}

// Wait blocks until submitted work and background work are done.
func (d *Device) Wait() error {
	d.drain()
	d.waitHostOps()
	d.plans.Search.Wait()
	err := d.Driver.Wait(true)
	d.tune.Wait()
	d.plans.Flush()
	return err
}

// Close ends background work and frees the device's memory. Later use of the device's tensors is
// an error.
func (d *Device) Close() error {
	if d.Closed.Swap(true) {
		return nil
	}
	d.plans.Search.Stop()
	d.tune.End()
	d.drain()
	d.waitHostOps() // they may use the device's memory
	d.settleBindings()
	d.tune.Join()
	err := d.Driver.Close()
	d.plans.Flush()
	return errors.Join(err, d.finder.Cache.Close())
}

// Stats returns the device's counters.
func (d *Device) Stats() device.Stats {
	d.mem.Boundary()
	d.bindings.count()
	c := &d.Counts
	return device.Stats{
		Ops:          c.Ops.Load(),
		Segments:     c.Segments.Load(),
		PlanHits:     c.Hits.Load(),
		Explorations: c.Explored.Load(),
		Searches:     c.Searches.Load(),
		Tunings:      c.Tunings.Load(),
		TuneNanos:    d.tune.Spent.Load(),
		TuneTaken:    d.tune.Taken.Load(),
		Plans:        int64(d.plans.Trie.Len()),
		Layouts:      c.Layouts.Load(),
		Kernels:      c.Kernels.Load(),
		InPlace:      c.InPlace.Load(),
		Recomputes:   c.Recomputes.Load(),
		Recordings:   c.Recordings.Load(),
		Resizes:      c.Resizes.Load(),
		Trials:       c.Trials.Load(),
		Replays:      c.Replays.Load(),
		BoundRuns:    c.BoundRuns.Load(),
		BoundCalls:   c.BoundCalls.Load(),
		Aliases:      c.Aliases.Load(),
		Fallbacks:    c.Fallbacks.Load(),
		Unbuilt:      c.Unbuilt.Load(),
		Evictions:    d.plans.Trie.Evictions(),
		Collections:  d.mem.Collect.Load(),
		PinnedBytes:  d.mem.Pinned.Load(),
		LiveBytes:    d.mem.Live.Load(),
		Cache:        d.finder.CacheStats(),
		Runtime:      d.Driver.Stats(),
	}
}

// ResetPeak sets Runtime.PeakBytes to the bytes that are live now.
func (d *Device) ResetPeak() { d.Driver.ResetPeak() }
