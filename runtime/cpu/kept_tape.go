package cpu

import (
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/runtime"
)

// tape records the work of a launch while it is walked, on one thread. A walker must record every
// write to memory here. If the work cannot be expressed in steps, or depends on values, the tape
// is lost, and the launch is walked in each run.
type tape struct {
	k       *keptLaunch
	l       *runtime.Launch
	regions []tapeRegion
	room    int64 // bytes of regions
	bytes   int64 // most bytes of the recording
	lost    bool
}

// tapeRegion is memory that the launch got from its thread.
type tapeRegion struct {
	from, to uintptr
	at       int64 // its offset in the memory of a replay
}

// noOperand is the operand of addresses in the thread's memory.
const noOperand = -1

// region records that a walker uses this memory for the launch.
func (t *tape) region(p unsafe.Pointer, n int64) {
	if t == nil {
		return
	}
	from := uintptr(p)
	for _, r := range t.regions {
		if r.from <= from && from+uintptr(n) <= r.to {
			return
		}
		if from < r.to && r.from < from+uintptr(n) { // overlaps a region without being part of it
			t.lost = true
			return
		}
	}
	if from%64 != 0 {
		t.lost = true
	}
	t.regions = append(t.regions, tapeRegion{from, from + uintptr(n), t.room})
	t.room += aligned(n)
}

// lose gives the recording up.
func (t *tape) lose() {
	if t != nil {
		t.lost = true
	}
}

// step adds a step; it returns false if the tape is lost.
func (t *tape) step(s keptStep) bool {
	if t.share(); t.lost {
		return false
	}
	s.from = int32(len(t.k.patches))
	s.to = s.from
	t.k.steps = append(t.k.steps, s)
	if t.k.bytes() > t.bytes {
		t.lost = true
	}
	return !t.lost
}

// resolve finds the base of an address: the thread's memory, or else the buffer of the named
// operand.
func (t *tape) resolve(p unsafe.Pointer, operand int) (base int, offset int64) {
	a := uintptr(p)
	for _, r := range t.regions {
		if r.from <= a && a < r.to {
			return baseMemory, r.at + int64(a-r.from)
		}
	}
	if operand >= 0 && operand < len(t.l.Args) {
		if b, ok := t.l.Args[operand].Buf.(*buffer); ok && a-uintptr(b.p) < uintptr(b.bytes) {
			return baseArgs + operand, int64(a - uintptr(b.p))
		}
	}
	t.lost = true
	return baseNone, 0
}

// patch adds an address to the current step, for a word of its frame.
func (t *tape) patch(at int, p unsafe.Pointer, operand int) {
	base, offset := t.resolve(p, operand)
	t.add(at, base, offset)
}

func (t *tape) add(at, base int, offset int64) {
	if offset != int64(int32(offset)) {
		t.lost = true
	}
	t.k.patches = append(t.k.patches, patch{uint16(at), uint16(base), int32(offset)})
	t.k.steps[len(t.k.steps)-1].to = int32(len(t.k.patches))
}

// call records a call whose frame has so many words. addresses lists the words that are addresses.
func (t *tape) call(entry uintptr, mxcsr uint32, frame unsafe.Pointer, words int, addresses ...tapeAddress) {
	k := t.k
	if !t.step(keptStep{entry: entry, mxcsr: mxcsr, n: int32(words)}) {
		return
	}
	k.steps[len(k.steps)-1].at = int32(len(k.words))
	k.words = append(k.words, unsafe.Slice((*uint64)(frame), words)...)
	k.frame = max(k.frame, int64(words)*8)
	for _, a := range addresses {
		t.address(a.at, a.operand)
	}
}

// tapeAddress is the offset of a word in a frame, and the operand that it may point into.
type tapeAddress struct{ at, operand int }

