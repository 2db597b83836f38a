package cpu

import (
	"cmp"
	"slices"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// A launch that is worth several threads is shared out among them, and they wait
// for each other at its end. One that is not would leave all but one idle: an
// optimiser's updates of a hundred small parameters, say, or the products of some
// heads. So those of a list that do not depend on each other are a wave: threads
// take whole launches of it, one after another, and wait for each other once.
//
// Launches are put in the order of what they wait for. One that may meet an index
// out of range stays where it is among all others: what comes after it must not
// have run then. Which thread runs a launch has no part in its bits.

// waveWork is the work, as workOf guesses it, that pays for a wave: threads may
// have to be woken. Guesses are high for what lies in a cache.
const waveWork = 32e3

// waveShare: a launch that is worth several threads is in a wave where it is at
// most this part of what each thread has to do there.
const waveShare = 4

// turn is a launch in the order in which a list runs.
type turn struct {
	at    int   // in the list
	level int32 // launches that wait for each other have other ones
	wave  int32 // 0: it has the threads for itself
	nanos int64
	large bool // worth several threads
}

// ordering is what finding turns takes; it is used again.
type ordering struct {
	turns []turn
	uses  []use // a table with open addressing: a map takes several times as long
}

var orderings = sync.Pool{New: func() any { return new(ordering) }}

// use is what a list has done so far with a buffer: one more than the level of
// the last launch that writes it, and of the last one that touches it. Launches
// that write pieces of one tensor there do not wait for each other: they count
// apart until another one touches it.
type use struct {
	of               *buffer // nil where the place is free
	written, touched int32
	piece            int32 // of the last launches: see runtime.Access
	pieces           int32 // one more than the level of the last of these
}

// before is the level above all that a launch waits for which writes it, as the
// piece of that number if it is not 0, or reads it.
func (u *use) before(writes bool, piece int32) int32 {
	switch {
	case !writes:
		return max(u.written, u.pieces)
	case piece != 0 && piece == u.piece:
		return u.touched
	}
	return max(u.touched, u.pieces)
}

// note notes a launch of a level.
func (u *use) note(at int32, writes bool, piece int32) {
	if writes && piece != 0 {
		if piece != u.piece {
			u.touched, u.written = max(u.touched, u.pieces), max(u.written, u.pieces)
			u.piece, u.pieces = piece, 0
		}
		u.pieces = max(u.pieces, at+1)
		return
	}
	if u.touched = max(u.touched, at+1); writes {
		u.written = at + 1
	}
}

// use is that of a buffer.
func (o *ordering) use(b *buffer) *use {
	last := uintptr(len(o.uses) - 1)
	for at := uintptr(unsafe.Pointer(b)) * 0x9e3779b1 >> 8; ; at++ {
		if u := &o.uses[at&last]; u.of == b || u.of == nil {
			u.of = b
			return u
		}
	}
}

// open empties the table and makes room for n buffers.
func (o *ordering) open(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	if cap(o.uses) < size {
		o.uses = make([]use, size)
	}
	o.uses = o.uses[:size]
	clear(o.uses)
}

// release lets another list have o, which may be nil.
func (o *ordering) release() {
	if o != nil {
		clear(o.uses) // what is in it must not keep memory alive
		orderings.Put(o)
	}
}

// order finds the waves of a list; nil where there are none worth having.
func order(list []runtime.Launch, threads int64) *ordering {
	if threads < 2 || len(list) < 2 {
		return nil
	}
	o := orderings.Get().(*ordering)
	if o.find(list, threads) {
		return o
	}
	o.release()
	return nil
}

// find is order, in o.
func (o *ordering) find(list []runtime.Launch, threads int64) bool {
	may := int64(0)
	o.turns = o.turns[:0]
	for i := range list {
		t := turn{at: i}
		t.nanos, t.large = workOf(&list[i])
		if o.turns = append(o.turns, t); !t.large || len(list) > waveShare {
			may += t.nanos
		}
	}
	if may < waveWork || !o.levels(list) {
		return false
	}
	ts := o.turns
	slices.SortStableFunc(ts, func(a, b turn) int { return cmp.Compare(a.level, b.level) })
	waves := int32(0)
	for rest := ts; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].level == rest[0].level {
			n++
		}
		if group(rest[:n], threads, waves+1) {
			waves++
		}
		rest = rest[n:]
	}
	return waves > 0
}

// levels gives every launch a level above those of all that must run before it;
// false where no two have the same.
func (o *ordering) levels(list []runtime.Launch) bool {
	operands := 0
	for i := range list {
		operands += len(list[i].Args)
	}
	o.open(operands)
	floor, top := int32(0), int32(0)
	for i := range list {
		p, ok := list[i].Prog.(*program)
		if !ok || len(list[i].Args) != len(p.kernel.Operands) || len(list[i].Args) > maxOperands {
			return false // an error, found when it is prepared
		}
		at := floor
		var uses [maxOperands]*use
		for j := range list[i].Args {
			b, ok := list[i].Args[j].Buf.(*buffer)
			if !ok {
				continue // of an index
			}
			uses[j] = o.use(b)
			at = max(at, uses[j].before(p.writes[j], list[i].Args[j].Piece))
		}
		if p.faults {
			at = top
			floor = at + 1
		}
		for j, u := range uses[:len(list[i].Args)] {
			if u == nil {
				continue
			}
			u.note(at, p.writes[j], list[i].Args[j].Piece)
		}
		o.turns[i].level, top = at, max(top, at+1)
	}
	return int(top) < len(list)
}

// group makes a wave of what can be one of the launches of a level, and puts them
// last, the largest first, so that threads end together.
func group(level []turn, threads int64, wave int32) bool {
	all, n, work := int64(0), 0, int64(0)
	for i := range level {
		all += level[i].nanos
	}
	for i := range level {
		if t := &level[i]; !t.large || t.nanos*threads*waveShare <= all {
			t.wave = wave
			work += t.nanos
			n++
		}
	}
	if n < 2 || work < waveWork {
		for i := range level {
			level[i].wave = 0
		}
		return false
	}
	slices.SortStableFunc(level, func(a, b turn) int {
		if a.wave == 0 || b.wave == 0 {
			return cmp.Compare(a.wave, b.wave)
		}
		return cmp.Compare(b.nanos, a.nanos)
	})
	return true
}

// inWave is how many launches at the beginning of a list are a wave; 1 where the
// first has the threads for itself.
func inWave(list []ready) int {
	n := 1
	for n < len(list) && list[0].wave > 0 && list[n].wave == list[0].wave {
		n++
	}
	return n
}
