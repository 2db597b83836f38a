package autotune

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/runtime"
)

// Settled returns the launches of a plan, at these sizes, that can be run in several ways. It does
// so only if Choose would take the same choices without looking at any launch. It returns false if
// Choose must still find something out, or is about to time something.
func (x *Tuner) Settled(tuned *atomic.Pointer[Tuned]) (units []Unit, ok bool) {
	if x.ways == nil {
		return nil, true
	}
	t := tuned.Load()
	if t == nil || t.changes != x.ways.Changes()+x.renewed.Load() {
		return nil, false
	}
	if _, forced := testhook.Choice(); forced && len(t.units) > 0 {
		return nil, false
	}
	for i := range t.units {
		if u := &t.units[i]; u.Ranked.Load() == nil && !u.Asked.Load() {
			return nil, false
		}
	}
	return t.units, true
}

// Take sets the choices of launches.
func Take(units []Unit, ls []runtime.Launch) {
	for i := range units {
		ls[units[i].at].Choice = units[i].taken().Code
	}
}

// Taken reports that launches have the choices that Take would set.
func Taken(units []Unit, ls []runtime.Launch) bool {
	for i := range units {
		if ls[units[i].at].Choice != units[i].taken().Code {
			return false
		}
	}
	return true
}
