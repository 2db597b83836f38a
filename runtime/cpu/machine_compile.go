package cpu

import (
	"errors"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
)

// wantMachine makes machine code of a variant as soon as that is worth it, while the launch waits.
func (d *device) wantMachine(v *variant, bytes int64, provisional bool) {
	if v.failed.Load() || v.code.Load() != nil || v.heat.Add(bytes+heatOfLaunch) < v.heatForCode(provisional) && !d.waitsForCode() {
		return
	}
	v.making.Lock()
	defer v.making.Unlock()
	if v.code.Load() != nil || v.failed.Load() {
		return
	}
	begin := time.Now()
	code, err := d.makeMachine(v)
	took := time.Since(begin)
	if err != nil {
		d.refuseMachine(v, err)
	} else {
		d.count.native.Add(1)
		d.count.compiled.Add(int64(took))
		v.code.Store(code)
	}
	d.changes.Add(1)
	if d.cfg.OnCompile != nil {
		d.cfg.OnCompile(v.sched.prog.kernel, took.Seconds(), err)
	}
}

// ownCode returns machine code for a variant whose code was compiled into the program. It is made
// when a choice first needs it; nil if it cannot be made.
func (d *device) ownCode(v *variant) *compiled {
	if code := v.own.Load(); code != nil || v.failed.Load() || !d.machine {
		return code
	}
	v.making.Lock()
	defer v.making.Unlock()
	if code := v.own.Load(); code != nil || v.failed.Load() {
		return code
	}
	code, err := d.makeMachine(v)
	if err != nil {
		d.refuseMachine(v, err)
		return nil
	}
	d.count.native.Add(1)
	v.own.Store(code)
	return code
}

// waitsForCode reports that runs wait for code, however small they are.
func (d *device) waitsForCode() bool {
	return d.cfg.Compile == runtime.CompileWait || d.cfg.Tier > 0
}

// makeMachine makes the code of all phases of a variant.
func (d *device) makeMachine(v *variant) (*compiled, error) {
	units, phases, err := v.units()
	if err != nil {
		return nil, err
	}
	plan, err := planPhases(phases)
	if err != nil {
		return nil, err
	}
	if err := fault.Hit(fault.Compile); err != nil {
		return nil, err
	}
	c := &compiled{phasePlan: plan}
	for i := range units {
		// Only folds over rows have a next tile to prefetch. With columns, each folding phase
		// prefetches the row that it folds next.
		looks := v.sched.prog.hasRows && i == plan.look()
		if v.key.cols {
			looks = computesFolded(&plan.Phases[i])
		}
		p, err := newMachinePhase(&units[i], len(units[i].Operands)-len(plan.Temps), machineISA(), looks)
		if err != nil {
			return nil, err
		}
		p.number = i
		p.folds = p.compileFolding(plan.rowOps[i], v.key.cols)
		c.evaluators = append(c.evaluators, p)
	}
	return c, nil
}

// refuseMachine marks a variant as one that stays interpreted. A refusal of executable memory is
// reported once, but tried again for the next kernel.
func (d *device) refuseMachine(v *variant, err error) {
	v.failed.Store(true)
	if d.refuseMemory(err) {
		return
	}
	d.count.fails.Add(1)
	d.report(&runtime.CompileError{Kernel: v.sched.prog.text, Log: err.Error(), Err: err})
}

// refuseMemory counts a piece of code that was refused, and reports whether the cause is a lack of
// executable memory.
func (d *device) refuseMemory(err error) bool {
	d.count.nativeRefused.Add(1)
	var no *machine.Error
	var full *machine.FullError
	if !errors.As(err, &no) && !errors.As(err, &full) {
		return false
	}
	if !d.toldMemory.Swap(true) {
		d.report(err)
	}
	return true
}

// refuseSequence reports that a list of launches will be run launch by launch.
func (d *device) refuseSequence(err error) {
	if !d.refuseMemory(err) {
		d.count.fails.Add(1)
		d.report(err)
	}
}
