package cpu

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// machinePhase is a phase as machine code. The code handles rows of points at a constant step.
// Other layouts go through the caller's memory: the positions of staged operands, and results that
// not every point stores or that are not at a constant step.
type machinePhase struct {
	kernel *codegen.Kernel
	v      native.Variant
	isa    *native.ISA
	mxcsr  uint32
	number int // of the phase

	whole  jit.Code
	past   func() *jit.Code // stores past the caches; returns nil if unavailable
	ahead  func() *jit.Code // as past, with prefetching
	folds  *jit.Code        // folds rows of the values that it computes, see compileFolding; or nil
	bypass uint64           // operands that past stores past the caches

	used   []int32 // operands that the code reads or writes
	direct []int32 // the used operands that are addressed by steps
	staged []int32
	boxed  []int32 // outputs that go through memory
	chunk  int64   // most points of a call, to bound its duration
	work   int64   // most points of a call by computation alone

	listing atomic.Pointer[string] // the assembly, once requested
}

const (
	// blockPoints is the most points of a call whose operands go through memory.
	blockPoints = 512
	// callWork and callMemory bound a call to about 100 µs. A garbage collection may have to wait
	// for a call; 200 µs is the most it should wait. The bounds assume at most a nanosecond per
	// vector instruction and at least 5 GB/s per core.
	callWork   = 1 << 16
	callMemory = 1 << 19
	// farMemory is the assumed memory traffic, in bytes, of an element that is not next to the one
	// before: two cache lines, because adjacent accesses do not share them.
	farMemory = 128
	// rowVectors is the extra work of a row, in vectors: its last, partial vector may be processed
	// lane by lane.
	rowVectors = 3
	// wholeLines is a number of points that fills whole cache lines: calls stay aligned.
	wholeLines = 64
)

// bound computes the most points of a call.
func (p *machinePhase) bound() {
	memory := int64(8 * len(p.kernel.Reduces))
	for _, i := range p.used {
		o := &p.kernel.Operands[i]
		indexed := slices.ContainsFunc(p.kernel.Body, func(in ir.Instr) bool { return in.Op == ir.LoadAt && int32(uint32(in.Imm)) == i })
		switch class := p.v.Class[i]; {
		case o.Kind == codegen.Index || class == codegen.Splat && !indexed:
		case class == codegen.Contiguous && !indexed:
			memory += int64(o.DT.Size())
		default:
			memory += farMemory
		}
	}
	lanes := int64(p.whole.Func.Lanes)
	p.work = callWork / int64(max(p.whole.Func.Work, 1)) * lanes
	p.chunk = max(min(p.work, callMemory/max(memory, 1))/wholeLines*wholeLines, wholeLines)
}

// callRows returns how many rows of n points a call may take.
func (p *machinePhase) callRows(n int64) int64 {
	lanes := int64(p.whole.Func.Lanes)
	return min(p.work/((n+lanes-1)/lanes*lanes+rowVectors*lanes), p.chunk/n)
}

// newMachinePhase compiles a phase. Its first own operands are the kernel's; looks allows it to
// prefetch.
func newMachinePhase(u *cgo.Unit, own int, isa *native.ISA, looks bool) (*machinePhase, error) {
	k := u.Kernel
	p := &machinePhase{kernel: k, isa: isa, mxcsr: jit.MXCSR(k.Denormals)}
	p.v.Class = append(p.v.Class, u.Class...)
	for i, o := range k.Operands {
		stored := slices.ContainsFunc(k.Stores, func(s codegen.Store) bool { return s.Operand == i })
		switch {
		case o.Kind == codegen.Output && !stored: // a row op's result, which the phase's code does not store
			p.v.Class[i] = codegen.Contiguous
		case o.Kind == codegen.Output && (u.Class[i] == codegen.Splat || u.Class[i] == codegen.Staged || u.Guarded && i < own):
			p.boxed = append(p.boxed, int32(i))
			p.v.Class[i] = codegen.Contiguous
		case o.Kind == codegen.Output && u.Class[i] == codegen.Contiguous && o.DT.Size() >= 4 && i < min(u.Streams, 64) && isa.PassesCaches():
			p.bypass |= 1 << i
		case o.Kind != codegen.Output && u.Class[i] == codegen.Staged:
			p.staged = append(p.staged, int32(i))
		case looks && o.Kind == codegen.Input && u.Class[i] == codegen.Contiguous && i < min(own, 64):
			p.v.Ahead |= 1 << i
		}
	}
	f, err := native.Compile(k, p.v, isa, false)
	if err != nil {
		return nil, err
	}
	if p.whole, err = jit.Map(f, "kernel"); err != nil {
		return nil, err
	}
	for i := range k.Operands {
		if !f.Reads(i) {
			continue
		}
		p.used = append(p.used, int32(i))
		if !slices.Contains(p.boxed, int32(i)) && !slices.Contains(p.staged, int32(i)) {
			p.direct = append(p.direct, int32(i))
		}
	}
	p.bound()
	if len(p.boxed)+len(p.staged) > 0 {
		p.chunk = min(p.chunk, blockPoints)
	}
	p.past = sync.OnceValue(func() *jit.Code { return p.compilePast(false) })
	p.ahead = sync.OnceValue(func() *jit.Code { return p.compilePast(true) })
	return p, nil
}

// compilePast compiles the version that stores past the caches.
func (p *machinePhase) compilePast(ahead bool) *jit.Code {
	v := p.v
	if v.Past, v.Far = p.bypass, ahead; v.Past == 0 {
		return nil
	}
	f, err := native.Compile(p.kernel, v, p.isa, false)
	if err != nil || f.Bytes > p.whole.Func.Bytes { // scratch memory is sized for the other version
		jit.Refused.Add(1)
		return nil
	}
	return jit.MapOptional(f, "kernel past caches")
}

// scratch returns the bytes of a frame and of the memory for operands that go through memory. The
// frame of the version that stores past the caches is not larger.
func (p *machinePhase) scratch() int64 {
	frame := p.whole.Func.Bytes
	if p.folds != nil {
		frame = max(frame, p.folds.Func.Bytes)
	}
	return memory.Aligned(int64(frame)) + int64(len(p.boxed)+len(p.staged))*blockPoints*8 + 64
}

// text returns the assembly. The first call compiles the phase again; the text is then kept for
// repeated reports.
func (p *machinePhase) text() string {
	if t := p.listing.Load(); t != nil {
		return *t
	}
	text := ""
	if f, err := native.Compile(p.kernel, p.v, p.isa, true); err != nil {
		text = fmt.Sprintf("; %v\n", err)
	} else {
		text = f.Text()
	}
	p.listing.Store(&text)
	return text
}
