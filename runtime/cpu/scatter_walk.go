package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// scatterWalk is a thread's share of a scatter. Its pointers refer to the thread's memory, except
// the operands, which must be visible to the garbage collector.
type scatterWalk struct {
	s            *scatterJob
	m            *threadMemory
	index, value args // arguments of the phases
	code         [2]evaluator
	ops          []operand
	out          *operand
	base         unsafe.Pointer // element 0 of the tile's first column, or of the row
	columnsOf    int64          // columns of a tile
	lo, hi       int64          // range of the axis that the share processes
	at           []int64        // for a chunk's points: distances of the indexed elements, -1 for none
	indices      unsafe.Pointer
	values       unsafe.Pointer
	indexBuf     [1]unsafe.Pointer
	valueBuf     [1]unsafe.Pointer
	frame        unsafe.Pointer // of machine code for neighbours
}

// measure computes the size of a thread's memory.
func (s *scatterJob) measure() {
	scratch := max(s.r.evaluator(0).scratch(), s.r.evaluator(1).scratch())
	s.room = 3*scatterBuffer + aligned(scratch) + aligned(int64(unsafe.Sizeof(foldFrame{})))
}

// scatterBuffer is the bytes of a chunk's indices or values, with room for the whole groups of
// block functions.
const scatterBuffer = 8 * (scatterChunk + groupLen)

// open prepares a thread's walk. The thread's memory is already reserved.
func (s *scatterJob) open(who int) *scatterWalk {
	m := &s.e.memory[who]
	p := m.reserve(s.room)
	cut := func(n int64) unsafe.Pointer {
		at := p
		p = unsafe.Add(p, n)
		return at
	}
	s.args.tape.region(p, s.room)
	w := &m.walk
	*w = scatterWalk{s: s, m: m, ops: append(w.ops[:0], s.args.ops...), columnsOf: 1}
	w.at = unsafe.Slice((*int64)(cut(scatterBuffer)), scatterChunk)
	w.indices, w.values = cut(scatterBuffer), cut(scatterBuffer)
	w.frame = cut(aligned(int64(unsafe.Sizeof(foldFrame{}))))
	w.out = &w.ops[s.r.p.scatter.to]
	w.hi = w.out.isize
	w.code = [2]evaluator{s.r.evaluator(0), s.r.evaluator(1)}
	scratch := unsafe.Slice((*byte)(p), s.room-3*scatterBuffer-aligned(int64(unsafe.Sizeof(foldFrame{}))))
	clear(m.merged[:])
	for i, a := range [...]*args{&w.index, &w.value} {
		*a = s.args
		a.ops, a.scratch, a.values, a.merged = w.ops, scratch, &m.values, &m.merged
		a.bufs = [...][]unsafe.Pointer{w.indexBuf[:], w.valueBuf[:]}[i]
	}
	w.indexBuf[0], w.valueBuf[0] = w.indices, w.values
	if s.cols && !s.r.scatter.spread {
		w.index.dims[w.index.rank-1] = 1
	}
	return w
}

// close drops the pointers that would keep memory alive.
func (w *scatterWalk) close() {
	clear(w.ops)
	clear(w.m.merged[:])
	*w = scatterWalk{ops: w.ops[:0]}
}

