package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
)

// keptLaunch is a recorded launch of a prepared list: the calls of machine code, with the frames
// that the first run wrote for them, and the Go work between the calls. Operands, tiles and plans
// are the same in each run; only the addresses of buffers change. Therefore frames are written
// once, and each run patches the addresses. One thread at a time runs it.
type keptLaunch struct {
	base    []unsafe.Pointer // nil, the thread's memory, and from baseArgs on the operands' buffers
	steps   []keptStep       // empty: not recorded
	words   []uint64         // contents of the frames, without addresses
	patches []patch
	frame   int64 // bytes of the largest frame
	room    int64 // bytes of a thread's memory: the frame and the working memory of the first run
	walked  bool  // permanently: the launch cannot be recorded
	args    [keptPointers]unsafe.Pointer
	fault   *indexFault // of the current run
	runs    int64
}

// The bases of a patch.
const (
	baseNone   = iota // a number, not an address
	baseMemory        // the thread's memory, after the frame
	baseArgs          // the first operand's buffer
)

// keptPointers is the most pointers that a Go step takes.
const keptPointers = 4

// keptStep is one call.
type keptStep struct {
	entry    uintptr                             // address of machine code
	do       func(*[keptPointers]unsafe.Pointer) // a Go function, if entry is 0
	mxcsr    uint32
	stops    bool  // if an index was out of range, no later step runs
	phase    bool  // the code of a phase, which changes only the row counter and the patched words of a frame
	again    bool  // the frame of the previous step is still there; only patched words change
	faults   bool  // it may report an index out of range
	at, n    int32 // first word and number of words of the frame
	from, to int32 // range of patches
}

// patch sets a word of a frame to an address, or to a number that code increments. In a Go step,
// at is the index of the pointer instead.
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

// run runs the launch. memory is a thread's memory of room bytes.
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

// bytes returns the size of the recording.
func (k *keptLaunch) bytes() int64 {
	return int64(len(k.words))*8 + int64(len(k.patches))*int64(unsafe.Sizeof(patch{})) + int64(len(k.steps))*int64(unsafe.Sizeof(keptStep{}))
}

const (
	// keptWork is the estimated time, in nanoseconds, up to which launches are recorded: in longer
	// launches the time to write frames does not matter.
	keptWork = 16e3
	// tapeBytes is the most that the recording of a launch may take, tapeRoom the most of a
	// thread's memory that it may use, and keptBytesAll the most that all recordings of a device
	// may take.
	tapeBytes    = 64 << 10
	tapeRoom     = 512 << 10
	keptBytesAll = 32 << 20
)

// keptMemory counts the bytes of all recordings of a device, and bounds them.
type keptMemory struct {
	bytes atomic.Int64
	most  int64
}

// keep runs a launch of a prepared list from its recording. The first run walks the launch and
// records it.
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
	if err != nil { // a part of the work may be missing
		k.drop()
		return err
	}
	t.end()
	if all := &r.p.dev.kept; all.bytes.Add(k.bytes()) > all.most {
		k.close(all)
	}
	return nil
}

// drop deletes the recording.
func (k *keptLaunch) drop() { k.steps, k.words, k.patches, k.frame, k.room = nil, nil, nil, 0, 0 }

// close deletes the recording, and the launch is walked from then on.
func (k *keptLaunch) close(all *keptMemory) {
	all.bytes.Add(-k.bytes())
	k.drop()
	k.walked = true
}
