package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// hasTarget says that what this device does itself (folds, contractions, copies) is
// machine code: where code may be made and there is a target. Where it is false nothing
// ever asks for executable memory: a filter of system calls may end a process that does.
// Denormals are no matter here: a call sets how they are taken.
func (d *device) hasTarget() bool {
	return d.cfg.Tier >= 0 && d.cfg.Compile != runtime.CompileOff && machine.Level() != machine.None
}

// dotSource says who computes contractions: C, which is compiled with this package, where
// machine code does not, unless nothing but the interpreter and Go was asked for.
func (d *device) dotSource() (s dotSource) {
	if d.target {
		s.level = dotLevel(machine.Level())
	}
	s.c = runsCompiled && d.cfg.Tier >= 0 && d.cfg.Compile != runtime.CompileOff
	return s
}

// contractsInTiles says so of a program's contraction, see dotSource.tiles.
func (p *program) contractsInTiles() bool {
	return p.dev.dots.tiles(p.sched.plan.Temps[0].DT, p.soft)
}

// compilesC says that C compilers may be started. Kernels of a device that makes machine
// code are never C's, but for those that came with the program.
func (d *device) compilesC() bool {
	return d.cfg.Tier >= 0 && d.cfg.Compile.C() && !d.machine && d.runsC(d.cfg.Denormals)
}

// runsC says that code which a C compiler made can run, of kernels that take denormals so.
func (d *device) runsC(den ir.Denormals) bool {
	return runsCompiled && (den == ir.KeepDenormals || machineFlushes())
}

// tellNoTarget counts that machine code alone was asked for, where there is none:
// kernels stay interpreted.
func (d *device) tellNoTarget() {
	if d.cfg.Compile != runtime.CompileNative || d.cfg.Tier < 0 || d.machine {
		return
	}
	d.count.fallbacks.Add(1)
	d.report(fmt.Errorf("cpu: compile=native: no machine code for this system and processor (level %v): kernels stay interpreted", machine.Level()))
}

// targets describes what code is made for and by whom.
func targets() string {
	s := "no machine code"
	if level := machine.Level(); level != machine.None {
		s = "machine code for " + level.String()
	}
	if path := findCompiler(); path != "" {
		return s + ", compiler " + path
	}
	return s + ", no C compiler"
}
