//go:build cgo && unix

package cpu

/*
#include <stdlib.h>
#include "run.h"
*/
import "C"

import (
	"fmt"
	goruntime "runtime"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// prepared is a list of launches that was checked, ordered and written as C reads it,
// once. A run only writes the addresses that have changed.
type prepared struct {
	d       *device
	readied []ready
	arena   arena // has no Go pointer but those that are written as numbers, by Set
	first   *C.mr_launch
	free    goruntime.Cleanup
	places  [][]placed // by launch and operand
	faults  []*C.mr_fault
	ends    []int // of readied: where others may have the crew
	work    int64 // as of forOne
	worth   bool
	waves   bool // some launches run beside each other

	awaited []awaited
	changes uint64 // at which no code was there that is awaited

	launches, read, written, tier0, shipped, fallbacks, grouped int64 // of a run
}

// awaited is code that a launch may still get, and what a run counts for in having it
// made.
type awaited struct {
	v     *variant
	bytes int64
}

// prepareList makes a list ready for C. It is nil for lists with chains, whose tiles are
// launches of their own, and where a run would wait for a compiler.
func (d *device) prepareList(list []runtime.Launch) runtime.Prepared {
	p := &prepared{d: d, changes: d.changes.Load(), places: make([][]placed, len(list))}
	for i := range list {
		nanos, several := workOf(&list[i])
		p.work += nanos
		p.worth = p.worth || several
	}
	inTurn := order(list, d.threadsOf())
	defer inTurn.release()
	p.waves = inTurn != nil
	threads := int64(1)
	if p.worth || p.waves || p.work > turnWork {
		threads = d.threadsOf()
	}
	own := make([]runtime.Launch, len(list))
	size := uintptr(0)
	for k := range list {
		t, n := turn{at: k}, threads
		if inTurn != nil {
			if t = inTurn.turns[k]; t.wave > 0 {
				n = 1
			}
		}
		l := &own[t.at]
		*l = list[t.at]
		l.Args, l.Scalars = append([]runtime.Access(nil), l.Args...), append([]uint64(nil), l.Scalars...)
		r, err := d.order(l, n)
		if err != nil || !r.empty && !p.settle(&r) {
			return nil
		}
		p.places[t.at] = make([]placed, len(l.Args))
		if r.index, r.wave = t.at, t.wave; r.empty {
			continue
		}
		if !r.bytesOf(p.places[t.at]) {
			return nil
		}
		p.count(&r)
		size += launchBytes(&r)
		p.readied = append(p.readied, r)
	}
	if len(p.readied) == 0 || !p.write(size) {
		return nil
	}
	p.divide()
	return p
}

// settle finds the code of a launch, which may be tier 0's until there is other; false
// where a run would wait for that, and where the launch is not for C.
func (p *prepared) settle(r *ready) bool {
	d := p.d
	if r.plain() || !runsCompiled || d.cfg.Tier < 0 {
		return runsInC(r)
	}
	key := r.classKey()
	v := r.sched.variantFor(&key)
	if r.code = v.code.Load(); r.code != nil {
		return runsInC(r)
	}
	other, has := r.otherwise()
	if d.comp != nil && !v.failed.Load() {
		if d.comp.waits() && !has && !r.oneShort() {
			return false
		}
		p.awaited = append(p.awaited, awaited{v, r.total * r.p.perItem})
	}
	if has {
		*r = other
	} else if v.failed.Load() {
		p.fallbacks++
	}
	return runsInC(r)
}

// count adds a launch to what a run counts.
func (p *prepared) count(r *ready) {
	read, written := codegen.Traffic(r.p.kernel, r.l, &p.d.caps.ElemSize)
	p.launches, p.read, p.written = p.launches+1, p.read+read, p.written+written
	switch {
	case r.code != nil && r.code.shipped != nil:
		p.shipped++
	case r.code == nil && !r.plain():
		p.tier0++
	}
	if r.wave > 0 {
		p.grouped++
	}
}

// outdated reports that there is code by now that was awaited, or that there will be none.
func (p *prepared) outdated() bool {
	now := p.d.changes.Load()
	if now == p.changes {
		return false
	}
	for _, a := range p.awaited {
		if a.v.code.Load() != nil || a.v.failed.Load() {
			return true
		}
	}
	p.changes = now
	return false
}

// bytesOf has leastBytes in the form of places.
func (r *ready) bytesOf(to []placed) bool {
	bytes := make([]int64, len(to))
	ok := r.leastBytes(bytes)
	for i := range to {
		to[i].bytes = bytes[i]
	}
	return ok
}

// divide finds the places where the crew may be given to others.
func (p *prepared) divide() {
	work := int64(0)
	for i := range p.readied {
		if work >= turnWork {
			p.ends, work = append(p.ends, i), 0
		}
		nanos, _ := workOf(p.readied[i].l)
		work += nanos
	}
	p.ends = append(p.ends, len(p.readied))
}

// Set puts another buffer at places.
func (p *prepared) Set(places []runtime.Place, b runtime.Buffer) bool {
	x, ok := b.(*buffer)
	if !ok || x.shared != nil || x.freed {
		return false
	}
	for _, at := range places {
		if p.places[at.Launch][at.Arg].bytes > x.bytes {
			return false
		}
	}
	for _, at := range places {
		for _, a := range p.places[at.Launch][at.Arg].at {
			*a.at = uintptr(x.p) + a.offset
		}
	}
	return true
}

// Run runs the list, as device.Run does.
func (p *prepared) Run() (done bool, err error) {
	d := p.d
	if err := d.enter(); err != nil {
		return true, err
	}
	defer d.life.RUnlock()
	if p.outdated() {
		return false, nil
	}
	if err := fault.Hit(fault.Launch); err != nil {
		return true, &runtime.LaunchError{Err: fmt.Errorf("cpu: %w", err)}
	}
	crowded := d.crowd.enter()
	defer d.crowd.leave()
	for _, a := range p.awaited {
		d.comp.want(a.v, a.bytes, false, false)
	}
	crews := d.wide
	if one := alone(p.work, p.worth, crowded); one && (crowded || !p.waves) {
		crews = d.alone // waves are launches one after another
	} else {
		crews.rouse()
	}
	for _, f := range p.faults {
		*f = C.mr_fault{}
	}
	w, err := crews.lend()
	if err != nil {
		return true, err
	}
	if _, ok := w.exec.(*cExecutor); !ok {
		crews.giveBack(w)
		return false, nil
	}
	begin := 0
	for _, end := range p.ends {
		if begin > 0 && crews.waiting.Load() > 0 {
			crews.giveBack(w)
			if w, err = crews.lend(); err != nil {
				return true, err
			}
		}
		if err = p.part(w.exec.(*cExecutor), begin, end); err != nil {
			break
		}
		begin = end
	}
	crews.giveBack(w)
	c := &d.count
	c.launches.Add(p.launches)
	c.read.Add(p.read)
	c.written.Add(p.written)
	c.tier0.Add(p.tier0)
	c.shipped.Add(p.shipped)
	c.fallbacks.Add(p.fallbacks)
	c.grouped.Add(p.grouped)
	c.prepared.Add(p.launches)
	d.tellThreads()
	return true, err
}

// part runs launches from begin to end.
func (p *prepared) part(e *cExecutor, begin, end int) error {
	launches := unsafe.Slice(p.first, len(p.readied))
	n := C.mr_run(e.pool, &launches[begin], C.mr_i64(end-begin))
	goruntime.KeepAlive(p) // and with it what C knows only by address
	switch {
	case n < 0:
		return errRefused
	case n > 0:
		at := begin + int(n) - 1
		f := launches[at].args.fault
		return p.readied[at].outOfRange(int(f.operand), int64(f.index))
	}
	return nil
}

// Close gives the C memory back.
func (p *prepared) Close() {
	p.free.Stop()
	C.free(p.arena.base)
	p.arena.base = nil
	for i := range p.readied {
		if o := p.readied[i].dot; o != nil {
			dotOrders.Put(o)
		}
	}
	p.readied = nil
}
