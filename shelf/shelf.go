package shelf

import (
	"errors"
	"sync/atomic"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Shelf is where a device looks for what was found out before: in bundles that the
// program brought, and in a cache on disk. Nothing is read when a device is opened: a
// process pays for what it uses, whatever there is.
type Shelf struct {
	*device.Base
	Cache   *plancache.Cache  // nil: none
	noCache plancache.Outcome // why

	Scope string // of plans: what they depend on besides their segment
	tunes bool   // somebody asks for timings
	came  func() // is told when a bundle came

	list                                atomic.Pointer[[]Source] // immutable list
	Bundled, damaged, refused, unfitted atomic.Int64
}

// The kinds of entries that the engine itself keeps. Drivers have others.
const (
	KindPlan   = "plan"
	KindTuning = "tuning"
	KindPeaks  = "peaks"
)

// OpenCache opens the cache that the options name. A device works without one:
// what is wrong is told and counted.
func (x *Shelf) OpenCache() {
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

// Init is called once the device's caps are known.
func (x *Shelf) Init(came func()) {
	x.came = came
	x.Scope = fusion.Fingerprint(x.Caps, x.Mode())
	_, tunes := x.Driver.(runtime.Tuner)
	x.tunes = tunes && x.Opts.Tune != device.TuneOff
}

// CacheStats are the counters of the cache, also of one that could not be opened,
// and of bundles.
func (x *Shelf) CacheStats() plancache.Stats {
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
