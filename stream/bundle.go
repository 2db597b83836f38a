package stream

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// Bundles are what was remembered elsewhere and is shipped with a program. They
// are in memory and hold for all devices of the process. A device looks at what
// each of their groups of entries was made for, once; an entry is looked at when
// a segment asks for it that the trie has no plan for.

// bundledKinds are the kinds of entries that a bundle may hold. All are data:
// plans are made again from the segments that ask for them, a table of timings
// says which of several ways to compute the same is taken, and a shader is printed
// again from its kernel. What is executed never comes from a bundle.
var bundledKinds = map[string]func(d *Device, scope string) (why string){
	kindPlan:   func(d *Device, scope string) string { return fusion.Unfit(scope, d.plans.scope) },
	kindTuning: (*Device).unfitTuning,
	// Notes of kernels are for those who compile them into programs. No device asks
	// for them.
	runtime.KindKernel: func(*Device, string) string { return "" },
	runtime.KindShader: func(d *Device, scope string) string {
		if scope == d.caps.Scope() {
			return ""
		}
		return fmt.Sprintf("shaders for %s, this is %s", scope, d.caps.Scope())
	},
}

// Bundled reports a kind of entries that bundles may hold.
func Bundled(kind string) bool { return bundledKinds[kind] != nil }

// process is what all devices have in common. Devices that nobody holds any more
// are not kept by it.
var process struct {
	sync.Mutex
	bundles []*plancache.Bundle // those given last first
	devices []weak.Pointer[Device]
}

// bundles are a device's side of those in use.
type bundles struct {
	list                                atomic.Pointer[[]source] // immutable list
	bundled, damaged, refused, unfitted atomic.Int64
}

// source is a bundle as a device sees it.
type source struct {
	*plancache.Bundle
	plans []string // the scopes of plans that are of use, the device's own first
	unfit []error  // per group that is of none: how many entries, and why
	loose *loosely
}

func (b *bundles) sources() []source {
	if list := b.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (b *bundles) count(s *plancache.Stats) {
	s.Bundled = b.bundled.Load()
	s.Foreign = b.unfitted.Load()
	s.Damaged += b.damaged.Load()
	s.Refused += b.refused.Load()
}

// UsePlans has all devices use a bundle, those that are open and those to come.
// The bytes are kept and must not be changed. The error says why nothing of it,
// or not all, can be used by this program; what can be is used all the same.
func UsePlans(data []byte) error {
	b, err := plancache.ReadBundle(data)
	if err != nil {
		return fmt.Errorf("bundle of %d bytes: %w", len(data), err)
	}
	var errs []error
	for _, g := range b.Groups() {
		why := ""
		switch {
		case !Bundled(g.Kind):
			why = kindError(g.Kind)
		case g.Kind == kindPlan:
			why = fusion.Foreign(g.Scope)
		}
		if why != "" {
			errs = append(errs, unfitError(b, &g, why))
		}
	}
	var tell []func()
	process.Lock()
	known := slices.ContainsFunc(process.bundles, func(have *plancache.Bundle) bool { return have.ID() == b.ID() })
	if !known {
		process.bundles = slices.Insert(process.bundles, 0, b)
		for _, d := range openDevices() {
			tell = append(tell, d.attach(b))
		}
	}
	process.Unlock()
	for _, f := range tell {
		f()
	}
	return errors.Join(errs...)
}

// ForgetBundles takes back what UsePlans did, for tests. Plans that were found in
// bundles stay known to the devices that found them.
func ForgetBundles() {
	process.Lock()
	defer process.Unlock()
	process.bundles = nil
	for _, d := range openDevices() {
		d.bundles.list.Store(nil)
	}
}

// openDevices are those that were not closed. The process's lock is held.
func openDevices() []*Device {
	var open []*Device
	process.devices = slices.DeleteFunc(process.devices, func(p weak.Pointer[Device]) bool {
		d := p.Value()
		if d != nil && !d.closed.Load() {
			open = append(open, d)
			return false
		}
		return true
	})
	return open
}

// useBundles makes a new device known, and has it use the bundles that were given
// before.
func (d *Device) useBundles() {
	var tell []func()
	process.Lock()
	openDevices()
	process.devices = append(process.devices, weak.Make(d))
	for _, b := range slices.Backward(process.bundles) {
		tell = append(tell, d.attach(b))
	}
	process.Unlock()
	for _, f := range tell {
		f()
	}
}

// attach puts a bundle before those in use. What it returns tells the hooks of
// entries that are of no use. The process's lock is held.
func (d *Device) attach(b *plancache.Bundle) (tell func()) {
	src := source{Bundle: b, loose: new(loosely)}
	var events []plancache.Event
	shaders := ""
	for _, g := range b.Groups() {
		if why := d.Unfit(g.Kind, g.Scope); why != "" {
			d.bundles.unfitted.Add(int64(g.Entries))
			err := unfitError(b, &g, why)
			src.unfit = append(src.unfit, err)
			events = append(events, plancache.Event{Kind: g.Kind, Outcome: plancache.Foreign, Err: err})
			continue
		}
		switch {
		case !d.owns(g.Scope):
		case g.Kind == runtime.KindShader:
			shaders = g.Scope
		case g.Kind != kindPlan:
		case g.Scope == d.plans.scope:
			src.plans = slices.Insert(src.plans, 0, g.Scope)
		default:
			src.plans = append(src.plans, g.Scope)
		}
	}
	list := append([]source{src}, d.bundles.sources()...)
	d.bundles.list.Store(&list)
	d.tune.renew()
	return func() {
		for _, e := range events {
			d.onCache(e)
		}
		if x, ok := d.drv.(runtime.Prebuilder); ok && shaders != "" {
			x.Prebuild(d.bundledShaders(&src, shaders), func(why error) { d.refuseBundled(&src, runtime.KindShader, why) })
		}
	}
}

// bundledShaders reads the shaders that a bundle has for the device, by what their
// keys have behind the scope.
func (d *Device) bundledShaders(src *source, scope string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, key := range src.Keys(runtime.KindShader, scope) {
			if value, ok := d.fromBundle(src, runtime.KindShader, scope, key); ok && !yield(key, value) {
				return
			}
		}
	}
}

