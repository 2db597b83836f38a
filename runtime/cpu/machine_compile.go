package cpu

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// wantsMachine adds a launch to a variant's heat, and reports whether the launch is worth machine
// code that does not exist yet. The launch then waits for makeMachines.
func (d *device) wantsMachine(v *variant, bytes int64, provisional bool) bool {
	return !v.failed.Load() && v.code.Load() == nil && (v.heat.Add(bytes+heatOfLaunch) >= v.heatForCode(provisional) || d.waitsForCode())
}

// makeMachines makes machine code of variants on at most so many threads, one of which is the
// caller's. A panic on another thread goes on in the caller.
func (d *device) makeMachines(list []*variant, threads int64) {
	var next atomic.Int32
	work := func() {
		for i := next.Add(1); int(i) <= len(list); i = next.Add(1) {
			d.makeMachine(list[i-1])
		}
	}
	var others sync.WaitGroup
	var broken atomic.Pointer[any]
	for range min(threads, int64(len(list))) - 1 {
		others.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					broken.Store(&r)
				}
			}()
			work()
		})
	}
	func() {
		defer others.Wait()
		work()
	}()
	if r := broken.Load(); r != nil {
		panic(*r)
	}
}

// makeMachine makes machine code of a variant, unless that was done before.
func (d *device) makeMachine(v *variant) {
	v.making.Lock()
	defer v.making.Unlock()
	if v.code.Load() != nil || v.failed.Load() {
		return
	}
	begin := time.Now()
	code, err := machineCode(v)
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

// waitsForCode reports that runs wait for code, however small they are.
func (d *device) waitsForCode() bool {
	return d.cfg.Compile == runtime.CompileWait || d.cfg.Tier > 0
}

// machineCode makes the code of all phases of a variant.
func machineCode(v *variant) (*compiled, error) {
	units, plan, err := v.units()
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
		p, err := newMachinePhase(&units[i], len(units[i].Operands)-len(plan.Temps), jit.ISA(), looks)
		if err != nil {
			return nil, err
		}
		p.number = i
		p.folds = p.compileFolding(plan.Ops[i], v.key.cols)
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
