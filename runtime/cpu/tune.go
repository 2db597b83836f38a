package cpu

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/runtime"
)

// This file is the device's side of tuning: which ways there are to run a
// launch. What they have in common is the order in which numbers are added up,
// so all of them give the same bits.

const (
	// worthBytes is what a launch must touch for a choice to be worth it: less
	// takes a few microseconds, on one thread.
	worthBytes = threadBytes
	// worthCode is what it must touch to be worth compiling again.
	worthCode = 1 << 20
)

// Changes counts kernels that were compiled, or could not be.
func (d *device) Changes() uint64 { return d.changes.Load() }

// Choices lists the ways to run a launch or a chain.
func (d *device) Choices(unit []runtime.Launch) (c runtime.Choices) {
	if d.enter() != nil {
		return c
	}
	defer d.life.RUnlock()
	list := d.chainChoices
	if unit[0].Chain == nil {
		list = d.launchChoices
	}
	facts, choices := list(unit)
	if len(choices) == 0 {
		return c
	}
	c.List = []runtime.Choice{{Name: choice(0).String()}}
	// Which ways are worth a try rests on exact sizes, while other facts have
	// buckets of them: the list is a fact of its own.
	b := append([]byte(facts), " ways"...)
	for _, x := range choices {
		name := x.String()
		c.List = append(c.List, runtime.Choice{Name: name, Code: uint64(x)})
		b = append(append(b, ' '), name...)
	}
	c.Facts = string(b)
	return c
}

// threadsOf is how many threads a launch may have.
func (d *device) threadsOf() int64 { return int64(max(d.cfg.Threads, 1)) }

func (d *device) launchChoices(unit []runtime.Launch) (facts string, list []choice) {
	r, err := d.order(&unit[0], d.threadsOf(), 0)
	_, forced := force.Variant()
	if err != nil || r.empty || r.total*r.p.perItem < worthBytes && !forced || !d.settled(&r) {
		return "", nil
	}
	for k := range numKnobs {
		// Whether there is a compiler does not matter: what one made elsewhere may
		// have come with the program, and tables hold for both. Try says of what
		// there is code.
		if offers[k] == nil || knobs[k].code && r.total*r.p.perItem < worthCode && !forced {
			continue
		}
		for _, v := range offers[k](&r, forced) {
			list = append(list, turn(k, v))
		}
	}
	if len(list) == 0 {
		return "", nil
	}
	if facts, err = r.facts(); err != nil {
		return "", nil // there is no code without a form: never
	}
	return facts, list
}

// Combine turns all the knobs that these choices turn.
func (d *device) Combine(codes []uint64) (runtime.Choice, bool) {
	var c choice
	for _, code := range codes {
		c = c.with(choice(code))
	}
	if c == 0 || slices.Contains(codes, uint64(c)) { // one of them does all of it
		return runtime.Choice{}, false
	}
	return runtime.Choice{Name: c.String(), Code: uint64(c)}, true
}

// settled finds the code that a launch goes on running by; it is false where
// that is still to be compiled.
func (d *device) settled(r *ready) bool {
	if !d.compiled(r) {
		return true
	}
	key := r.classKey()
	v := r.sched.variantFor(&key)
	if v.code.Load() == nil && d.comp != nil && d.comp.waits() {
		d.comp.want(v, r.total*r.p.perItem, false)
	}
	r.code = v.code.Load()
	return r.code != nil || d.comp == nil || v.failed.Load()
}

// compiled reports a launch that compiled code may run.
func (d *device) compiled(r *ready) bool {
	return runsCompiled && d.cfg.Tier >= 0 && !(r.dot != nil && r.plain())
}

// facts are what the times of a launch depend on besides its kernel.
func (r *ready) facts() (string, error) {
	d := r.p.dev
	b := fmt.Appendf(nil, "%s threads %d cache %d", processor(), d.threadsOf(), d.streamsFrom())
	b, err := r.codeFacts(b)
	if err != nil {
		return "", err
	}
	b = append(b, " dims"...)
	for i, n := range r.l.Dims[:r.l.Rank] {
		sep := byte(',')
		switch i {
		case 0:
			sep = ' '
		case r.l.Kept:
			sep = '|'
		}
		b = strconv.AppendInt(append(b, sep), bucket(n), 10)
	}
	if r.l.Rank > 0 && r.l.Dims[r.l.Rank-1]%16 == 0 {
		b = append(b, " whole vectors"...)
	}
	key := r.classKey()
	return string(fmt.Appendf(b, " classes %v", key)), nil
}

