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
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

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

// write writes the launches to C memory; false where there is none. They are written
// twice, the first time with operands that lie somewhere else, each so many bytes further
// on as no other does, nor two of them apart or together: what differs then are the
// addresses, and by how much says whose. So whoever writes an address need not say so.
func (p *prepared) write(size uintptr) bool {
	size += uintptr(len(p.readied)) * unsafe.Sizeof(C.mr_launch{})
	var e cExecutor
	if !e.arena.reset(size) {
		return false
	}
	p.arena = e.arena
	p.free = goruntime.AddCleanup(p, func(base unsafe.Pointer) { C.free(base) }, p.arena.base)
	shifted := p.shift()
	p.list(&e)
	moved := slices.Clone(e.words())
	for i := range shifted {
		shifted[i].arg.Buf = shifted[i].buf
	}
	e.arena.wipe()
	e.arena.used = 0
	launches := p.list(&e)
	for i := range launches {
		if f := launches[i].args.fault; f != nil {
			p.faults = append(p.faults, f)
		}
	}
	p.first = &launches[0]
	if err := p.find(shifted, moved, e.words()); err != nil {
		p.Close()
		p.d.count.fallbacks.Add(1)
		p.d.report(fmt.Errorf("cpu: a list of %d launches is not prepared: %w", len(p.readied), err))
		return false
	}
	return true
}

// list writes the launches to an arena.
func (p *prepared) list(e *cExecutor) []C.mr_launch {
	launches := arenaSlice[C.mr_launch](&e.arena, len(p.readied))
	for i := range p.readied {
		e.write(&launches[i], &p.readied[i])
	}
	return launches
}

// words are what was written.
func (e *cExecutor) words() []uintptr {
	return unsafe.Slice((*uintptr)(e.arena.base), e.arena.used/unsafe.Sizeof(uintptr(0)))
}

// shifted is an operand that lies somewhere else for a moment.
type shifted struct {
	arg *runtime.Access
	buf *buffer // where it lies
	to  *placed
}

// shiftStep is how much further on each operand is moved than the one before.
const shiftStep = 8

// shiftOf is how far operand i of n is moved: farther than two can be moved apart.
func shiftOf(i, n int) uintptr { return uintptr(shiftStep * (n + 1 + i)) }

// shift moves all operands. What depends on which of them lie on each other is settled
// before.
func (p *prepared) shift() (list []shifted) {
	for i := range p.readied {
		r := &p.readied[i]
		r.settleStreams()
		for j := range r.l.Args {
			if r.p.kernel.Operands[j].Kind == codegen.Index {
				continue
			}
			list = append(list, shifted{arg: &r.l.Args[j], buf: r.l.Args[j].Buf.(*buffer), to: &p.places[r.index][j]})
		}
	}
	for i, s := range list {
		s.arg.Buf = &buffer{p: unsafe.Add(s.buf.p, shiftOf(i, len(list))), bytes: s.buf.bytes}
	}
	return list
}

// find finds the places of addresses by what was written with operands moved, and where
// they are.
func (p *prepared) find(list []shifted, moved, words []uintptr) error {
	if len(moved) != len(words) {
		return fmt.Errorf("%d words, with operands moved %d", len(words), len(moved))
	}
	for i := range words {
		by := moved[i] - words[i]
		if by == 0 {
			continue
		}
		if n := by/shiftStep - uintptr(len(list)+1); by%shiftStep == 0 && n < uintptr(len(list)) {
			s := &list[n]
			s.to.at = append(s.to.at, address{&words[i], words[i] - uintptr(s.buf.p)})
			continue
		}
		return fmt.Errorf("word %d is no address, and moved with operands by %d", i, int64(by))
	}
	for i := range list {
		if len(list[i].to.at) == 0 {
			return fmt.Errorf("operand %d is nowhere", i)
		}
	}
	return nil
}