// find evaluates the indices of points [p, p+n) of the index phase's domain and converts them to
// distances.
func (w *scatterWalk) find(p, n int64) []int64 {
	w.code[0].eval(&w.index, p, p+n)
	at := w.at[:n]
	x := indexRange{lo: w.lo, hi: w.hi, step: w.out.istride, last: w.out.isize - 1, clamps: w.s.mode == ir.IndexClamp, dt: w.s.r.p.scatter.index}
	x.resolve(at, w.indices)
	if tape := w.s.args.tape; tape != nil {
		tape.resolveIndices(x, at, w.indices)
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
		resolveIndices(x, at, elements[int32](indices, int64(len(at))))
	} else {
		resolveIndices(x, at, elements[int64](indices, int64(len(at))))
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
func (x *indexRange) note(f *indexFault, operand int, indices unsafe.Pointer, n int64) {
	if x.dt == ir.Int32 {
		noteIndices(x, f, operand, elements[int32](indices, n))
	} else {
		noteIndices(x, f, operand, elements[int64](indices, n))
	}
}

func noteIndices[T int32 | int64](x *indexRange, f *indexFault, operand int, indices []T) {
	for _, i := range indices {
		if uint64(int64(i)) > uint64(x.last) || x.last < 0 {
			f.note(operand, int64(i))
		}
	}
}

// look records indices out of range at points [begin, end) of the launch. If columns share their
// indices, they count as one column.
func (w *scatterWalk) look(begin, end int64) {
	r := w.s.r
	x, to := indexRange{last: w.out.isize - 1, dt: r.p.scatter.index}, r.p.scatter.to
	for p := begin; p < end; p += scatterChunk {
		n := min(end-p, scatterChunk)
		w.code[0].eval(&w.index, p, p+n)
		x.note(r.fault, to, w.indices, n)
		if tape := w.s.args.tape; tape != nil {
			tape.noteIndices(x, to, w.indices, n)
		}
	}
}

// lies returns the memory of the values of dims [0, rank) if they are stored row-major and a fixed
// step apart; else nil.
func (w *scatterWalk) lies(rank int) (p unsafe.Pointer, step int64) {
	load := w.s.r.plan().rowOps[1][0].load
	if load < 0 || len(w.ops[load].stages) > 0 {
		return nil, 0
	}
	o, dense := &w.ops[load], int64(0)
	for d := rank - 1; d >= 0; d-- {
		if w.value.dims[d] == 1 {
			continue
		}
		if dense == 0 {
			dense, step = o.stride[d], o.stride[d]
		}
		if o.stride[d] != dense || dense == 0 {
			return nil, 0
		}
		dense *= w.value.dims[d]
	}
	return unsafe.Add(o.base, o.offset*w.s.dt.size), step
}

// rows joins rows [from, to).
func (w *scatterWalk) rows(from, to int64) {
	s := w.s
	size, left, row := s.dt.size, int64(0), from
	lie, step := w.lies(s.args.rank)
	if step > 1 || step < 0 {
		lie = nil
	}
	for p, end := from*s.reduced, to*s.reduced; p < end; {
		n := min(end-p, scatterChunk)
		at, values := w.find(p, n), w.values
		if lie != nil {
			values = unsafe.Add(lie, p*size)
		} else {
			w.code[1].eval(&w.value, p, p+n)
		}
		for k := int64(0); k < n; {
			if left == 0 {
				w.base = unsafe.Add(w.out.base, w.rowStart(row)*size)
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
func (w *scatterWalk) rowStart(row int64) int64 {
	at := w.out.offset
	for d := w.s.r.l.Kept - 1; d >= 0; d-- {
		at += row % w.s.args.dims[d] * w.out.stride[d]
		row /= w.s.args.dims[d]
	}
	return at
}

// place moves to columns [left, left+n) of the outer kept point row.
func (w *scatterWalk) place(row, left, n int64) {
	s := w.s
	outer, rank := s.outer, s.args.rank
	for i := range w.ops {
		from, o := &s.args.ops[i], &w.ops[i]
		at := row
		o.offset = from.offset + left*from.stride[rank-1]
		for d := outer - 1; d >= 0; d-- {
			o.offset += at % s.args.dims[d] * from.stride[d]
			at /= s.args.dims[d]
		}
		copy(o.stride[:rank-outer], from.stride[outer:rank])
		o.guard = from.guard >> outer
	}
	for _, a := range [...]*args{&w.index, &w.value} {
		a.rank = rank - outer
		copy(a.dims[:a.rank], s.args.dims[outer:rank])
	}
	w.value.dims[w.value.rank-1] = n
	w.index.dims[w.index.rank-1] = 1
	if s.r.scatter.spread {
		w.index.dims[w.index.rank-1] = n
	}
	w.columnsOf = n
	w.base = unsafe.Add(w.out.base, w.out.offset*s.dt.size)
}

const (
	// scatterAhead is how many rows ahead indexed elements are prefetched, scatterAsked the most
	// bytes of a row that are.
	scatterAhead = 6
	scatterAsked = 1024
)

// each joins values to the indexed elements of the tile or row.
func (w *scatterWalk) each(at []int64, step int64, values unsafe.Pointer) {
	w.s.joins.each(w.base, at, step, values)
	if tape := w.s.args.tape; tape != nil {
		tape.joinEach(w.s.joins, w.base, w.s.r.p.scatter.to, at, step, values, w.valuesOf())
	}
}

// valuesOf returns the operand in which the values may be stored.
func (w *scatterWalk) valuesOf() int { return w.s.r.plan().rowOps[1][0].load }

// columns joins the columns that were placed.
func (w *scatterWalk) columns() {
	s, n, per := w.s, w.columnsOf, w.index.dims[w.index.rank-1]
	size := s.dt.size
	lie, step := unsafe.Pointer(nil), n
	if load := s.r.plan().rowOps[1][0].load; load >= 0 && w.ops[load].stride[w.value.rank-1] == 1 {
		lie, step = w.lies(w.value.rank - 1)
	}
	most := max(scatterChunk/n, 1)
	if lie != nil { // the chunk needs no room for values
		most = max(scatterChunk/per, 1)
	}
	along := w.neighbours()
	for r := int64(0); r < s.reduced; r += most {
		m := min(s.reduced-r, most)
		at, values := w.find(r*per, m*per), w.values
		if lie != nil {
			values = unsafe.Add(lie, r*step*size)
		} else {
			step = n
			w.code[1].eval(&w.value, r*n, (r+m)*n)
		}
		if per == 1 {
			along.join(w.base, at, step, values, w.frame)
			if tape := s.args.tape; tape != nil {
				tape.joinAlong(along, w.base, s.r.p.scatter.to, at, step, values, w.valuesOf(), w.frame)
			}
			continue
		}
		for j := range m {
			w.each(at[j*n:(j+1)*n], 1, unsafe.Add(values, j*step*size))
		}
	}
}
