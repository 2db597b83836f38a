package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
)

// keptLaunch is a launch of a prepared list as what it comes to: calls of machine code with the
// frames that walkers wrote for them, and what Go does between them. Operands, tiles and
// plans are the same from run to run, but for where buffers are: so frames are written once,
// and a run puts addresses in. One thread at a time runs it.
type keptLaunch struct {
	base    []unsafe.Pointer // nil, the thread's memory, and from baseArgs on the operands' buffers
	steps   []keptStep       // none: it is walked
	words   []uint64         // of frames, without addresses
	patches []patch
	frame   int64 // bytes of the largest frame
	room    int64 // bytes of a thread's memory: a frame, and what walkers had
	walked  bool  // for good: it cannot be kept
	args    [keptPointers]unsafe.Pointer
	fault   *indexFault // of a run
	runs    int64
}

// What a patch is relative to.
const (
	baseNone   = iota // it is a number
	baseMemory        // the thread's memory, behind the frame
	baseArgs          // the first operand's buffer
)

// keptPointers are the most that a step of Go takes.
const keptPointers = 4

// keptStep is one call.
type keptStep struct {
	entry    uintptr                             // of machine code
	do       func(*[keptPointers]unsafe.Pointer) // of Go, where there is no entry
	mxcsr    uint32
	stops    bool  // where an index was out of range, no step follows
	phase    bool  // its code is a phase's, which changes no more of a frame than rows and what is patched
	again    bool  // the frame of the step before is there, and only what is patched changes
	faults   bool  // it notes an index out of range
	at, n    int32 // words of the frame
	from, to int32 // patches
}

// patch puts an address, or a number that code counts up, in a word of a frame; where Go is
// called it is the pointer of this number.
type patch struct {
	at, base uint16
	offset   int32
}

func newKept(r *ready) *keptLaunch {
	k := &keptLaunch{base: make([]unsafe.Pointer, baseArgs+len(r.l.Args))}
	for i := range r.l.Args {
		if b, ok := r.l.Args[i].Buf.(*buffer); ok {
			k.base[baseArgs+i] = b.p
		}
	}
	return k
}

// run runs the launch, with so many bytes of a thread's memory.
func (k *keptLaunch) run(memory unsafe.Pointer, fault *indexFault) {
	k.base[baseMemory], k.fault = memory, fault
	k.runs++
	for i := range k.steps {
		s := &k.steps[i]
		if s.do != nil {
			for _, p := range k.patches[s.from:s.to] {
				k.args[p.at] = unsafe.Add(k.base[p.base], int64(p.offset))
			}
			if s.do(&k.args); s.stops && fault.set {
				return
			}
			continue
		}
		if s.again {
			*word(memory, native.FrameRows) = int64(k.words[s.at+native.FrameRows/8])
		} else {
			copy(unsafe.Slice((*uint64)(memory), s.n), k.words[s.at:s.at+s.n])
		}
		for _, p := range k.patches[s.from:s.to] {
			*word(memory, int(p.at)*8) = int64(uintptr(k.base[p.base])) + int64(p.offset)
		}
		machine.Call(s.entry, memory, s.mxcsr)
		if s.faults && *word(memory, native.FrameFault) != 0 {
			fault.note(int(*word(memory, native.FrameFault+8)), *word(memory, native.FrameFault+16))
		}
	}
}

// bytes is what is kept.
func (k *keptLaunch) bytes() int64 {
	return int64(len(k.words))*8 + int64(len(k.patches))*int64(unsafe.Sizeof(patch{})) + int64(len(k.steps))*int64(unsafe.Sizeof(keptStep{}))
}

const (
	// keptWork is the time, in nanoseconds, of launches that are kept: of longer ones it does
	// not show what walkers write.
	keptWork = 16e3
	// tapeBytes are the most that a launch takes so, tapeRoom what it may have of a thread's
	// memory, and keptBytesAll what all lists of a device take.
	tapeBytes    = 64 << 10
	tapeRoom     = 512 << 10
	keptBytesAll = 32 << 20
)

// keptMemory is what all lists of a device keep, and the most that they may.
type keptMemory struct {
	bytes atomic.Int64
	most  int64
}

// keep runs a launch of a prepared list as it was kept. The first run is walked, and keeps it.
func (e *executor) keep(r *ready) error {
	k := r.kept
	if len(k.steps) > 0 {
		memory := e.memory[0].reserve(k.room)
		if memory == nil {
			return errRefused
		}
		k.run(memory, r.fault)
		return r.faulted()
	}
	if k.walked {
		return e.walk(r)
	}
	t := &tape{k: k, l: r.l, bytes: tapeBytes}
	r.tape = t
	err := e.walk(r)
	r.tape = nil
	if err != nil { // some of it may not have been done
		k.drop()
		return err
	}
	t.end()
	if all := &r.p.dev.kept; all.bytes.Add(k.bytes()) > all.most {
		k.close(all)
	}
	return nil
}

// drop forgets what was taken down.
func (k *keptLaunch) drop() { k.steps, k.words, k.patches, k.frame, k.room = nil, nil, nil, 0, 0 }

// close gives it back.
func (k *keptLaunch) close(all *keptMemory) {
	all.bytes.Add(-k.bytes())
	k.drop()
	k.walked = true
}
