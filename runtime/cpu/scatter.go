package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// scatterJob runs a scatter. Values for one element are combined in the order of the row, so one
// thread processes a row. Threads share whole rows or, if the last kept dim is dense, tiles of
// columns that are processed together. If there are fewer of these than threads, each thread reads
// all indices and processes those in its part of the axis. The steps of a scatterJob run one after
// another, each on all threads.
type scatterJob struct {
	e       *executor
	r       *ready
	args    args // of the launch
	part    scatterPart
	mode    ir.IndexMode
	dt      *rowDType
	joins   *scatterJoins
	cols    bool
	outer   int   // number of dims before those of a tile
	reduced int64 // points of a row
	width   int64 // number of columns; 1 if rows are whole
	across  int64 // tiles of columns
	values  int64 // bytes of the values of a chunk
	room    int64 // bytes of a thread's memory
	copying rowCopy
}

// scatterPart is the step that the shares of a scatterJob do.
type scatterPart int

const (
	scatterLooks scatterPart = iota // check for indices out of range
	scatterCopies
	scatterJoining
)

func (s *scatterJob) run(r *ready) {
	p := r.p.scatter
	s.r, s.dt = r, &r.p.folds().dtype[p.in.DT]
	s.mode, s.joins = codegen.ModeOf(p.in), &s.dt.joins[codegen.CombineOf(p.in)]
	r.writeArgs(&s.args)
	s.cols, s.outer, s.width, s.across = r.mode == modeCols, 0, 1, 1
	s.reduced = r.total / r.outputs
	units := r.outputs
	if s.cols {
		s.outer, s.width = r.l.Kept-1, s.args.dims[s.args.rank-1]
		s.across = (s.width + r.tile - 1) / r.tile
		units = r.outputs / s.width * s.across
	}
	s.measure()
	// After the first write nothing may fail: the output may be the operand's memory.
	for who := range min(s.e.threads, int(r.threads)) {
		if s.e.memory[who].reserve(s.room) == nil {
			s.e.failed.Store(true)
		}
	}
	if !s.e.failed.Load() {
		s.parts(units)
	}
	s.args.forget()
	*s = scatterJob{e: s.e, args: s.args}
}

// parts runs the steps.
func (s *scatterJob) parts(units int64) {
	r, p, pool, threads := s.r, s.r.p.scatter, s.e.pool, int(s.r.threads)
	if s.mode == ir.IndexError && s.reduced > 0 {
		points := r.total
		if s.cols && !r.scatter.spread {
			points /= s.width
		}
		s.part = scatterLooks
		pool.split(threads, points, points/(r.threads*4)+scatterChunk, s)
		if s.args.tape.stop(); r.fault.set {
			return
		}
	}
	if r.scatter.copies {
		s.part = scatterCopies
		switch n, c := s.copying.plan(s), &s.copying; {
		case n == 0:
		case n == 1 && c.neighbours():
			bytes := c.dims[0] * c.size
			if tape := s.args.tape; tape != nil {
				tape.copyRows(c.dst, p.to, 0, c.src, p.from, 0, 1, bytes)
			}
			s.e.copyBytes(unsafe.Slice((*byte)(c.dst), bytes), unsafe.Slice((*byte)(c.src), bytes))
		default:
			pool.split(threads, n, n/(r.threads*8)+1, s)
		}
	}
	if s.reduced > 0 {
		s.part = scatterJoining
		grain := int64(1)
		if r.scatter.parts == 1 {
			grain = units/(r.threads*8) + 1
		}
		pool.split(threads, units*r.scatter.parts, grain, s)
	}
}

func (s *scatterJob) share(who int, begin, end int64) {
	if s.part == scatterCopies {
		s.copying.rows(begin, end)
		if tape := s.args.tape; tape != nil {
			tape.copyApart(s.copying, s.r.p.scatter.to, s.r.p.scatter.from, begin, end)
		}
		return
	}
	w := s.open(who)
	if s.part == scatterLooks {
		w.look(begin, end)
	} else {
		w.shares(begin, end)
	}
	w.close()
}

