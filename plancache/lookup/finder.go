package lookup

import (
	"errors"
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Finder gives a device access to what earlier runs found out: bundles that the program brought, and
// a cache on disk. Opening a device reads nothing, so a process pays only for the entries it uses.
type Finder struct {
	*device.Base
	Cache   *plancache.Cache  // nil: none
	noCache plancache.Outcome // why there is no cache

	Scope string // scope of plans: what they depend on besides their segment
	tunes bool   // the device uses timings
	came  func() // called when a bundle was added

	list                                atomic.Pointer[[]Source] // immutable list
	Bundled, damaged, refused, unfitted atomic.Int64
}

// The kinds of entries that the engine itself keeps. Drivers have others.
const (
	KindPlan   = "plan"
	KindTuning = "tuning"
	KindPeaks  = "peaks"
)

// KindKernel is the kind of entries in which earlier versions noted the kernels that ran on the
// CPU. Bundles and caches of that time hold them; nothing reads or writes them now.
const KindKernel = "kernel"

// OpenCache opens the cache that the options name. A device also works without one: an error is
// counted and reported to the hooks.
func (x *Finder) OpenCache() {
	dir := x.Opts.Cache
	if dir == "" || dir == plancache.Off {
		return
	}
	c, err := plancache.Open(dir, plancache.Options{Limit: x.Opts.CacheLimit, OnEvent: x.OnCache})
	if err != nil {
		ev := plancache.Event{Outcome: plancache.Failed, Err: err}
		if refused := (*plancache.RefusedError)(nil); errors.As(err, &refused) {
			ev.Outcome = plancache.Refused
		}
		x.noCache = ev.Outcome
		x.OnCache(ev)
		return
	}
	x.Cache = c
}

// Init must be called when the device's caps are known.
func (x *Finder) Init(came func()) {
	x.came = came
	x.Scope = fusion.Fingerprint(x.Caps, x.Mode())
	_, tunes := x.Driver.(runtime.Tuner)
	x.tunes = tunes && x.Opts.Tune != device.TuneOff
}

// CacheStats returns the counters of the bundles and of the cache, also of a cache that could not
// be opened.
func (x *Finder) CacheStats() plancache.Stats {
	s := x.Cache.Stats()
	s.Bundled = x.Bundled.Load()
	s.Foreign = x.unfitted.Load()
	s.Damaged += x.damaged.Load()
	s.Refused += x.refused.Load()
	switch x.noCache {
	case plancache.Refused:
		s.Refused++
	case plancache.Failed:
		s.Failed++
	}
	return s
}
