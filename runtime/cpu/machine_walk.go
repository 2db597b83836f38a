package cpu

import (
	"math/bits"
	goruntime "runtime"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// machineWalk is one evaluation in progress. Its dims are those of the domain, from the innermost
// outward; dims that all operands walk as one dim are merged.
type machineWalk struct {
	p     *machinePhase
	a     *args
	frame unsafe.Pointer
	*merged
	at [runtime.MaxRank]int64 // position of the first point of the next call
}

// merged holds the dims of a domain as a phase walks them.
type merged struct {
	p     *machinePhase
	inner int64 // size of the domain's last dim, which is smaller at an edge
	rank  int
	dim   [runtime.MaxRank]int8 // the innermost of the merged dims
	size  [runtime.MaxRank]int64
	long  bool // reads continue far past the end of a row, or rows are long
}

// mergedCache caches merged for the phases of a launch, whose strides do not change.
type mergedCache [4]merged

// eval computes points [begin, end) of the domain.
func (p *machinePhase) eval(a *args, begin, end int64) {
	var own merged
	w := machineWalk{p: p, a: a, merged: &own}
	if a.merged != nil {
		w.merged = &a.merged[p.number%len(a.merged)]
	}
	if inner := a.Dims[a.Rank-1]; w.merged.p != p || w.merged.inner != inner {
		w.merged.p, w.merged.inner = p, inner
		w.merge()
	}
	for j, left := 0, begin; j < w.rank; j++ {
		if w.at[j] = left; j < w.rank-1 {
			w.at[j], left = left%w.size[j], left/w.size[j]
		}
	}
	w.open()
	fault := jit.Word(w.frame, native.FrameFault)
	*fault = 0
	for at := begin; at < end; {
		at += w.call(at, begin, end-at)
	}
	if *fault != 0 {
		a.Fault.Note(int(*jit.Word(w.frame, native.FrameFault+8)), *jit.Word(w.frame, native.FrameFault+16))
	}
	goruntime.KeepAlive(p)
}

// merge merges dims.
func (w *machineWalk) merge() {
	a := w.a
	last := a.Rank - 1
	w.dim[0], w.size[0], w.rank = int8(last), a.Dims[last], 1
	if w.size[0] == 1 { // prefer a larger dim if the code allows it
		for d := last - 1; d >= 0; d-- {
			if a.Dims[d] != 1 {
				if w.fits(d) {
					w.dim[0], w.size[0], last = int8(d), a.Dims[d], d
				}
				break
			}
		}
	}
	for d := last - 1; d >= 0; d-- {
		if a.Dims[d] == 1 {
			continue
		}
		if j := w.rank - 1; w.size[j] > 1 && w.goesOn(d, int(w.dim[j]), w.size[j]) {
			w.size[j] *= a.Dims[d]
			continue
		}
		w.dim[w.rank], w.size[w.rank] = int8(d), a.Dims[d]
		w.rank++
	}
	w.long = w.reachesFar()
}

// reachesFar reports that almost all memory at the prefetch distance after a row's points will be
// read soon.
func (w *machineWalk) reachesFar() bool {
	n := w.size[0]
	for _, i := range w.p.direct {
		if w.p.kernel.Operands[i].Kind == codegen.Output || w.p.v.Class[i] != codegen.Contiguous {
			continue
		}
		follows := w.rank > 1 && w.a.Ops[i].Stride[w.dim[1]] == n
		if n*w.elem(int(i)) < 8*native.AheadBytes && !follows {
			return false
		}
	}
	return true
}

// fits reports that the strides of all operands along a dim match their classes.
func (w *machineWalk) fits(d int) bool {
	for _, i := range w.p.direct {
		s := w.a.Ops[i].Stride[d]
		switch w.p.v.Class[i] {
		case codegen.Contiguous:
			if s != 1 {
				return false
			}
		case codegen.Splat:
			if s != 0 {
				return false
			}
		}
	}
	return true
}

// goesOn reports that, for all operands addressed by steps, dim d continues where the merged dims
// end. inner is the innermost of these dims; they have n points.
func (w *machineWalk) goesOn(d, inner int, n int64) bool {
	for _, i := range w.p.direct {
		if o := &w.a.Ops[i]; o.Stride[d] != o.Stride[inner]*n {
			return false
		}
	}
	return true
}

// open writes the parts of the frame that are the same for all calls.
func (w *machineWalk) open() {
	a := w.a
	scratch := unsafe.Pointer(unsafe.SliceData(a.Scratch))
	w.frame = unsafe.Add(scratch, -uintptr(scratch)&63)
	w.write(&w.p.whole)
	w.lookAhead()
}

// lookAhead writes the prefetch distances. Without prefetching the distance is 0, which prefetches
// what is loaded anyway.
func (w *machineWalk) lookAhead() {
	for left := w.p.v.Ahead; left != 0; left &= left - 1 {
		i, far := bits.TrailingZeros64(left), int64(0)
		if w.a.Ahead != nil {
			far = w.a.Ahead[i]
		}
		*jit.Word(w.frame, native.FrameArgs+i*native.OperandBytes+native.Ahead) = far
	}
}

// write writes the common parts of the frame for one of the phase's functions.
func (w *machineWalk) write(code *jit.Code) {
	a, p := w.a, w.p
	outer := w.dim[min(1, w.rank-1)]
	for _, i := range p.used {
		o := &a.Ops[i]
		size := w.elem(int(i))
		at := native.FrameArgs + int(i)*native.OperandBytes
		*jit.Word(w.frame, at+native.Step) = o.Stride[w.dim[0]] * size
		*jit.Word(w.frame, at+native.RowStep) = o.Stride[outer] * size
		*jit.Word(w.frame, at+native.IndexSize) = o.IndexSize
		*jit.Word(w.frame, at+native.IndexStep) = o.IndexStride * size
	}
	for _, i := range p.staged {
		*jit.Word(w.frame, native.FrameArgs+int(i)*native.OperandBytes+native.RowStep) = 0
	}
	scalars := unsafe.Slice((*uint64)(unsafe.Add(w.frame, code.Func.Scalars)), len(p.kernel.Scalars))
	copy(scalars, a.Scalars)
}

// elem returns the bytes of an operand's element; 1 for an index operand, whose position is its
// value.
func (w *machineWalk) elem(i int) int64 {
	if o := &w.p.kernel.Operands[i]; o.Kind != codegen.Index {
		return int64(o.DT.Size())
	}
	return 1
}

// box returns the memory that an operand goes through: number j of the staged operands, then of
// the boxed.
func (w *machineWalk) box(j int) unsafe.Pointer {
	return unsafe.Add(w.frame, memory.Aligned(int64(w.p.whole.Func.Bytes))+int64(j)*blockPoints*8)
}

// call computes some of the left points from point at on, and returns how many.
func (w *machineWalk) call(at, begin, left int64) int64 {
	p, n, rows := w.p, w.size[0], int64(1)
	points := min(n-w.at[0], left, p.chunk)
	if points == n && w.rank > 1 {
		rows = max(min(w.size[1]-w.at[1], left/n, p.callRows(n)), 1)
	}
	count := rows * points
	*jit.Word(w.frame, native.FramePoints), *jit.Word(w.frame, native.FrameRows) = points, rows
	for _, i := range p.direct {
		*jit.Word(w.frame, native.FrameArgs+int(i)*native.OperandBytes+native.Address) = w.address(int(i))
	}
	for k, r := range p.kernel.Reduces {
		size := int64(p.kernel.Body[r.Value].DT.Size())
		o := native.FrameArgs + (len(p.kernel.Operands)+k)*native.OperandBytes
		*jit.Word(w.frame, o+native.Address) = int64(uintptr(w.a.Bufs[k])) + (at-begin)*size
		*jit.Word(w.frame, o+native.Step), *jit.Word(w.frame, o+native.RowStep) = size, points*size
	}
	if len(p.staged)+len(p.boxed) > 0 {
		w.through(at, points, count)
	}
	code := &p.whole
	if p.bypass != 0 && w.streams(rows) {
		past := p.past
		if w.long {
			past = p.ahead
		}
		if past := past(); past != nil {
			code = past
		}
	}
	if t := w.a.tape; t != nil {
		if code != &p.whole { // the recording must be valid for any buffer, also an unaligned one
			t.lose()
		}
		t.phase(w, code)
	}
	code.Call(w.frame, p.mxcsr)
	if len(p.boxed) > 0 {
		w.unbox(at, count)
	}
	w.advance(points, rows)
	return count
}

// address returns the address of an operand's next point; for an index operand, its position.
func (w *machineWalk) address(i int) int64 {
	o := &w.a.Ops[i]
	at := o.Offset
	for j := range w.rank {
		at += w.at[j] * o.Stride[w.dim[j]]
	}
	if o.Base == nil {
		return at
	}
	return int64(uintptr(o.Base)) + at*w.elem(i)
}

// streams reports that all outputs that can be stored past the caches should be, and are aligned
// for it.
func (w *machineWalk) streams(rows int64) bool {
	for i := range w.p.v.Class {
		if w.p.bypass>>i&1 == 0 {
			continue
		}
		o := native.FrameArgs + i*native.OperandBytes
		if !w.a.Ops[i].Stream || *jit.Word(w.frame, o+native.Address)&63 != 0 || rows > 1 && *jit.Word(w.frame, o+native.RowStep)&63 != 0 {
			return false
		}
	}
	return true
}

// advance moves on by the points of a call.
func (w *machineWalk) advance(points, rows int64) {
	if w.at[0] += points; w.at[0] < w.size[0] || w.rank == 1 {
		return
	}
	w.at[0] = 0
	w.at[1] += rows
	for j := 1; j < w.rank-1 && w.at[j] == w.size[j]; j++ {
		w.at[j] = 0
		w.at[j+1]++
	}
}

// place returns the position of a point in the dims of the domain.
func (w *machineWalk) place(p int64) (at [runtime.MaxRank]int64) {
	for d := w.a.Rank - 1; d > 0; d-- {
		at[d], p = p%w.a.Dims[d], p/w.a.Dims[d]
	}
	at[0] = p
	return at
}

// through sets the positions of the points of staged operands, and the memory for boxed results.
func (w *machineWalk) through(p, points, count int64) {
	at := w.place(p)
	for j, i := range w.p.staged {
		o := native.FrameArgs + int(i)*native.OperandBytes
		w.a.Move(operands.Positions, &w.a.Ops[i], int(w.elem(int(i))), &at, count, w.box(j))
		*jit.Word(w.frame, o+native.Positions) = int64(uintptr(w.box(j)))
		*jit.Word(w.frame, o+native.Address) = int64(uintptr(w.a.Ops[i].Base))
	}
	for j, i := range w.p.boxed {
		o := native.FrameArgs + int(i)*native.OperandBytes
		size := w.elem(int(i))
		*jit.Word(w.frame, o+native.Address) = int64(uintptr(w.box(len(w.p.staged) + j)))
		*jit.Word(w.frame, o+native.Step), *jit.Word(w.frame, o+native.RowStep) = size, points*size
	}
}

// unbox copies boxed results to their places in memory.
func (w *machineWalk) unbox(p, count int64) {
	at := w.place(p)
	for j, i := range w.p.boxed {
		w.a.Move(operands.Scatter, &w.a.Ops[i], int(w.elem(int(i))), &at, count, w.box(len(w.p.staged)+j))
	}
}