// owns reports a scope of this device's driver, or of none in particular.
func (d *Device) owns(scope string) bool {
	made := fusion.FingerprintField(scope, "device")
	return made == "" || made == d.caps.Name
}

// Unfit says why entries of a bundle, of this kind and made for this scope, are of
// no use to the device; "" where they are, and where they are for another driver.
func (d *Device) Unfit(kind, scope string) string {
	unfit := bundledKinds[kind]
	switch {
	case unfit == nil:
		return kindError(kind)
	case !d.owns(scope):
		return "" // they come from a program that has several devices, as a rule
	}
	return unfit(d, scope)
}

func kindError(kind string) string {
	return fmt.Sprintf("bundles may not hold entries of kind %s", kind)
}

func unfitError(b *plancache.Bundle, g *plancache.Group, why string) error {
	made := b.Made()
	if made == "" {
		made = "nobody says who"
	}
	return fmt.Errorf("bundle %016x made by %s: %d entries of kind %s are not used: %s", b.ID(), made, g.Entries, g.Kind, why)
}

// ForeignPlans says which entries of the bundles in use this device cannot use
// although they were made for its driver, and why; nil where there are none.
func (d *Device) ForeignPlans() error {
	var errs []error
	for _, src := range d.bundles.sources() {
		errs = append(errs, src.unfit...)
	}
	return errors.Join(errs...)
}

// fromBundle finds an entry of a bundle.
func (d *Device) fromBundle(src *source, kind, scope, rest string) ([]byte, bool) {
	begin := time.Now()
	value, ok, err := src.Get(kind, scope, rest)
	switch {
	case err != nil:
		d.bundles.damaged.Add(1)
		d.onCache(plancache.Event{Kind: kind, Outcome: plancache.Damaged, Err: fmt.Errorf("bundle %016x: %w", src.ID(), err)})
	case ok:
		d.bundles.bundled.Add(1)
		d.onCache(plancache.Event{Kind: kind, Outcome: plancache.Bundled, Bytes: int64(len(value)), Elapsed: time.Since(begin)})
	}
	return value, ok
}

// refuseBundled counts an entry of a bundle that was of no use after all.
func (d *Device) refuseBundled(src *source, kind string, why error) {
	d.bundles.refused.Add(1)
	d.onCache(plancache.Event{Kind: kind, Outcome: plancache.Refused, Err: fmt.Errorf("bundle %016x: %w", src.ID(), why)})
}
