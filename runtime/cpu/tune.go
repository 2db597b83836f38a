package cpu

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
)

// This file is the device's side of tuning: the ways to run a launch. Two things are worth a
// choice: the tiles of contractions, and, if C was compiled into the program, C or machine code.
// Other choices were measured: they never won, or became the default (docs/rationale/caches.md).
// Tiles do not change the order of additions, so all ways give the same bits.

// choice is a way to run a launch: the code of a runtime.Choice.
type choice uint64

const (
	ownTile    choice = iota
	narrowTile        // half as many bytes in a row of a tile
	highTile          // twice as many rows in a tile
	ownCode           // machine code instead of the C compiled into the program
	numChoices
)

var choiceNames = [numChoices]string{"default", "tile=1/2", "rows=2", "code=native"}

// wide and high return exponents of two: factors by which a tile is wider and higher than in the
// plan.
func (c choice) wide() int64 {
	if c == narrowTile {
		return -1
	}
	return 0
}

func (c choice) high() int64 {
	if c == highTile {
		return 1
	}
	return 0
}

// tileWork is the number of multiplications from which a contraction has several tiles.
const tileWork = 1 << 21

// Changes counts kernels that were compiled or could not be compiled.
func (d *device) Changes() uint64 { return d.changes.Load() }

// Choices lists the ways to run a launch. Contractions by Go's own loops have no choice of tiles.
func (d *device) Choices(l *runtime.Launch) (c runtime.Choices) {
	p, ok := l.Prog.(*program)
	if !ok || l.Chain != nil {
		return c
	}
	tiles, brought := p.parts != nil && p.contractsInTiles(), d.machine && len(p.shipped) > 0
	if !tiles && !brought || d.enter() != nil {
		return c
	}
	defer d.life.RUnlock()
	r, err := d.order(l, d.threadsOf())
	_, forced := force.Choice()
	if err != nil || r.empty || r.total < tileWork && !forced || !d.settled(&r) {
		return c
	}
	brought = brought && r.code != nil && r.code.shipped != nil
	for code, listed := range [numChoices]bool{tiles || brought, tiles, tiles, brought} {
		if listed {
			c.List = append(c.List, runtime.Choice{Name: choiceNames[code], Code: uint64(code)})
		}
	}
	if len(c.List) > 0 {
		c.Facts = r.facts(brought)
	}
	return c
}

// threadsOf returns the most threads of a launch.
func (d *device) threadsOf() int64 { return int64(max(d.cfg.Threads, 1)) }

// settled sets the code that the launch will use from now on. It returns false if that code still
// has to be compiled.
func (d *device) settled(r *ready) bool {
	if r.plain() || !d.runsCode(r) {
		return true
	}
	key := r.classKey()
	v := r.sched.variantFor(&key)
	if d.machine {
		d.wantMachine(v, heatForMachine, false)
	} else if v.code.Load() == nil && d.comp != nil && d.comp.waits() {
		d.comp.want(v, r.total*r.p.perItem, false, true)
	}
	r.code = r.codeOf(v)
	return r.code != nil || d.comp == nil || v.failed.Load()
}

// facts lists everything else that the time of a launch depends on. The compiler of its code is
// not included, because tiles are machine code or this package's own C. It does include whether C
// compiled into the program competes with machine code.
func (r *ready) facts(brought bool) string {
	d := r.p.dev
	level := d.dots.String()
	if d.dots.level == machine.None && d.target { // machine code, but not for contractions
		level += " " + machine.Level().String()
	}
	by := "tier 0"
	switch {
	case r.plain():
		by = "plain"
	case brought:
		by = "brought"
	case r.code != nil:
		by = "compiled"
	}
	b := fmt.Appendf(nil, "%s threads %d level %s %s dims", processor(), d.threadsOf(), level, by)
	for _, n := range r.l.Dims[:r.l.Rank] {
		b = fmt.Appendf(b, " %d", bucket(n))
	}
	key := r.classKey()
	return string(fmt.Appendf(b, " classes %v", key))
}

// bucket groups sizes within a factor of about 1.4.
func bucket(n int64) int64 {
	if n <= 0 {
		return 0
	}
	log := int64(bits.Len64(uint64(n)) - 1)
	if n/5 >= 7*(int64(1)<<log)/25 { // n is at least 1.4 times the power of two
		return 2*log + 2
	}
	return 2*log + 1
}

// Try runs a launch once, by its choice.
func (d *device) Try(l *runtime.Launch) (time.Duration, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.life.RUnlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return 0, fmt.Errorf("cpu: %w", err)
	}
	r, err := d.order(l, d.threadsOf())
	if err != nil || r.empty {
		return 0, err
	}
	d.settled(&r)
	w := d.wide.lend()
	defer d.wide.giveBack(w)
	begin := time.Now()
	err = w.exec.run([]ready{r})
	return time.Since(begin), err
}

var _ runtime.Tuner = (*device)(nil)
