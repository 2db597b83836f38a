package cpu

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// chainChoices are the ways to run a chain: how much of it is worked on
// together, and by how many.
func (d *device) chainChoices(ls []runtime.Launch) (facts string, list []choice) {
	b := fmt.Appendf(nil, "%s threads %d cache %d", processor(), d.threadsOf(), d.streamsFrom())
	for i := range ls {
		p, ok := ls[i].Prog.(*program)
		if !ok {
			return "", nil
		}
		switch d.stateOf(p) {
		case codeToCome:
			return "", nil
		case noCode:
			b = append(b, " tier 0"...)
		case compiledCode:
			with, err := p.codeFacts(b)
			if err != nil { // what keeps it from being compiled keeps it in tier 0
				with = append(b, " tier 0"...)
			}
			b = with
		}
		b = append(b, " dims"...)
		for _, n := range ls[i].Dims[:ls[i].Rank] {
			b = strconv.AppendInt(append(b, ' '), bucket(n), 10)
		}
	}
	for _, v := range []int64{tileOwn - 2, tileOwn - 1, tileOwn + 1, tileOwn + 2} {
		list = append(list, turn(knobTile, v))
	}
	for n := int64(1); n < d.threadsOf(); n *= 2 {
		if ls[0].Chain.Tiles(ls, chainRows) < 8*d.threadsOf() { // else all are worth having
			list = append(list, turn(knobThreads, n))
		}
	}
	return string(b), list
}

// codeState says what a program's tiles run by.
type codeState int

const (
	compiledCode codeState = iota
	builtinCode            // contractions from memory to memory
	noCode
	codeToCome
)

// stateOf guesses what the tiles of a chain will run by from what they ran by so
// far: which code they need is known only when there is a tile.
func (d *device) stateOf(p *program) codeState {
	switch {
	case d.comp == nil && len(p.shipped) == 0:
		return noCode
	case d.comp == nil || d.comp.waits():
		return compiledCode
	}
	state := codeToCome
	if p.parts != nil {
		state = builtinCode
	}
	for _, s := range []*schedule{p.sched, p.thin.Load()} {
		if s == nil || s.variants.Load() == nil {
			continue
		}
		for _, v := range *s.variants.Load() {
			switch {
			case v.failed.Load():
				return noCode
			case v.code.Load() == nil:
				return codeToCome
			}
			state = compiledCode
		}
	}
	return state
}

// tryChain is Try of a chain.
func (d *device) tryChain(ls []runtime.Launch) (time.Duration, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.life.RUnlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return 0, fmt.Errorf("cpu: %w", err)
	}
	w, err := d.wide.lend()
	if err != nil {
		return 0, err
	}
	defer d.wide.giveBack(w)
	begin := time.Now()
	_, err = d.walkChain(w, ls, false)
	return time.Since(begin), err
}
