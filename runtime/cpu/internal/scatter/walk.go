package scatter

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// walk is a thread's share of a scatter. Its pointers refer to the thread's memory, except the
// operands, which must be visible to the garbage collector.
type walk struct {
	s                 *Job
	who               int
	index, value      operands.Evaluator
	indexOf, valuesOf *operands.Args // of the evaluators
	ops               []operands.Operand
	out               *operands.Operand
	base              unsafe.Pointer // element 0 of the tile's first column, or of the row
	columnsOf         int64          // columns of a tile
	lo, hi            int64          // range of the axis that the share processes
	at                []int64        // for a chunk's points: distances of the indexed elements, -1 for none
	indices           unsafe.Pointer
	values            unsafe.Pointer
	indexBuf          [1]unsafe.Pointer
	valueBuf          [1]unsafe.Pointer
	frame             unsafe.Pointer // of machine code for neighbours
}

// measure computes the size of a thread's memory.
func (s *Job) measure() {
	s.room = 3*bufferBytes + memory.Aligned(s.Scratch) + memory.Aligned(jit.FrameBytes)
}

// bufferBytes is the bytes of a chunk's indices or values, with room for the whole groups of block
// functions.
const bufferBytes = 8 * (chunk + interp.GroupLen)

// open prepares a thread's walk. The thread's memory is already reserved.
func (s *Job) open(who int) *walk {
	p := s.host.Reserve(who, s.room)
	cut := func(n int64) unsafe.Pointer {
		at := p
		p = unsafe.Add(p, n)
		return at
	}
	if s.Recorder != nil {
		s.Recorder.Region(p, s.room)
	}
	w := &s.walks[who]
	*w = walk{s: s, who: who, ops: append(w.ops[:0], s.Args.Ops...), columnsOf: 1}
	w.at = unsafe.Slice((*int64)(cut(bufferBytes)), chunk)
	w.indices, w.values = cut(bufferBytes), cut(bufferBytes)
	w.frame = cut(memory.Aligned(jit.FrameBytes))
	w.out = &w.ops[s.To]
	w.hi = w.out.IndexSize
	scratch := unsafe.Slice((*byte)(p), s.room-3*bufferBytes-memory.Aligned(jit.FrameBytes))
	w.index, w.value = s.host.Open(who)
	w.indexOf, w.valuesOf = w.index.Args(), w.value.Args()
	w.indexBuf[0], w.valueBuf[0] = w.indices, w.values
	for i, a := range [...]*operands.Args{w.indexOf, w.valuesOf} {
		*a = s.Args
		a.Ops, a.Scratch = w.ops, scratch
		a.Bufs = [...][]unsafe.Pointer{w.indexBuf[:], w.valueBuf[:]}[i]
	}
	if s.Cols && !s.spread {
		w.indexOf.Dims[w.indexOf.Rank-1] = 1
	}
	return w
}

// close drops the pointers that would keep memory alive.
func (w *walk) close() {
	clear(w.ops)
	w.s.host.Close(w.who)
	*w = walk{ops: w.ops[:0]}
}

// find evaluates the indices of points [p, p+n) of the index phase's domain and converts them to
// distances.
func (w *walk) find(p, n int64) []int64 {
	w.index.Eval(0, p, p+n)
	at := w.at[:n]
	x := indexRange{lo: w.lo, hi: w.hi, step: w.out.IndexStride, last: w.out.IndexSize - 1, clamps: w.s.Mode == ir.IndexClamp, dt: w.s.Index}
	x.resolve(at, w.indices)
	if w.s.Recorder != nil {
		w.recordResolve(x, at)
	}
	return at
}

// indexRange is the valid range of indices, and the distance between the elements of adjacent
// indices.
type indexRange struct {
	lo, hi, step, last int64
	clamps             bool
	dt                 ir.DType
}

func (x *indexRange) resolve(at []int64, indices unsafe.Pointer) {
	if x.dt == ir.Int32 {
		resolveIndices(x, at, memory.Elements[int32](indices, int64(len(at))))
	} else {
		resolveIndices(x, at, memory.Elements[int64](indices, int64(len(at))))
	}
}

func resolveIndices[T int32 | int64](x *indexRange, at []int64, indices []T) {
	for k, index := range indices {
		i := int64(index)
		if x.clamps {
			i = min(max(i, 0), x.last)
		}
		if i < x.lo || i >= x.hi {
			at[k] = -1
		} else {
			at[k] = i * x.step
		}
	}
}

// note records indices out of range.
func (x *indexRange) note(f *operands.IndexFault, operand int, indices unsafe.Pointer, n int64) {
	if x.dt == ir.Int32 {
		noteIndices(x, f, operand, memory.Elements[int32](indices, n))
	} else {
		noteIndices(x, f, operand, memory.Elements[int64](indices, n))
	}
}

func noteIndices[T int32 | int64](x *indexRange, f *operands.IndexFault, operand int, indices []T) {
	for _, i := range indices {
		if uint64(int64(i)) > uint64(x.last) || x.last < 0 {
			f.Note(operand, int64(i))
		}
	}
}

