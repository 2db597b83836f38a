package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// hasTarget reports that the device's own loops (folds, contractions, copies) are machine code:
// compiling is allowed and a target exists. If it is false, nothing ever requests executable
// memory: a filter of system calls may end a process that does. Denormals do not matter here: each
// call sets their mode.
func (d *device) hasTarget() bool {
	return d.cfg.Tier >= 0 && d.cfg.Compile != runtime.CompileOff && machine.Level() != machine.None
}

// dotSource selects the functions of contractions. C, which is compiled with this package, serves
// where machine code does not, unless the configuration allows only the interpreter and Go.
func (d *device) dotSource() (s contract.Source) {
	if d.target {
		s.Level = machine.Level()
	}
	s.C = ccode.Supported && d.cfg.Tier >= 0 && d.cfg.Compile != runtime.CompileOff
	return s
}

// contractsInTiles reports Source.Tiles for a program's contraction.
func (p *program) contractsInTiles() bool {
	return p.dev.dots.Tiles(p.sched.plan.Temps[0].DT, p.soft)
}

// compilesC reports that C compilers may be started. Kernels of a device that makes machine code
// are never compiled from C.
func (d *device) compilesC() bool {
	return d.cfg.Tier >= 0 && d.cfg.Compile.C() && !d.machine && d.runsC(d.cfg.Denormals)
}

// runsC reports that compiled C can run for kernels with this treatment of denormals.
func (d *device) runsC(den ir.Denormals) bool {
	return ccode.Supported && (den == ir.KeepDenormals || jit.Flushes())
}

// tellNoTarget reports that only machine code is allowed but there is no target: kernels stay
// interpreted.
func (d *device) tellNoTarget() {
	if d.cfg.Compile != runtime.CompileNative || d.cfg.Tier < 0 || d.machine {
		return
	}
	d.count.fallbacks.Add(1)
	d.report(fmt.Errorf("cpu: option compile=native has no effect: there is no machine code for this system and processor (level %v), so kernels stay interpreted", machine.Level()))
}

// targets describes the targets and the compilers of this machine.
func targets() string {
	s := "no machine code"
	if level := machine.Level(); level != machine.None {
		s = "machine code for " + level.String()
	}
	if path := ccode.Find(); path != "" {
		return s + ", compiler " + path
	}
	return s + ", no C compiler"
}
