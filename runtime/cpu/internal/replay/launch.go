package replay

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Launch is a recorded launch. One thread at a time runs it.
type Launch struct {
	l       *runtime.Launch
	base    []unsafe.Pointer // nil, the thread's memory, and from baseArgs on the operands' buffers
	steps   []step           // empty: not recorded
	words   []uint64         // contents of the frames, without addresses
	patches []patch
	frame   int64 // bytes of the largest frame
	room    int64 // bytes of a thread's memory: the frame and the working memory of the first run
	walked  bool  // permanently: the launch cannot be recorded
	args    operands.Pointers
	fault   *operands.IndexFault // of the current run
	runs    int64
}

// The bases of a patch.
const (
	baseNone   = iota // a number, not an address
	baseMemory        // the thread's memory, after the frame
	baseArgs          // the first operand's buffer
)

// step is one call.
type step struct {
	entry    uintptr                  // address of machine code
	do       func(*operands.Pointers) // a Go function, if entry is 0
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

// New returns a launch that is not recorded yet. It keeps l.
func New(l *runtime.Launch) *Launch {
	k := &Launch{l: l, base: make([]unsafe.Pointer, baseArgs+len(l.Args))}
	for i := range l.Args {
		if b, ok := l.Args[i].Buf.(*memory.Buffer); ok {
			k.Set(i, b)
		}
	}
	return k
}

// Set replaces the buffer of an operand in later runs.
func (k *Launch) Set(operand int, b *memory.Buffer) { k.base[baseArgs+operand] = b.P }

// Recorded reports that Run can run the launch.
func (k *Launch) Recorded() bool { return len(k.steps) > 0 }

// Run runs a recorded launch. It returns false if memory is refused.
func (k *Launch) Run(arena *memory.Arena, fault *operands.IndexFault) bool {
	memory := arena.Reserve(k.room)
	if memory == nil {
		return false
	}
	k.base[baseMemory], k.fault = memory, fault
	k.runs++
	for i := range k.steps {
		s := &k.steps[i]
		if s.do != nil {
			for _, p := range k.patches[s.from:s.to] {
				k.args[p.at] = unsafe.Add(k.base[p.base], int64(p.offset))
			}
			if s.do(&k.args); s.stops && fault.Set {
				return true
			}
			continue
		}
		if s.again {
			*jit.Word(memory, native.FrameRows) = int64(k.words[s.at+native.FrameRows/8])
		} else {
			copy(unsafe.Slice((*uint64)(memory), s.n), k.words[s.at:s.at+s.n])
		}
		for _, p := range k.patches[s.from:s.to] {
			*jit.Word(memory, int(p.at)*8) = int64(uintptr(k.base[p.base])) + int64(p.offset)
		}
		machine.Call(s.entry, memory, s.mxcsr)
		if s.faults && *jit.Word(memory, native.FrameFault) != 0 {
			fault.Note(int(*jit.Word(memory, native.FrameFault+8)), *jit.Word(memory, native.FrameFault+16))
		}
	}
	return true
}

// Runs returns how often Run ran the launch.
func (k *Launch) Runs() int64 { return k.runs }

const (
	// tapeBytes is the most that the recording of a launch may take, tapeRoom the most of a
	// thread's memory that it may use.
	tapeBytes = 64 << 10
	tapeRoom  = 512 << 10
)

// Budget counts the bytes of several recordings, and bounds them.
type Budget struct {
	Bytes atomic.Int64
	Most  int64
}

// Record runs a launch by walk and records it. The tape is nil if the launch cannot be recorded.
func (k *Launch) Record(b *Budget, walk func(*Tape) error) error {
	if k.walked {
		return walk(nil)
	}
	t := &Tape{k: k}
	if err := walk(t); err != nil { // a part of the work may be missing
		k.drop()
		return err
	}
	t.end()
	if b.Bytes.Add(k.bytes()) > b.Most {
		k.Close(b)
	}
	return nil
}

// Close deletes the recording. The launch is walked from then on.
func (k *Launch) Close(b *Budget) {
	b.Bytes.Add(-k.bytes())
	k.drop()
	k.walked = true
}

// bytes returns the size of the recording.
func (k *Launch) bytes() int64 {
	return int64(len(k.words))*8 + int64(len(k.patches))*int64(unsafe.Sizeof(patch{})) + int64(len(k.steps))*int64(unsafe.Sizeof(step{}))
}

// drop deletes the recording.
func (k *Launch) drop() { k.steps, k.words, k.patches, k.frame, k.room = nil, nil, nil, 0, 0 }
