//go:build cgo && unix

package cpu

/*
#include <stdlib.h>
#include "run.h"
*/
import "C"

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// prepared is a list of launches that was checked, ordered and written as C reads it,
// once. A run only writes the addresses that have changed.
type prepared struct {
	d       *device
	todo    []ready
	arena   arena // has no Go pointer but those that are written as numbers, by Set
	first   *C.mr_launch
	free    goruntime.Cleanup
	places  [][]placed // by launch and operand
	faults  []*C.mr_fault
	ends    []int // of todo: where others may have the crew
	changes uint64
	work    int64 // as of forOne
	worth   bool

	launches, read, written, tier0, shipped, fallbacks int64 // of a run
}

// placed is an operand of a launch: where its address is written, and what it takes.
type placed struct {
	at    []address
	bytes int64 // that a buffer has at least
}

// address is where C finds an operand, so many bytes behind the beginning of its buffer.
type address struct {
	at     *uintptr
	offset uintptr
}

// note remembers that the address of a launch's operand was written at a place.
func (e *cExecutor) note(at unsafe.Pointer, r *ready, operand int) {
	if e.places == nil || r.p.kernel.Operands[operand].Kind == codegen.Index {
		return
	}
	to := &e.places[r.index][operand]
	x := (*uintptr)(at)
	to.at = append(to.at, address{x, *x - uintptr(r.l.Args[operand].Buf.(*buffer).p)})
}

// Prepare makes a list ready to be run many times. It is nil for lists with chains, whose
// tiles are launches of their own, for those with waves, and until all kernels have the code that they will have.
func (d *device) Prepare(list []runtime.Launch) runtime.Prepared {
	if runtime.HasChains(list) || len(list) == 0 || d.enter() != nil {
		return nil
	}
	defer d.life.RUnlock()
	p := &prepared{d: d, changes: d.changes.Load(), places: make([][]placed, len(list))}
	for i := range list {
		nanos, several := workOf(&list[i])
		p.work += nanos
		p.worth = p.worth || several
	}
	threads := int64(1)
	if p.worth || p.work > turnWork {
		threads = d.threadsOf()
	}
	if inTurn := order(list, d.threadsOf()); inTurn != nil {
		inTurn.release() // launches beside each other: Run finds them each time
		return nil
	}
	own := make([]runtime.Launch, len(list))
	size := uintptr(0)
	for i := range list {
		own[i] = list[i]
		own[i].Args, own[i].Scalars = append([]runtime.Access(nil), list[i].Args...), append([]uint64(nil), list[i].Scalars...)
		r, err := d.order(&own[i], threads)
		if err != nil || !r.empty && !p.settle(&r) {
			return nil
		}
		p.places[i] = make([]placed, len(own[i].Args))
		p.launches++
		if r.index = i; r.empty {
			continue
		}
		if !r.bytesOf(p.places[i]) {
			return nil
		}
		read, written := codegen.Traffic(r.p.kernel, r.l, &d.caps.ElemSize)
		p.read, p.written = p.read+read, p.written+written
		size += launchBytes(&r)
		p.todo = append(p.todo, r)
	}
	if len(p.todo) == 0 || !p.write(size) {
		return nil
	}
	p.divide()
	return p
}

// settle finds the code of a launch; false where it may still get other code.
func (p *prepared) settle(r *ready) bool {
	if r.plain() {
		return native(r)
	}
	if runsCompiled && p.d.cfg.Tier >= 0 {
		key := r.classKey()
		v := r.sched.variantFor(&key)
		switch r.code = v.code.Load(); {
		case r.code != nil && r.code.shipped != nil:
			p.shipped++
		case r.code == nil && p.d.comp != nil && !v.failed.Load():
			return false
		case r.code == nil && v.failed.Load():
			p.fallbacks++
		}
	}
	if r.code == nil {
		if other, has := r.otherwise(); has && runsCompiled && p.d.cfg.Tier >= 0 {
			*r = other
		} else {
			p.tier0++
		}
	}
	return native(r)
}

// bytesOf says how large the buffers of a launch's operands are at least, and reports
// whether they are all memory of the pool: that of Go's heap is not for C to keep.
func (r *ready) bytesOf(to []placed) bool {
	for i := range r.l.Args {
		o := &r.p.kernel.Operands[i]
		if o.Kind == codegen.Index {
			continue
		}
		b := r.l.Args[i].Buf.(*buffer)
		if b.shared != nil {
			return false
		}
		if r.p.lanewise[i] { // what is read is looked at element by element
			to[i].bytes = b.bytes
			continue
		}
		_, hi := reach(&r.l.Args[i], r.l.Dims[:r.l.Rank])
		if r.p.scatter.row(i) {
			_, hi = rowReach(&r.l.Args[i], r.l.Dims[:r.l.Kept])
		}
		to[i].bytes = (hi + 1) * int64(o.DT.Size())
	}
	return true
}

