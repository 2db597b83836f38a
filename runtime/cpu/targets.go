package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
)

// compilesNatively says that this device makes machine code of kernels: where that may
// be, there is a target, and the program brings no C code of kernels (ship.go), which it
// would have to be asked to do without. Where it is
// false nothing ever asks for executable memory: a filter of system calls may end a
// process that does. Denormals are no matter here: a call sets how they are taken.
func (d *device) compilesNatively() bool {
	asked := d.cfg.Compile == runtime.CompileNative || d.cfg.Compile.Native() && !shipsKernels()
	return d.cfg.Tier >= 0 && asked && machine.Level() != machine.None
}

// contractsInTiles says that C or machine code computes contractions; else Go's own loops
// do, which know no tiles that could be chosen and leave nothing out.
func (d *device) contractsInTiles() bool {
	if d.machine {
		return true
	}
	level, _ := contractLevel()
	return level >= 0
}

// compilesC says that C compilers may be started: for all kernels, or where machine
// code is made for what has no form in it.
func (d *device) compilesC() bool {
	return d.cfg.Tier >= 0 && d.cfg.Compile.C() && !d.denormals.soft && !d.machine
}

// tellNoTarget counts that machine code alone was asked for, where there is none:
// kernels stay interpreted.
func (d *device) tellNoTarget() {
	if d.cfg.Compile != runtime.CompileNative || d.cfg.Tier < 0 || d.compilesNatively() {
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