// bucket puts sizes together that are within a factor of about 1.4.
func bucket(n int64) int64 {
	if n <= 0 {
		return 0
	}
	log := int64(bits.Len64(uint64(n)) - 1)
	if n/5 >= 7*(int64(1)<<log)/25 { // n is 1.4 times the power of two
		return 2*log + 2
	}
	return 2*log + 1
}

// offers are the values of each knob that differ from what the device does by
// itself, where they may matter.
var offers = [numKnobs]func(r *ready, forced bool) []int64{
	knobThreads:   offerThreads,
	knobTile:      offerTile,
	knobRows:      offerRows,
	knobOrder:     offerOrder,
	knobTemps:     offerTemps,
	knobLook:      offerLook,
	knobSplit:     offerSplit,
	knobUnroll:    offerUnroll,
	knobBlock:     offerBlock,
	knobTranspose: offerTranspose,
}

// offerThreads: the rule that waking a thread is worth a certain number of bytes
// may be wrong around that number.
func offerThreads(r *ready, forced bool) (list []int64) {
	most, own := r.p.dev.threadsOf(), r.threads
	work := r.total * r.p.perItem / threadBytes // threads worth having
	if r.dot != nil {
		own = min(r.total/dotThreadWork+1, most)
		work = r.total / dotThreadWork
	}
	if work > 16*most && !forced {
		return nil
	}
	for n := int64(1); n < most; n *= 2 {
		if n != own {
			list = append(list, n)
		}
	}
	if most != own {
		list = append(list, most)
	}
	return list
}

// other is the value of a knob that is not the own one, where it is possible.
func other(own, possible bool) []int64 {
	switch {
	case own:
		return []int64{turnedOff}
	case possible:
		return []int64{turnedOn}
	}
	return nil
}

// dotTileWork is the number of multiplications from which a contraction has
// several tiles.
const dotTileWork = 1 << 21

func offerTile(r *ready, forced bool) (list []int64) {
	if r.dot != nil {
		return offerRows(r, forced)
	}
	if !r.p.hasRows || r.dot != nil || r.scatter != nil || r.split || r.total == 0 {
		return nil
	}
	for _, v := range []int64{tileOwn - 2, tileOwn - 1, tileOwn + 1, tileOwn + 2} {
		if r.fitTile(turn(knobTile, v).scaled(knobTile, r.tile)) != r.tile {
			list = append(list, v)
		}
	}
	return list
}

func offerRows(r *ready, forced bool) []int64 {
	if r.dot == nil || r.total < dotTileWork && !forced {
		return nil
	}
	return []int64{tileOwn - 1, tileOwn + 1}
}

func offerOrder(r *ready, forced bool) []int64 {
	if !r.p.hasRows || r.dot != nil || r.scatter != nil {
		return nil
	}
	return other(r.mode == modeCols, r.mayBeCols() && (r.l.Dims[r.l.Kept-1] >= minColumns || forced))
}

func offerTemps(r *ready, forced bool) []int64 {
	if !r.p.hasRows || r.dot != nil || r.scatter != nil || r.split || r.total == 0 || r.p.lean() == r.p.sched {
		return nil
	}
	return other(r.sched != r.p.sched, true)
}

func offerLook(r *ready, forced bool) []int64 {
	if r.dot != nil || r.scatter != nil || !r.mayLook() {
		return nil
	}
	return other(r.lookPhase() >= 0, true)
}

func offerSplit(r *ready, forced bool) []int64 {
	if !r.p.hasRows || r.dot != nil || r.scatter != nil || r.total == 0 || !r.maySplit() {
		return nil
	}
	return other(r.split, r.outputs <= 64*r.threads || forced)
}

// offerUnroll: longer steps keep more of a core busy, and need more registers.
func offerUnroll(r *ready, forced bool) (list []int64) {
	if r.code == nil || r.dot != nil || r.scatter != nil {
		return nil
	}
	for _, n := range []int{1, 2, 4} {
		for i := range r.code.Phases {
			if cgo.Unroll(r.code.Phases[i].Kernel) != n {
				list = append(list, int64(n))
				break
			}
		}
	}
	return list
}

