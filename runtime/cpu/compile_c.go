package cpu

import (
	"time"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
)

// compileLimits bound the compilers of all devices. It is a variable for tests.
var compileLimits = ccode.Limits{Patience: 60 * time.Second, Objects: 4096}

func (d *device) newCompiler() *ccode.Compiler {
	cfg := ccode.Config{Cache: d.cfg.Cache, Waits: d.waitsForCode(), Limits: compileLimits}
	if told := d.cfg.OnCompile; told != nil {
		cfg.OnCompile = func(k ccode.Kernel, took time.Duration, err error) {
			told(k.(*variant).sched.prog.kernel, took.Seconds(), err)
		}
	}
	return ccode.New(cfg)
}

// wantC records that a launch could have used C, and queues the variant once that is worth a
// compile. A provisional launch never makes it worth one. With wait set, wantC queues the variant
// at once and returns when its code exists or its compile has failed.
func (d *device) wantC(v *variant, bytes int64, provisional, wait bool) {
	switch {
	case v.failed.Load() || v.sched.prog.forgotten.Load() && !wait:
	case wait:
		v.heat.Add(bytes + heatOfLaunch)
		d.comp.Await(v.job)
	case v.heat.Add(bytes+heatOfLaunch) >= heatToCompile && !provisional:
		d.comp.Add(v.job)
	}
}

// Units returns the functions of a variant, for the C compiler.
func (v *variant) Units() ([]cgo.Unit, error) {
	units, _, err := v.units()
	return units, err
}

// Heat orders the compiler's queue.
func (v *variant) Heat() int64 { return v.heat.Load() }

func (v *variant) String() string { return v.sched.prog.text }

// ofC returns the code that consists of a C function for each phase.
func (v *variant) ofC(phases []*ccode.Phase) *compiled {
	plan, _ := v.sched.lowered() // without an error: the compiler has asked for its units
	c := &compiled{phasePlan: plan, c: true}
	for _, p := range phases {
		c.evaluators = append(c.evaluators, cPhase{p})
	}
	return c
}

// Finish stores the code that the C compiler made, or the fact that there is none.
func (v *variant) Finish(r ccode.Result) {
	d := v.sched.prog.dev
	d.count.compiled.Add(int64(r.Took))
	if r.Fallback {
		d.count.fallbacks.Add(1)
	}
	switch {
	case r.Phases != nil:
		if !r.Recalled {
			d.count.compiles.Add(1)
		}
		v.code.Store(v.ofC(r.Phases))
	case r.Err != nil:
		d.count.fails.Add(1)
		d.report(r.Err)
		fallthrough
	default:
		v.failed.Store(true)
	}
	d.changes.Add(1)
}