// look records indices out of range at points [begin, end) of the launch. If columns share their
// indices, they count as one column.
func (w *walk) look(begin, end int64) {
	x := indexRange{last: w.out.IndexSize - 1, dt: w.s.Index}
	for p := begin; p < end; p += chunk {
		n := min(end-p, chunk)
		w.index.Eval(0, p, p+n)
		x.note(w.s.Args.Fault, w.s.To, w.indices, n)
		if w.s.Recorder != nil {
			w.recordNote(x, n)
		}
	}
}

// lies returns the memory of the values of dims [0, rank) if they are stored row-major and a fixed
// step apart; else nil.
func (w *walk) lies(rank int) (p unsafe.Pointer, step int64) {
	load := w.s.Values
	if load < 0 || len(w.ops[load].Stages) > 0 {
		return nil, 0
	}
	o, dense := &w.ops[load], int64(0)
	for d := rank - 1; d >= 0; d-- {
		if w.valuesOf.Dims[d] == 1 {
			continue
		}
		if dense == 0 {
			dense, step = o.Stride[d], o.Stride[d]
		}
		if o.Stride[d] != dense || dense == 0 {
			return nil, 0
		}
		dense *= w.valuesOf.Dims[d]
	}
	return unsafe.Add(o.Base, o.Offset*w.s.DType.Size), step
}

// rows joins rows [from, to).
func (w *walk) rows(from, to int64) {
	s := w.s
	size, left, row := s.DType.Size, int64(0), from
	lie, step := w.lies(s.Args.Rank)
	if step > 1 || step < 0 {
		lie = nil
	}
	for p, end := from*s.reduced, to*s.reduced; p < end; {
		n := min(end-p, chunk)
		at, values := w.find(p, n), w.values
		if lie != nil {
			values = unsafe.Add(lie, p*size)
		} else {
			w.value.Eval(1, p, p+n)
		}
		for k := int64(0); k < n; {
			if left == 0 {
				w.base = unsafe.Add(w.out.Base, w.rowStart(row)*size)
				left = s.reduced
				row++
			}
			m := min(left, n-k)
			w.each(at[k:k+m], 0, unsafe.Add(values, k*size))
			left -= m
			k += m
		}
		p += n
	}
}

// rowStart returns the first element of a row of the output.
func (w *walk) rowStart(row int64) int64 {
	at := w.out.Offset
	for d := w.s.kept - 1; d >= 0; d-- {
		at += row % w.s.Args.Dims[d] * w.out.Stride[d]
		row /= w.s.Args.Dims[d]
	}
	return at
}

// place moves to columns [left, left+n) of the outer kept point row.
func (w *walk) place(row, left, n int64) {
	s := w.s
	outer, rank := s.outer, s.Args.Rank
	for i := range w.ops {
		from, o := &s.Args.Ops[i], &w.ops[i]
		at := row
		o.Offset = from.Offset + left*from.Stride[rank-1]
		for d := outer - 1; d >= 0; d-- {
			o.Offset += at % s.Args.Dims[d] * from.Stride[d]
			at /= s.Args.Dims[d]
		}
		copy(o.Stride[:rank-outer], from.Stride[outer:rank])
		o.Guard = from.Guard >> outer
	}
	for _, a := range [...]*operands.Args{w.indexOf, w.valuesOf} {
		a.Rank = rank - outer
		copy(a.Dims[:a.Rank], s.Args.Dims[outer:rank])
	}
	w.valuesOf.Dims[w.valuesOf.Rank-1] = n
	w.indexOf.Dims[w.indexOf.Rank-1] = 1
	if s.spread {
		w.indexOf.Dims[w.indexOf.Rank-1] = n
	}
	w.columnsOf = n
	w.base = unsafe.Add(w.out.Base, w.out.Offset*s.DType.Size)
}

// each joins values to the indexed elements of the tile or row.
func (w *walk) each(at []int64, step int64, values unsafe.Pointer) {
	w.s.joins.Each(w.base, at, step, values)
	if w.s.Recorder != nil {
		w.recordEach(at, step, values)
	}
}

// columns joins the columns that were placed.
func (w *walk) columns() {
	s, n, per := w.s, w.columnsOf, w.indexOf.Dims[w.indexOf.Rank-1]
	size := s.DType.Size
	lie, step := unsafe.Pointer(nil), n
	if load := s.Values; load >= 0 && w.ops[load].Stride[w.valuesOf.Rank-1] == 1 {
		lie, step = w.lies(w.valuesOf.Rank - 1)
	}
	most := max(chunk/n, 1)
	if lie != nil { // the chunk needs no room for values
		most = max(chunk/per, 1)
	}
	along := w.s.joins.Neighbours(w.columnsOf, w.s.DType.Size)
	for r := int64(0); r < s.reduced; r += most {
		m := min(s.reduced-r, most)
		at, values := w.find(r*per, m*per), w.values
		if lie != nil {
			values = unsafe.Add(lie, r*step*size)
		} else {
			step = n
			w.value.Eval(1, r*n, (r+m)*n)
		}
		if per == 1 {
			along.Join(w.base, at, step, values, w.frame)
			if s.Recorder != nil {
				w.recordAlong(along, at, step, values)
			}
			continue
		}
		for j := range m {
			w.each(at[j*n:(j+1)*n], 1, unsafe.Add(values, j*step*size))
		}
	}
}
