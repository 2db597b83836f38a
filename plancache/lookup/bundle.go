package lookup

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/plancache"
	"github.com/millrace-go/millrace/runtime"
)

// A bundle holds entries that were found out elsewhere and are shipped with a program. Bundles are
// in memory and serve all devices of the process. A device checks once for what each group of
// entries was made. It looks at an entry only when it needs the entry.

// bundledKinds are the kinds of entries that a bundle may hold. All are data: a plan is made again
// from the segment that needs it, a table of timings selects one of several ways to compute the
// same result, and a shader is printed again from its kernel. Code from a bundle never runs. The
// functions say why entries of a scope are of no use to a device.
var bundledKinds = map[string]func(x *Finder, scope string) (why string){
	KindPlan: func(x *Finder, scope string) string { return fusion.Unfit(scope, x.Scope) },
	KindTuning: func(x *Finder, scope string) string {
		if own := x.Caps.Scope(); x.tunes && scope != own { // without tuning, timings are not used
			return fmt.Sprintf("the timings are for %s, this device is %s", scope, own)
		}
		return ""
	},
	KindKernel: func(*Finder, string) string { return "" },
	runtime.KindShader: func(x *Finder, scope string) string {
		if own := x.Caps.Scope(); scope != own {
			return fmt.Sprintf("the shaders are for %s, this device is %s", scope, own)
		}
		return ""
	},
}

// Bundled reports that bundles may hold entries of this kind.
func Bundled(kind string) bool { return bundledKinds[kind] != nil }

// Source is a bundle as one device uses it.
type Source struct {
	*plancache.Bundle
	Plans []string // the scopes of usable plans, the device's own first
	unfit []error  // one error per unusable group: how many entries, and why
	index *index
}

// Sources returns the bundles in use, the last one added first.
func (x *Finder) Sources() []Source {
	if list := x.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Forget removes all bundles. The device keeps the entries that it has already found in them.
func (x *Finder) Forget() { x.list.Store(nil) }

// OpenBundle reads a bundle. The error says why this program can use nothing of it, or not all. The
// bundle holds the rest; it is nil if nothing can be used.
func OpenBundle(data []byte) (*plancache.Bundle, error) {
	b, err := plancache.ReadBundle(data)
	if err != nil {
		return nil, fmt.Errorf("a bundle of %d bytes cannot be used: %w", len(data), err)
	}
	var errs []error
	for _, g := range b.Groups() {
		why := ""
		switch {
		case !Bundled(g.Kind):
			why = kindError(g.Kind)
		case g.Kind == KindPlan:
			why = fusion.Foreign(g.Scope)
		}
		if why != "" {
			errs = append(errs, unfitError(b, &g, why))
		}
	}
	return b, errors.Join(errs...)
}

// Attach puts a bundle before those in use. The caller must call tell afterwards: it reports
// unusable entries to the hooks, and hands the bundle's shaders to the device.
func (x *Finder) Attach(b *plancache.Bundle) (tell func()) {
	src := Source{Bundle: b, index: new(index)}
	var events []plancache.Event
	shaders := ""
	for _, g := range b.Groups() {
		if why := x.Unfit(g.Kind, g.Scope); why != "" {
			x.unfitted.Add(int64(g.Entries))
			err := unfitError(b, &g, why)
			src.unfit = append(src.unfit, err)
			events = append(events, plancache.Event{Kind: g.Kind, Outcome: plancache.Foreign, Err: err})
			continue
		}
		switch {
		case !x.owns(g.Scope):
		case g.Kind == runtime.KindShader:
			shaders = g.Scope
		case g.Kind != KindPlan:
		case g.Scope == x.Scope:
			src.Plans = slices.Insert(src.Plans, 0, g.Scope)
		default:
			src.Plans = append(src.Plans, g.Scope)
		}
	}
	list := append([]Source{src}, x.Sources()...)
	x.list.Store(&list)
	x.came()
	return func() {
		for _, e := range events {
			x.OnCache(e)
		}
		if p, ok := x.Driver.(runtime.Prebuilder); ok && shaders != "" {
			p.Prebuild(x.bundledShaders(&src, shaders), func(why error) { x.RefuseBundled(&src, runtime.KindShader, why) })
		}
	}
}

// bundledShaders returns the shaders that a bundle has for the device, each with the part of its
// key behind the scope.
func (x *Finder) bundledShaders(src *Source, scope string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, key := range src.Keys(runtime.KindShader, scope) {
			if value, ok := x.FromBundle(src, runtime.KindShader, scope, key); ok && !yield(key, value) {
				return
			}
		}
	}
}

// owns reports a scope of this device's driver, or one without a driver.
func (x *Finder) owns(scope string) bool {
	made := fusion.FingerprintField(scope, "device")
	return made == "" || made == x.Caps.Name
}

// Unfit says why the device cannot use entries of this kind and scope from a bundle. It returns ""
// if it can, and also if they are for another driver.
func (x *Finder) Unfit(kind, scope string) string {
	unfit := bundledKinds[kind]
	switch {
	case unfit == nil:
		return kindError(kind)
	case !x.owns(scope):
		return "" // usually from a program that has several devices
	}
	return unfit(x, scope)
}

func kindError(kind string) string {
	return fmt.Sprintf("bundles may not hold entries of kind %s", kind)
}

func unfitError(b *plancache.Bundle, g *plancache.Group, why string) error {
	made := b.Made()
	if made == "" {
		made = "an unnamed program"
	}
	return fmt.Errorf("bundle %016x, made by %s: %d entries of kind %s are not used: %s", b.ID(), made, g.Entries, g.Kind, why)
}

// ForeignPlans says which entries of the bundles in use were made for this device's driver but
// cannot be used on this device, and why; nil for none.
func (x *Finder) ForeignPlans() error {
	var errs []error
	for _, src := range x.Sources() {
		errs = append(errs, src.unfit...)
	}
	return errors.Join(errs...)
}

// FromBundle finds an entry of a bundle.
func (x *Finder) FromBundle(src *Source, kind, scope, rest string) ([]byte, bool) {
	begin := time.Now()
	value, ok, err := src.Get(kind, scope, rest)
	switch {
	case err != nil:
		x.damaged.Add(1)
		x.OnCache(plancache.Event{Kind: kind, Outcome: plancache.Damaged, Err: fmt.Errorf("bundle %016x: %w", src.ID(), err)})
	case ok:
		x.Bundled.Add(1)
		x.OnCache(plancache.Event{Kind: kind, Outcome: plancache.Bundled, Bytes: int64(len(value)), Elapsed: time.Since(begin)})
	}
	return value, ok
}

// RefuseBundled counts an entry of a bundle that turned out to be of no use.
func (x *Finder) RefuseBundled(src *Source, kind string, why error) {
	x.refused.Add(1)
	x.OnCache(plancache.Event{Kind: kind, Outcome: plancache.Refused, Err: fmt.Errorf("bundle %016x: %w", src.ID(), why)})
}

// index maps a function of a plan's key to the indices of the plans' entries in a bundle. It is
// built from the keys alone, at its first use.
type index struct {
	once   sync.Once
	places map[string][]int
}

// Places returns the index of the source's plans. of maps the part of a key behind the scope to an
// index key; it must be the same function in each call.
func (src *Source) Places(of func(key string) (string, bool)) map[string][]int {
	x := src.index
	x.once.Do(func() {
		x.places = map[string][]int{}
		for _, scope := range src.Plans {
			for i, key := range src.Keys(KindPlan, scope) {
				if by, ok := of(key); ok {
					x.places[by] = append(x.places[by], i)
				}
			}
		}
	})
	return x.places
}