// shares joins units [begin, end).
func (w *scatterWalk) shares(begin, end int64) {
	s := w.s
	parts, size := s.r.scatter.parts, w.out.isize
	for u := begin; u < end; u++ {
		part, unit := u%parts, u/parts
		w.lo, w.hi = size/parts*part, size/parts*(part+1)
		if part == parts-1 {
			w.hi = size
		}
		switch {
		case s.cols:
			left := unit % s.across * s.r.tile
			w.place(unit/s.across, left, min(s.width-left, s.r.tile))
			w.columns()
		case parts == 1: // one call processes the whole share
			w.rows(unit, end)
			return
		default:
			w.rows(unit, unit+1)
		}
	}
}

// rowCopy copies the operand to the output. The output is dense: sorted by stride, its dims are
// row-major.
type rowCopy struct {
	rank     int
	dims     [runtime.MaxRank + 1]int64
	from, to [runtime.MaxRank + 1]int64
	size     int64
	src, dst unsafe.Pointer
}

// plan finds the dims to copy, and returns the number of rows.
func (c *rowCopy) plan(s *scatterJob) int64 {
	p := s.r.p.scatter
	in, out := &s.args.ops[p.from], &s.args.ops[p.to]
	if out.isize == 0 {
		return 0
	}
	*c = rowCopy{size: s.dt.size}
	c.src, c.dst = unsafe.Add(in.base, in.offset*c.size), unsafe.Add(out.base, out.offset*c.size)
	add := func(n, from, to int64) {
		if n == 1 || to == 0 { // a reduced dim
			return
		}
		d := c.rank
		for c.rank++; d > 0 && c.to[d-1] < to; d-- {
			c.dims[d], c.to[d], c.from[d] = c.dims[d-1], c.to[d-1], c.from[d-1]
		}
		c.dims[d], c.to[d], c.from[d] = n, to, from
	}
	for d := range s.args.rank {
		add(s.args.dims[d], in.stride[d], out.stride[d])
	}
	add(out.isize, in.istride, out.istride)
	if c.rank == 0 {
		c.rank, c.dims[0], c.from[0], c.to[0] = 1, 1, 1, 1
	}
	c.merge()
	n := int64(1)
	for _, d := range c.dims[:c.rank-1] {
		n *= d
	}
	return n
}

// merge merges dims in which both sides are dense.
func (c *rowCopy) merge() {
	for c.rank > 1 {
		a, b := c.rank-2, c.rank-1
		if c.to[a] != c.to[b]*c.dims[b] || c.from[a] != c.from[b]*c.dims[b] {
			return
		}
		c.dims[a] *= c.dims[b]
		c.to[a], c.from[a] = c.to[b], c.from[b]
		c.rank--
	}
}

// neighbours reports that a row is dense on both sides.
func (c *rowCopy) neighbours() bool { return c.from[c.rank-1] == 1 && c.to[c.rank-1] == 1 }

// rows copies rows [begin, end).
func (c *rowCopy) rows(begin, end int64) {
	last := c.rank - 1
	for row := begin; row < end; row++ {
		from, to, at := int64(0), int64(0), row
		for d := last - 1; d >= 0; d-- {
			from += at % c.dims[d] * c.from[d]
			to += at % c.dims[d] * c.to[d]
			at /= c.dims[d]
		}
		src, dst := unsafe.Add(c.src, from*c.size), unsafe.Add(c.dst, to*c.size)
		switch n := c.dims[last]; {
		case c.neighbours():
			copyMemory(dst, src, n*c.size)
		case c.size == 1:
			copyApart[uint8](dst, src, n, c.to[last], c.from[last])
		case c.size == 2:
			copyApart[uint16](dst, src, n, c.to[last], c.from[last])
		case c.size == 4:
			copyApart[uint32](dst, src, n, c.to[last], c.from[last])
		default:
			copyApart[uint64](dst, src, n, c.to[last], c.from[last])
		}
	}
}

func copyApart[T any](to, from unsafe.Pointer, n, toStep, fromStep int64) {
	for i := range n {
		*elemAt[T](to, i*toStep) = *elemAt[T](from, i*fromStep)
	}
}
