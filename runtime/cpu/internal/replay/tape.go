package replay

import (
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Tape records the work of a launch while it is walked, on one thread. A walker must report every
// write to memory. If the work cannot be expressed in steps, or depends on values, the walker loses
// the tape, and the launch is walked in each run.
type Tape struct {
	k       *Launch
	regions []region
	room    int64 // bytes of regions
	lost    bool
}

var _ operands.Recorder = (*Tape)(nil)

// region is memory that the launch got from its thread.
type region struct {
	from, to uintptr
	at       int64 // its offset in the memory of a replay
}

// Region records that a walker uses n bytes of the thread's memory for the launch.
func (t *Tape) Region(p unsafe.Pointer, n int64) {
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
	t.regions = append(t.regions, region{from, from + uintptr(n), t.room})
	t.room += memory.Aligned(n)
}

// Lose gives the recording up.
func (t *Tape) Lose() { t.lost = true }

// Address is the offset of a word in a frame that is an address, and the operand that it may point
// into, or operands.NoOperand.
type Address struct{ At, Operand int }

// Call records a call of machine code with a frame, of which addresses lists the addresses. A word
// of 0 stays 0.
func (t *Tape) Call(entry uintptr, mxcsr uint32, frame []uint64, addresses []Address) {
	k := t.k
	if !t.step(step{entry: entry, mxcsr: mxcsr, n: int32(len(frame))}) {
		return
	}
	t.last().at = int32(len(k.words))
	k.words = append(k.words, frame...)
	k.frame = max(k.frame, int64(len(frame))*8)
	for _, a := range addresses {
		t.address(a.At, a.Operand)
	}
}

// Do records Go work on pointers.
func (t *Tape) Do(f func(p *operands.Pointers), pointers ...operands.Pointer) {
	if !t.step(step{do: f}) {
		return
	}
	for i, p := range pointers {
		base, offset := t.resolve(p.P, p.Operand)
		t.patch(i, base, offset)
	}
}

// Check records Go work that notes indices out of range.
func (t *Tape) Check(f func(p *operands.Pointers, fault *operands.IndexFault), pointers ...operands.Pointer) {
	k := t.k
	t.Do(func(p *operands.Pointers) { f(p, k.fault) }, pointers...)
}

// Stop marks that the launch ends here if an index was out of range: nothing is written then.
func (t *Tape) Stop() {
	if !t.lost {
		t.last().stops = true
	}
}

func (t *Tape) last() *step { return &t.k.steps[len(t.k.steps)-1] }

// step adds a step; it returns false if the tape is lost.
func (t *Tape) step(s step) bool {
	if t.share(); t.lost {
		return false
	}
	s.from = int32(len(t.k.patches))
	s.to = s.from
	t.k.steps = append(t.k.steps, s)
	if t.k.bytes() > tapeBytes {
		t.lost = true
	}
	return !t.lost
}

// resolve finds the base of an address: the thread's memory, or else the buffer of the named
// operand.
func (t *Tape) resolve(p unsafe.Pointer, operand int) (base int, offset int64) {
	a := uintptr(p)
	for _, r := range t.regions {
		if r.from <= a && a < r.to {
			return baseMemory, r.at + int64(a-r.from)
		}
	}
	if b := t.buffer(operand); b != nil && a-uintptr(b.P) < uintptr(b.Bytes()) {
		return baseArgs + operand, int64(a - uintptr(b.P))
	}
	t.lost = true
	return baseNone, 0
}

// buffer returns the buffer of an operand, nil if it has none.
func (t *Tape) buffer(operand int) *memory.Buffer {
	if operand < 0 || operand >= len(t.k.l.Args) {
		return nil
	}
	b, _ := t.k.l.Args[operand].Buf.(*memory.Buffer)
	return b
}

// patch adds an address to the current step, for a word of its frame.
func (t *Tape) patch(at, base int, offset int64) {
	if offset != int64(int32(offset)) {
		t.lost = true
	}
	t.k.patches = append(t.k.patches, patch{uint16(at), uint16(base), int32(offset)})
	t.last().to = int32(len(t.k.patches))
}

// word returns a word of the current frame.
func (t *Tape) word(at int) *uint64 { return &t.k.words[int(t.last().at)+at/8] }

// address makes a word of the current frame a patched one. A zero word stays zero.
func (t *Tape) address(at, operand int) {
	if w := t.word(at); *w != 0 {
		base, offset := t.resolve(*(*unsafe.Pointer)(unsafe.Pointer(w)), operand)
		t.patch(at/8, base, offset)
		*w = 0
	}
}

// sharedSteps is how many steps back share looks for an equal frame.
const sharedSteps = 32

// share lets the last step reuse the words of an earlier step if they are equal: tiles differ only
// in addresses.
func (t *Tape) share() {
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

// end completes the recording, or drops it if it is lost or too large.
func (t *Tape) end() {
	t.share()
	k := t.k
	if t.lost || len(k.steps) == 0 || k.bytes() > tapeBytes || k.frame+t.room > tapeRoom {
		k.drop()
		k.walked = true
		return
	}
	k.frame = memory.Aligned(k.frame)
	for i := range k.patches {
		if p := &k.patches[i]; p.base == baseMemory {
			p.offset += int32(k.frame)
		}
	}
	k.room = k.frame + t.room
	k.steps, k.words, k.patches = slices.Clip(k.steps), slices.Clip(k.words), slices.Clip(k.patches)
}
