package stream

import (
	"errors"
	"sync/atomic"

	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Device is an open device: its driver, its plans, its memory and its streams.
type Device struct {
	name   string
	opts   Options
	drv    runtime.Device
	caps   *runtime.Caps
	trie   *segment.Trie[queue.Key, *entry]
	attrs  queue.Interner
	tapes  tapes
	mem    memory
	exec   executor
	search searcher
	tune   tuner
	def    *Stream

	closed  atomic.Bool
	streams atomic.Uint64 // numbers handed out
	open    streams
	faults  faults       // of all streams
	unpaid  atomic.Int32 // explorations since one was of use: see planFor
	quick   int          // effort of searches that are waited for

	hookPanic atomic.Pointer[any]

	cache   *plancache.Cache  // nil: none
	noCache plancache.Outcome // why
	plans   *planStore
	bundles bundles

	progs programs

	stats counters
}

type counters struct {
	ops, segments, hits, kernels            atomic.Int64
	explored, searches, tunings             atomic.Int64
	inPlace, recomputes, aliases, fallbacks atomic.Int64
}

// planLimit bounds the plan store; each plan is a few kilobytes.
const planLimit = 4096

// Open opens a device. The driver must be linked in.
func Open(o Options) (*Device, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	drv, err := runtime.Lookup(o.Device)
	if err != nil {
		return nil, err
	}
	d := newDevice(o)
	d.openCache()
	var cache runtime.Cache
	if d.cache != nil {
		cache = d.cache
	}
	d.drv, err = drv.Open(runtime.Config{
		Threads:     o.Threads,
		Compile:     o.Compile,
		Tier:        int(tierOf[o.Tier]),
		Adapter:     o.Adapter,
		MemoryLimit: o.MemoryLimit,
		Cache:       cache,
		OnCompile:   d.onCompile,
		OnError:     d.onError,
	})
	if err != nil {
		d.cache.Close()
		return nil, err
	}
	return d.start(), nil
}

// OpenOn makes a device of an open driver: for tests that need one with
// particular caps.
func OpenOn(drv runtime.Device, o Options) (*Device, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d := newDevice(o)
	d.openCache()
	d.drv = drv
	return d.start(), nil
}

func newDevice(o Options) *Device {
	return &Device{name: o.Device, opts: o, quick: quickEffort}
}

func (d *Device) start() *Device {
	d.caps = d.drv.Caps()
	d.startPlans()
	d.trie = segment.NewTrie[queue.Key, *entry](planLimit, queue.Legal)
	d.trie.OnDrop(d.retire)
	d.mem.init(d)
	d.exec.dev = d
	d.search.init(d)
	d.tune.init(d)
	d.useBundles()
	d.def = d.NewStream()
	return d
}

var tierOf = [...]int8{TierAuto: 0, TierInterpreter: -1, TierCompiled: 1}

// Name of the driver.
func (d *Device) Name() string { return d.name }

// Options the device was opened with.
func (d *Device) Options() Options { return d.opts }

// Caps of the device.
func (d *Device) Caps() *runtime.Caps { return d.caps }

// Default is the device's default stream.
func (d *Device) Default() *Stream { return d.def }

// NewStream makes a stream. It is cheap and has no thread.
func (d *Device) NewStream() *Stream {
	s := &Stream{dev: d, caps: d.caps, num: d.streams.Add(1)}
	s.lane = &lane{exec: &d.exec}
	s.lane.queue = s.lane.room[:0]
	s.q.Interner = &d.attrs
	s.node = d.trie.Root()
	s.soft, s.budget = d.softCap(), d.queueBudget()
	d.open.add(s)
	return s
}

// Wait blocks until submitted and background work is done.
func (d *Device) Wait() error {
	d.exec.drain()
	d.search.wait()
	err := d.drv.Wait(true)
	d.tune.wait()
	d.plans.flush()
	return err
}

// Close ends background work and gives the device's memory back. Later uses of
// its tensors are errors.
func (d *Device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.search.stop()
	d.tune.end()
	d.exec.drain()
	d.tune.join()
	err := d.drv.Close()
	d.plans.flush()
	return errors.Join(err, d.cache.Close())
}

// Stats are the device's counters.
func (d *Device) Stats() Stats {
	d.mem.boundary()
	c := &d.stats
	return Stats{
		Ops:          c.ops.Load(),
		Segments:     c.segments.Load(),
		PlanHits:     c.hits.Load(),
		Explorations: c.explored.Load(),
		Searches:     c.searches.Load(),
		Tunings:      c.tunings.Load(),
		TuneNanos:    d.tune.spent.Load(),
		TuneTaken:    d.tune.taken.Load(),
		Plans:        int64(d.trie.Len()),
		Kernels:      c.kernels.Load(),
		InPlace:      c.inPlace.Load(),
		Recomputes:   c.recomputes.Load(),
		Aliases:      c.aliases.Load(),
		Fallbacks:    c.fallbacks.Load(),
		Evictions:    d.trie.Evictions(),
		Collections:  d.mem.collect.Load(),
		PinnedBytes:  d.mem.pinned.Load(),
		LiveBytes:    d.mem.live.Load(),
		Cache:        d.cacheStats(),
		Runtime:      d.drv.Stats(),
	}
}

// ResetPeak makes Runtime.PeakBytes start again from what is live now.
func (d *Device) ResetPeak() { d.drv.ResetPeak() }
