package cpu

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
)

// This file is the device's side of tuning: the ways to run a launch. Only the tiles of
// contractions are worth a choice. Other choices were measured: they never won, or became the
// default (docs/rationale/caches.md).
// Tiles do not change the order of additions, so all ways give the same bits.

// choice is a way to run a launch: the code of a runtime.Choice.
type choice uint64

const (
	ownTile    choice = iota
	narrowTile        // half as many bytes in a row of a tile
	highTile          // twice as many rows in a tile
	numChoices
)

var choiceNames = [numChoices]string{"default", "tile=1/2", "rows=2"}

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
	if p.parts == nil || !p.contractsInTiles() || d.enter() != nil {
		return c
	}
	defer d.life.RUnlock()
	r, err := d.order(l, d.threadsOf())
	_, forced := testhook.Choice()
	if err != nil || r.empty || r.total < tileWork && !forced || !d.settled(&r) {
		return c
	}
	for code, name := range choiceNames {
		c.List = append(c.List, runtime.Choice{Name: name, Code: uint64(code)})
	}
	c.Facts = r.facts()
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
		if d.wantsMachine(v, heatForMachine, false) {
			d.makeMachine(v)
		}
	} else if v.code.Load() == nil && d.comp != nil && d.waitsForCode() {
		d.wantC(v, r.total*r.p.perItem, false, true)
	}
	r.code = v.code.Load()
	return r.code != nil || d.comp == nil || v.failed.Load()
}

// facts lists everything else that the time of a launch depends on. The compiler of its code is
// not included, because tiles are machine code or this package's own C.
func (r *ready) facts() string {
	d := r.p.dev
	level := d.dots.String()
	by := "tier 0"
	switch {
	case r.plain():
		by = "plain"
	case r.code != nil:
		by = "compiled"
	}
	b := fmt.Appendf(nil, "%s threads %d level %s %s dims", ccode.Processor(), d.threadsOf(), level, by)
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
	w := d.wide.Lend()
	defer d.wide.GiveBack(w)
	begin := time.Now()
	err = w.exec.run([]ready{r})
	return time.Since(begin), err
}

var _ runtime.Tuner = (*device)(nil)
