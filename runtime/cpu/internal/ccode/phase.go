//go:build cgo && unix

package ccode

/*
#include "abi.h"
#include "fpenv.h"

// The pointers come as numbers: what they point to is kept alive, and not moved, by
// whoever evaluates.
static void mr_call(mr_u64 f, mr_u64 a, mr_i64 begin, mr_i64 end, int flush)
{
	mr_fpenv saved = mr_fpenv_set(flush);
	((mr_eval)f)((const mr_args *)a, begin, end);
	mr_fpenv_restore(saved);
#if defined __SSE__
	__builtin_ia32_sfence(); // for what was stored past the caches
#endif
}
*/
import "C"

import (
	goruntime "runtime"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Phase is a phase as a function made by a C compiler. A call takes 40 to 120 ns, and as much
// again to write the operands in C's form. They are written into the scratch memory of the
// evaluation, with addresses as numbers, so that the garbage collector and cgo's pointer checks do
// nothing.
type Phase struct {
	f     unsafe.Pointer
	owner *code // keeps the object loaded while the phase is used
	flush C.int

	reduces, stages int // numbers for an evaluation; stages counts only those that the scratch memory has room for
	room            cRoom
}

// cRoom holds the offsets of the parts of an evaluation in its memory, in bytes.
type cRoom struct{ ops, scalars, bufs, fault, stages, end uintptr }

// roomyStages is the number of stages that each operand has room for; more are allocated.
const roomyStages = 2

func newPhase(owner *code, f unsafe.Pointer, u *cgo.Unit) *Phase {
	k := u.Kernel
	p := &Phase{owner: owner, f: f, reduces: len(k.Reduces)}
	if k.Denormals == ir.FlushDenormals {
		p.flush = 1
	}
	for _, c := range u.Class {
		if c == codegen.Staged {
			p.stages += roomyStages
		}
	}
	m := &p.room
	m.ops = unsafe.Sizeof(cArgs{})
	m.scalars = m.ops + uintptr(len(k.Operands))*unsafe.Sizeof(cOperand{})
	m.bufs = m.scalars + uintptr(len(k.Scalars))*8
	m.fault = m.bufs + uintptr(p.reduces)*8
	m.stages = m.fault + unsafe.Sizeof(cFault{})
	m.end = m.stages + uintptr(p.stages)*unsafe.Sizeof(cStage{})
	return p
}

// Scratch returns the bytes of memory that an evaluation needs.
func (p *Phase) Scratch() int64 { return int64(p.room.end) }

// Eval computes points [begin, end). Several threads may call it at once. It keeps no reference to
// a.
func (p *Phase) Eval(a *operands.Args, begin, end int64) {
	at := unsafe.Pointer(unsafe.SliceData(a.Scratch))
	c := (*cArgs)(at)
	*c = cArgs{
		rank: int64(a.Rank), dims: a.Dims, ops: uintptr(at) + p.room.ops, scalars: uintptr(at) + p.room.scalars,
		bufs: uintptr(at) + p.room.bufs, fault: uintptr(at) + p.room.fault,
	}
	copy(unsafe.Slice((*uint64)(unsafe.Add(at, p.room.scalars)), len(a.Scalars)), a.Scalars)
	bufs := unsafe.Slice((*uintptr)(unsafe.Add(at, p.room.bufs)), p.reduces)
	for i := range bufs {
		bufs[i] = uintptr(a.Bufs[i])
	}
	fault := (*cFault)(unsafe.Add(at, p.room.fault))
	*fault = cFault{}
	stages := p.operands(at, a.Ops)
	C.mr_call(C.mr_u64(uintptr(p.f)), C.mr_u64(uintptr(at)), C.mr_i64(begin), C.mr_i64(end), p.flush)
	goruntime.KeepAlive(p)
	goruntime.KeepAlive(a)
	goruntime.KeepAlive(stages)
	if fault.set != 0 {
		a.Fault.Note(int(fault.operand), fault.index)
	}
}

// operands writes the operands, and returns the memory of their stages.
func (p *Phase) operands(at unsafe.Pointer, ops []operands.Operand) []cStage {
	list := unsafe.Slice((*cOperand)(unsafe.Add(at, p.room.ops)), len(ops))
	var stages []cStage
	if p.stages > 0 { // otherwise the address is that of the end of the memory
		stages = unsafe.Slice((*cStage)(unsafe.Add(at, p.room.stages)), p.stages)
	}
	n := 0
	for i := range ops {
		n += len(ops[i].Stages)
	}
	if n > len(stages) {
		stages = make([]cStage, n)
	}
	rest := stages
	for i := range ops {
		o := &ops[i]
		list[i] = cOperand{
			base: uintptr(o.Base), offset: o.Offset, stride: o.Stride, guard: o.Guard,
			istride: o.IndexStride, isize: o.IndexSize, nstages: int32(len(o.Stages)),
		}
		if o.Stream {
			list[i].stream = 1
		}
		for j := range o.Stages {
			s := &o.Stages[j]
			rest[j] = cStage{s.Offset, int64(len(s.Dims)), addressOf(s.Dims), addressOf(s.Stride)}
		}
		if n := len(o.Stages); n > 0 {
			list[i].stages, rest = uintptr(unsafe.Pointer(&rest[0])), rest[n:]
		}
	}
	return stages
}

func addressOf(list []int64) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(list))) }

// The structs of abi.h, with addresses as numbers.
type (
	cStage struct {
		offset, rank int64
		dims, stride uintptr
	}
	cOperand struct {
		base           uintptr
		_              [wordPad]byte
		offset         int64
		stride         [runtime.MaxRank]int64
		stages         uintptr
		nstages        int32
		guard          uint32
		_              [guardPad]byte
		istride, isize int64
		stream         int64
	}
	cFault struct {
		lock, set      int32
		operand, index int64
	}
	cArgs struct {
		rank               int64
		dims               [runtime.MaxRank]int64
		ops, scalars, bufs uintptr
		fault              uintptr
	}
)

// Padding that C inserts before 64-bit numbers. Go aligns them as words if words have 32 bits.
const (
	wordPad  = unsafe.Offsetof(C.mr_operand{}.offset) - unsafe.Sizeof(uintptr(0))
	guardPad = unsafe.Offsetof(C.mr_operand{}.istride) - unsafe.Offsetof(C.mr_operand{}.guard) - 4
)

// The structs have the same layout in C and Go: the compiler checks sizes, and the offsets that
// could differ.
var (
	_ [unsafe.Sizeof(cStage{})]byte           = [C.sizeof_mr_stage]byte{}
	_ [unsafe.Sizeof(cOperand{})]byte         = [C.sizeof_mr_operand]byte{}
	_ [unsafe.Sizeof(cFault{})]byte           = [C.sizeof_mr_fault]byte{}
	_ [unsafe.Sizeof(cArgs{})]byte            = [C.sizeof_mr_args]byte{}
	_ [unsafe.Offsetof(cOperand{}.guard)]byte = [unsafe.Offsetof(C.mr_operand{}.guard)]byte{}
	_ [unsafe.Offsetof(cOperand{}.isize)]byte = [unsafe.Offsetof(C.mr_operand{}.isize)]byte{}
	_ [unsafe.Offsetof(cFault{}.operand)]byte = [unsafe.Offsetof(C.mr_fault{}.operand)]byte{}
	_ [unsafe.Offsetof(cArgs{}.bufs)]byte     = [unsafe.Offsetof(C.mr_args{}.bufs)]byte{}
	_ [unsafe.Offsetof(cArgs{}.fault)]byte    = [unsafe.Offsetof(C.mr_args{}.fault)]byte{}
)