// address makes a word of the current frame a patched one. A zero word stays zero.
func (t *tape) address(at, operand int) {
	s := &t.k.steps[len(t.k.steps)-1]
	w := &t.k.words[int(s.at)+at/8]
	if *w != 0 {
		t.patch(at/8, *(*unsafe.Pointer)(unsafe.Pointer(w)), operand)
		*w = 0
	}
}

// phase records a call of a phase's code with the frame that a walk has written.
func (t *tape) phase(w *machineWalk, code *machineCode) {
	if t.lost {
		return
	}
	p := w.p
	if len(p.staged)+len(p.boxed) > 0 {
		t.lose()
		return
	}
	t.call(code.entry, p.mxcsr, w.frame, code.f.Scalars/8+len(p.kernel.Scalars))
	if t.lost {
		return
	}
	k := t.k
	k.frame = max(k.frame, int64(code.f.Bytes))
	s := &k.steps[len(k.steps)-1]
	for _, i := range p.direct {
		at := native.FrameArgs + int(i)*native.OperandBytes + native.Address
		if o := &w.a.ops[i]; o.base != nil {
			t.operand(at, o, int(i))
			continue
		}
		number := &k.words[int(s.at)+at/8] // a position, which code increments
		t.add(at/8, baseNone, int64(*number))
		*number = 0
	}
	for i := range p.kernel.Reduces {
		t.address(native.FrameArgs+(len(p.kernel.Operands)+i)*native.OperandBytes+native.Address, noOperand)
	}
	s = &k.steps[len(k.steps)-1]
	s.phase, s.faults = true, w.a.fault != nil
}

// operand records the address of a phase's operand. The address may point before its buffer if the
// read elements are behind a guard.
func (t *tape) operand(at int, o *operand, i int) {
	if i >= len(t.l.Args) {
		i = noOperand
	} else if b, ok := t.l.Args[i].Buf.(*buffer); ok && b.p == o.base {
		s := &t.k.steps[len(t.k.steps)-1]
		w := &t.k.words[int(s.at)+at/8]
		t.add(at/8, baseArgs+i, int64(*w)-int64(uintptr(b.p)))
		*w = 0
		return
	}
	t.address(at, i)
}

// sharedSteps is how many steps back share looks for an equal frame.
const sharedSteps = 32

// share lets the last step reuse the words of an earlier step if they are equal: tiles differ only
// in addresses.
func (t *tape) share() {
	k := t.k
	last := len(k.steps) - 1
	if t.lost || last < 0 || k.steps[last].do != nil {
		return
	}
	s := &k.steps[last]
	words := k.words[s.at : s.at+s.n]
	for i := last - 1; i >= max(last-sharedSteps, 0); i-- {
		e := &k.steps[i]
		if e.do == nil && e.entry == s.entry && e.n == s.n && e.mxcsr == s.mxcsr && slices.Equal(k.words[e.at:e.at+e.n], words) {
			k.words = k.words[:s.at]
			s.at, s.again = e.at, s.phase && i == last-1
			return
		}
	}
}

// do records Go work on pointers.
func (t *tape) do(f func(p *[keptPointers]unsafe.Pointer), pointers ...tapePointer) {
	if !t.step(keptStep{do: f}) {
		return
	}
	for i, p := range pointers {
		t.patch(i, p.p, p.operand)
	}
}

// tapePointer is a pointer, and the operand that it may point into.
type tapePointer struct {
	p       unsafe.Pointer
	operand int
}

// end completes the recording, or drops it if it is lost or too large.
func (t *tape) end() {
	t.share()
	k := t.k
	if t.lost || len(k.steps) == 0 || k.frame+t.room > tapeRoom {
		k.drop()
		k.walked = true
		return
	}
	k.frame = aligned(k.frame)
	for i := range k.patches {
		if p := &k.patches[i]; p.base == baseMemory {
			p.offset += int32(k.frame)
		}
	}
	k.room = k.frame + t.room
	k.steps, k.words, k.patches = slices.Clip(k.steps), slices.Clip(k.words), slices.Clip(k.patches)
}