// offerBlock: longer blocks are fewer calls of block functions, shorter ones take
// less of a cache.
func offerBlock(r *ready, forced bool) (list []int64) {
	if r.code != nil || r.dot != nil && r.plain() {
		return nil
	}
	for _, v := range []int64{tileOwn - 1, tileOwn + 1} {
		for _, t := range r.sched.tier0 {
			if t.blockScaled(v-tileOwn) != t.block {
				list = append(list, v)
				break
			}
		}
	}
	return list
}

func offerTranspose(r *ready, forced bool) []int64 {
	if r.dot != nil || r.scatter != nil {
		return nil
	}
	on, own := *r, r.transposed.ops != 0
	on.choice, on.transposed = turn(knobTranspose, turnedOn), transposed{}
	on.orderTransposed()
	return other(own, on.transposed.ops != 0 && (forced || r.total >= transposedFrom))
}

// follow reports that a launch's choice can be followed now; code that it needs
// is asked for.
func (d *device) follow(r *ready) bool {
	v := d.chosenCode(r)
	if v == nil || v.code.Load() != nil {
		return true
	}
	if d.comp == nil {
		d.count.fallbacks.Add(1)
		return false
	}
	d.comp.want(v, r.total*r.p.perItem, r.l.Provisional)
	if v.failed.Load() {
		d.count.fallbacks.Add(1)
	}
	return v.code.Load() != nil
}

// chosenCode is the variant that a choice needs and that the device may not have
// by now; nil where it needs none, or nothing is compiled.
func (d *device) chosenCode(r *ready) *variant {
	if !r.choice.otherCode() || !d.compiled(r) || len(r.p.shipped) == 0 && !d.compiles() {
		return nil
	}
	key := r.classKey()
	return r.sched.variantFor(&key)
}

// Possible reports whether there is code for a unit's choice, or may be soon.
func (d *device) Possible(unit []runtime.Launch) bool {
	if unit[0].Chain != nil || unit[0].Choice == 0 { // chains have no choices of code
		return true
	}
	if d.enter() != nil {
		return true
	}
	defer d.life.RUnlock()
	r, err := d.order(&unit[0], d.threadsOf(), choice(unit[0].Choice))
	if err != nil || r.empty {
		return true // Run says what is wrong
	}
	v := d.chosenCode(&r)
	return v == nil || v.code.Load() != nil || d.compiles() && !v.failed.Load()
}

// compiles reports that there is a compiler, as far as anybody knows.
func (d *device) compiles() bool { return d.comp != nil && d.comp.possible() }

// Try runs a launch or a chain once, by its choice. A compiler that it needs is
// waited for.
func (d *device) Try(unit []runtime.Launch) (time.Duration, error) {
	if unit[0].Chain != nil {
		return d.tryChain(unit)
	}
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.life.RUnlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return 0, fmt.Errorf("cpu: %w", err)
	}
	r, err := d.order(&unit[0], d.threadsOf(), choice(unit[0].Choice))
	if err != nil || r.empty {
		return 0, err
	}
	if v := d.chosenCode(&r); v != nil && v.code.Load() == nil {
		if d.compiles() {
			err = d.comp.demand(v)
		}
		switch {
		case !d.compiles():
			return 0, errLacksCompiler
		case err != nil:
			return 0, err
		}
	}
	d.settled(&r)
	w, err := d.wide.lend()
	if err != nil {
		return 0, err
	}
	defer d.wide.giveBack(w)
	begin := time.Now()
	err = w.exec.run([]ready{r})
	return time.Since(begin), err
}

// errNoCode is of a choice for which no code could be made: why was told when
// that was tried.
var errNoCode = errors.New("cpu: no code was made for it")

// errLacksCompiler is of one that did not come with the program, where nothing is
// compiled.
var errLacksCompiler = fmt.Errorf("%w: there is no compiler: %w", errNoCode, runtime.ErrLacking)

// dotThreadWork is the number of multiplications that contract.c takes to be
// worth one more thread.
const dotThreadWork = 1 << 20

var _ runtime.Tuner = (*device)(nil)
