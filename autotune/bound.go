package autotune

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/runtime"
)

// Settled is what Choose would choose for a plan with these sizes, as long as it need
// look at no launch: the launches that there are several ways to run. It reports false
// where Choose has something to find out, or is about to.
func (x *Tuner) Settled(tuned *atomic.Pointer[Tuned]) (units []Unit, ok bool) {
	if x.ways == nil {
		return nil, true
	}
	t := tuned.Load()
	if t == nil || t.changes != x.ways.Changes()+x.renewed.Load() {
		return nil, false
	}
	if _, forced := force.Choice(); forced && len(t.units) > 0 {
		return nil, false
	}
	for i := range t.units {
		if u := &t.units[i]; u.Ranked.Load() == nil && !u.Asked.Load() {
			return nil, false
		}
	}
	return t.units, true
}

// Take gives launches their choices.
func Take(units []Unit, ls []runtime.Launch) {
	for i := range units {
		ls[units[i].at].Choice = units[i].taken().Code
	}
}

// Taken reports that launches have their choices.
func Taken(units []Unit, ls []runtime.Launch) bool {
	for i := range units {
		if ls[units[i].at].Choice != units[i].taken().Code {
			return false
		}
	}
	return true
}