// write writes the launches to C memory; false where there is none.
func (p *prepared) write(size uintptr) bool {
	size += uintptr(len(p.todo)) * unsafe.Sizeof(C.mr_launch{})
	e := cExecutor{places: p.places}
	if !e.arena.reset(size) {
		return false
	}
	p.arena = e.arena
	p.free = goruntime.AddCleanup(p, func(base unsafe.Pointer) { C.free(base) }, p.arena.base)
	launches := arenaSlice[C.mr_launch](&e.arena, len(p.todo))
	for i := range p.todo {
		e.write(&launches[i], &p.todo[i])
		if f := launches[i].args.fault; f != nil {
			p.faults = append(p.faults, f)
		}
	}
	p.first = &launches[0]
	if at := p.unnoted(e.arena.used); at >= 0 {
		p.Close()
		p.d.count.fallbacks.Add(1)
		p.d.report(fmt.Errorf("cpu: a list is not prepared: word %d of its %d launches is an address that was not noted", at, len(p.todo)))
		return false
	}
	return true
}

// unnoted is a word that was written and looks like an address in an operand, but was not
// noted as one, so that Set would leave it; -1 where there is none. Whoever writes an
// address and forgets to note it finds out by that, and not by wrong results.
func (p *prepared) unnoted(bytes uintptr) int {
	noted := map[*uintptr]bool{}
	var bufs []*buffer
	for i := range p.todo {
		r := &p.todo[i]
		for j, o := range r.p.kernel.Operands {
			if b, ok := r.l.Args[j].Buf.(*buffer); ok && o.Kind != codegen.Index {
				bufs = append(bufs, b)
				for _, a := range p.places[r.index][j].at {
					noted[a.at] = true
				}
			}
		}
	}
	slices.SortFunc(bufs, func(a, b *buffer) int { return cmp.Compare(uintptr(a.p), uintptr(b.p)) })
	words := unsafe.Slice((*uintptr)(p.arena.base), bytes/unsafe.Sizeof(uintptr(0)))
	for i := range words {
		w := words[i]
		k, found := slices.BinarySearchFunc(bufs, w, func(b *buffer, w uintptr) int { return cmp.Compare(uintptr(b.p), w) })
		if !found {
			k--
		}
		if k >= 0 && w-uintptr(bufs[k].p) < uintptr(max(bufs[k].bytes, 1)) && !noted[&words[i]] {
			return i
		}
	}
	return -1
}

// divide finds the places where the crew may be given to others.
func (p *prepared) divide() {
	work := int64(0)
	for i := range p.todo {
		if work >= turnWork {
			p.ends, work = append(p.ends, i), 0
		}
		nanos, _ := workOf(p.todo[i].l)
		work += nanos
	}
	p.ends = append(p.ends, len(p.todo))
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
	if d.changes.Load() != p.changes {
		return false, nil
	}
	if err := fault.Hit(fault.Launch); err != nil {
		return true, &runtime.LaunchError{Err: fmt.Errorf("cpu: %w", err)}
	}
	crowded := d.crowd.enter()
	defer d.crowd.leave()
	crews := d.wide
	if one := p.work <= turnWork; one && !p.worth || p.worth && crowded && p.work <= ownWork {
		crews = d.alone
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
	d.tellThreads()
	return true, err
}

// part runs launches from begin to end.
func (p *prepared) part(e *cExecutor, begin, end int) error {
	launches := unsafe.Slice(p.first, len(p.todo))
	n := C.mr_run(e.pool, &launches[begin], C.mr_i64(end-begin))
	goruntime.KeepAlive(p) // and with it what C knows only by address
	switch {
	case n < 0:
		return errRefused
	case n > 0:
		at := begin + int(n) - 1
		f := launches[at].args.fault
		return p.todo[at].outOfRange(int(f.operand), int64(f.index))
	}
	return nil
}

// Close gives the C memory back.
func (p *prepared) Close() {
	p.free.Stop()
	C.free(p.arena.base)
	p.arena.base = nil
	for i := range p.todo {
		if o := p.todo[i].dot; o != nil {
			dotOrders.Put(o)
		}
	}
	p.todo = nil
}

var _ runtime.Preparer = (*device)(nil)
