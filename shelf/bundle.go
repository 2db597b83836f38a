package shelf

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

// Bundles are what was remembered elsewhere and is shipped with a program. They
// are in memory and hold for all devices of the process. A device looks at what
// each of their groups of entries was made for, once; an entry is looked at when
// a segment asks for it that the trie has no plan for.

// bundledKinds are the kinds of entries that a bundle may hold. All are data:
// plans are made again from the segments that ask for them, a table of timings
// says which of several ways to compute the same is taken, and a shader is printed
// again from its kernel. What is executed never comes from a bundle.
var bundledKinds = map[string]func(x *Shelf, scope string) (why string){
	KindPlan: func(x *Shelf, scope string) string { return fusion.Unfit(scope, x.Scope) },
	KindTuning: func(x *Shelf, scope string) string {
		if own := x.Caps.Scope(); x.tunes && scope != own { // else nobody asks for them
			return fmt.Sprintf("timings for %s, this is %s", scope, own)
		}
		return ""
	},
	// Notes of kernels are for those who compile them into programs. No device asks
	// for them.
	runtime.KindKernel: func(*Shelf, string) string { return "" },
	runtime.KindShader: func(x *Shelf, scope string) string {
		if own := x.Caps.Scope(); scope != own {
			return fmt.Sprintf("shaders for %s, this is %s", scope, own)
		}
		return ""
	},
}

// Bundled reports a kind of entries that bundles may hold.
func Bundled(kind string) bool { return bundledKinds[kind] != nil }

// Source is a bundle as a device sees it.
type Source struct {
	*plancache.Bundle
	Plans []string // the scopes of plans that are of use, the device's own first
	unfit []error  // per group that is of none: how many entries, and why
	index *index
}

// Sources are the bundles in use, those given last first.
func (x *Shelf) Sources() []Source {
	if list := x.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Forget takes all bundles back. What was found in them stays known.
func (x *Shelf) Forget() { x.list.Store(nil) }

// Open reads a bundle. The error says why nothing of it, or not all, can be used by
// this program; what can be is in the bundle all the same, which is nil if nothing can.
func OpenBundle(data []byte) (*plancache.Bundle, error) {
	b, err := plancache.ReadBundle(data)
	if err != nil {
		return nil, fmt.Errorf("bundle of %d bytes: %w", len(data), err)
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

// Attach puts a bundle before those in use. What it returns tells the hooks of
// entries that are of no use.
func (x *Shelf) Attach(b *plancache.Bundle) (tell func()) {
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

// bundledShaders reads the shaders that a bundle has for the device, by what their
// keys have behind the scope.
func (x *Shelf) bundledShaders(src *Source, scope string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, key := range src.Keys(runtime.KindShader, scope) {
			if value, ok := x.FromBundle(src, runtime.KindShader, scope, key); ok && !yield(key, value) {
				return
			}
		}
	}
}

// owns reports a scope of this device's driver, or of none in particular.
func (x *Shelf) owns(scope string) bool {
	made := fusion.FingerprintField(scope, "device")
	return made == "" || made == x.Caps.Name
}

// Unfit says why entries of a bundle, of this kind and made for this scope, are of
// no use to the device; "" where they are, and where they are for another driver.
func (x *Shelf) Unfit(kind, scope string) string {
	unfit := bundledKinds[kind]
	switch {
	case unfit == nil:
		return kindError(kind)
	case !x.owns(scope):
		return "" // they come from a program that has several devices, as a rule
	}
	return unfit(x, scope)
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
func (x *Shelf) ForeignPlans() error {
	var errs []error
	for _, src := range x.Sources() {
		errs = append(errs, src.unfit...)
	}
	return errors.Join(errs...)
}

// FromBundle finds an entry of a bundle.
func (x *Shelf) FromBundle(src *Source, kind, scope, rest string) ([]byte, bool) {
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

// RefuseBundled counts an entry of a bundle that was of no use after all.
func (x *Shelf) RefuseBundled(src *Source, kind string, why error) {
	x.refused.Add(1)
	x.OnCache(plancache.Event{Kind: kind, Outcome: plancache.Refused, Err: fmt.Errorf("bundle %016x: %w", src.ID(), why)})
}

// index is where the plans of a source are in its bundle, by what a function makes of
// their keys. It is made when it is first asked for, from keys alone.
type index struct {
	once   sync.Once
	places map[string][]int
}

// Places are those by what of makes of what keys have behind the scope, which is the same
// function each time.
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
