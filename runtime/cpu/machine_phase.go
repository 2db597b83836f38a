package cpu

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// machinePhase is a phase as machine code. Code knows rows of points that lie a step
// apart; what lies otherwise goes through memory of the caller's: where the points of
// staged operands are, and results that not every point stores, or not at a step.
type machinePhase struct {
	kernel *codegen.Kernel
	v      native.Variant
	isa    *native.ISA
	mxcsr  uint32
	number int // of the phase

	whole  machineCode
	past   func() *machineCode // stores past the caches; nil where that cannot be had
	ahead  func() *machineCode // does so too, and asks for what it will read
	folds  *machineCode        // folds rows of what it computes, see compileFolding; or nil
	bypass uint64              // operands that it stores so

	used   []int32 // operands that code reads or writes
	direct []int32 // those of them that it finds by steps
	staged []int32
	boxed  []int32 // outputs
	chunk  int64   // points of a call, so that none takes long
	work   int64   // the same by what is computed alone

	listing atomic.Pointer[string] // the assembly, once somebody asked for it
}

// machineCode is a function in executable memory.
type machineCode struct {
	f     *native.Func
	code  *machine.Code
	entry uintptr
}

// machineISA is the target of machine code, nil where there is none.
func machineISA() *native.ISA {
	switch machine.Level() {
	case machine.AVX512:
		return native.AVX512
	case machine.AVX2:
		return native.AVX2
	case machine.NEON:
		return native.NEON
	}
	return nil
}

const (
	// blockPoints are the points of a call whose operands go through memory.
	blockPoints = 512
	// callWork and callMemory bound a call: 200 µs are the most that a collection may wait
	// for one. They are about half of that, an instruction of a vector taking a nanosecond at
	// most, and a core moving 5 GB/s at least.
	callWork   = 1 << 16
	callMemory = 1 << 19
	// farMemory is what an element takes that is not beside the one before: two lines, as
	// neither caches nor their directories help.
	farMemory = 128
	// rowVectors are what a row takes besides its points: its last vector, which is not
	// whole, goes lane by lane at worst.
	rowVectors = 3
	// wholeLines are points that take whole lines of memory: calls stay aligned.
	wholeLines = 64
)

// bound finds the points of a call.
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
	lanes := int64(p.whole.f.Lanes)
	p.work = callWork / int64(max(p.whole.f.Work, 1)) * lanes
	p.chunk = max(min(p.work, callMemory/max(memory, 1))/wholeLines*wholeLines, wholeLines)
}

// callRows are the rows of n points of a call.
func (p *machinePhase) callRows(n int64) int64 {
	lanes := int64(p.whole.f.Lanes)
	return min(p.work/((n+lanes-1)/lanes*lanes+rowVectors*lanes), p.chunk/n)
}

// newMachinePhase compiles a phase, whose first own operands are the kernel's; looks says
// that it may ask for what is ahead.
func newMachinePhase(u *cgo.Unit, own int, isa *native.ISA, looks bool) (*machinePhase, error) {
	k := u.Kernel
	p := &machinePhase{kernel: k, isa: isa, mxcsr: mxcsrOf(k.Denormals)}
	p.v.Class = append(p.v.Class, u.Class...)
	for i, o := range k.Operands {
		stored := slices.ContainsFunc(k.Stores, func(s codegen.Store) bool { return s.Operand == i })
		switch {
		case o.Kind == codegen.Output && !stored: // a row op's result, which is somebody else's
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
	if p.whole, err = mapCode(f, "kernel"); err != nil {
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
	p.past = sync.OnceValue(func() *machineCode { return p.compilePast(false) })
	p.ahead = sync.OnceValue(func() *machineCode { return p.compilePast(true) })
	return p, nil
}

// mapCode makes a function one that can be called. name is for perf.
func mapCode(f *native.Func, name string) (machineCode, error) {
	code, err := machine.Map(f.Code)
	if err != nil {
		return machineCode{}, err
	}
	_ = machine.Name(code, 0, len(f.Code), "millrace "+name) // a full disk is no reason not to run
	c := machineCode{f: f, code: code, entry: code.Addr(0)}
	f.Code = nil
	return c, nil
}

// compilePast makes the form that stores past the caches.
func (p *machinePhase) compilePast(ahead bool) *machineCode {
	v := p.v
	if v.Past, v.Far = p.bypass, ahead; v.Past == 0 {
		return nil
	}
	f, err := native.Compile(p.kernel, v, p.isa, false)
	if err != nil || f.Bytes > p.whole.f.Bytes { // scratch memory is measured by the other
		lesserRefused.Add(1)
		return nil
	}
	return lesserCode(f, "kernel past caches")
}

// lesserRefused counts code, of all devices, that could not be had and that kernels run
// without: slower, but no less right.
var lesserRefused atomic.Int64

// lesserCode is mapCode for such code.
func lesserCode(f *native.Func, name string) *machineCode {
	c, err := mapCode(f, name)
	if err != nil {
		lesserRefused.Add(1)
		return nil
	}
	return &c
}

func mxcsrOf(d ir.Denormals) uint32 {
	if d == ir.FlushDenormals {
		return machine.FlushMXCSR
	}
	return machine.KeepMXCSR
}

// scratch is a frame, and memory for what goes through it. The frame of the form that
// stores past the caches is as large.
func (p *machinePhase) scratch() int64 {
	frame := p.whole.f.Bytes
	if p.folds != nil {
		frame = max(frame, p.folds.f.Bytes)
	}
	return aligned(int64(frame)) + int64(len(p.boxed)+len(p.staged))*blockPoints*8 + 64
}

// text is the assembly. The first call compiles the phase once more; reports ask again and
// again, so the text is kept.
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

// word is a word of a frame.
func word(frame unsafe.Pointer, at int) *int64 { return (*int64)(unsafe.Add(frame, at)) }
