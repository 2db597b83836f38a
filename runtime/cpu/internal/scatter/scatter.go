package scatter

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// Kernel describes a kernel with a scatter. Phase 0 computes the indices, phase 1 the values.
type Kernel struct {
	From, To int      // the operand that is scattered into, and the output
	Indices  []int    // the operands that the indices are computed from
	Index    ir.DType // of the indices
	DT       ir.DType // of the values
	Mode     ir.IndexMode
	How      ir.Combine
}

// Launch is a launch of a kernel, bound to memory.
type Launch struct {
	*Kernel
	*Order
	Args     operands.Args     // with the dims in the order that Order says
	Threads  int64             // the most to use
	Values   int               // the operand whose elements are the values; below 0: they are computed
	Scratch  int64             // bytes of memory that an evaluation needs
	DType    *fold.DType       // of the values
	Recorder operands.Recorder // nil: the work is not recorded
}

// Job runs scatters, one at a time. Values for one element are combined in the order of the row, so
// one thread processes a row. Threads share whole rows or, if the last kept dim is dense, tiles of
// columns that are processed together. If there are fewer of these than threads, each thread reads
// all indices and processes those in its part of the axis. The steps of a Job run one after another,
// each on all threads.
type Job struct {
	Launch
	host    operands.Host
	step    step
	joins   *fold.Joins
	outer   int   // number of dims before those of a tile
	width   int64 // number of columns; 1 if rows are whole
	across  int64 // tiles of columns
	room    int64 // bytes of a thread's memory
	copying rowCopy
	walks   []walk // of each thread
}

// step is the step that the shares of a Job do.
type step int

const (
	looks step = iota // check for indices out of range
	copiesBytes
	copiesRows
	joining
)

// Run runs the Launch, and drops it. It returns false if memory is refused.
func (s *Job) Run(host operands.Host, pool *threads.Pool) bool {
	s.host, s.joins = host, &s.DType.Joins[s.How]
	s.outer, s.width, s.across = 0, 1, 1
	units := s.outputs
	if s.Cols {
		s.outer, s.width = s.kept-1, s.Args.Dims[s.Args.Rank-1]
		s.across = (s.width + s.Tile - 1) / s.Tile
		units = s.outputs / s.width * s.across
	}
	s.measure()
	// After the first write nothing may fail: the output may be the operand's memory.
	ok := true
	for who := range s.Threads {
		ok = host.Reserve(int(who), s.room) != nil && ok
	}
	if len(s.walks) < int(s.Threads) {
		s.walks = make([]walk, s.Threads)
	}
	if ok {
		s.steps(units, pool)
	}
	*s = Job{walks: s.walks}
	return ok
}

// steps runs the steps.
func (s *Job) steps(units int64, pool *threads.Pool) {
	n := int(s.Threads)
	if s.Mode == ir.IndexError && s.reduced > 0 {
		points := s.outputs * s.reduced
		if s.Cols && !s.spread {
			points /= s.width
		}
		s.step = looks
		pool.Split(n, points, points/(s.Threads*4)+chunk, s)
		if s.Recorder != nil {
			s.Recorder.Stop()
		}
		if s.Args.Fault.Set {
			return
		}
	}
	if s.copies {
		switch rows, c := s.copying.plan(s), &s.copying; {
		case rows == 0:
		case rows == 1 && c.neighbours():
			s.step = copiesBytes
			pool.Split(n, c.dims[0]*c.size, copyGrain, s)
		default:
			s.step = copiesRows
			pool.Split(n, rows, rows/(s.Threads*8)+1, s)
		}
	}
	if s.reduced > 0 {
		s.step = joining
		grain := int64(1)
		if s.parts == 1 {
			grain = units/(s.Threads*8) + 1
		}
		pool.Split(n, units*s.parts, grain, s)
	}
}

// copyGrain is the bytes that a thread copies at a time.
const copyGrain = 1 << 19

// Share does a share of the current step.
func (s *Job) Share(who int, begin, end int64) {
	switch s.step {
	case copiesBytes:
		memory.Copy(unsafe.Add(s.copying.dst, begin), unsafe.Add(s.copying.src, begin), end-begin)
		s.recordBytes(begin, end)
	case copiesRows:
		s.copying.rows(begin, end)
		s.recordRows(begin, end)
	default:
		w := s.open(who)
		if s.step == looks {
			w.look(begin, end)
		} else {
			w.shares(begin, end)
		}
		w.close()
	}
}

// shares joins units [begin, end).
func (w *walk) shares(begin, end int64) {
	s := w.s
	size := w.out.IndexSize
	for u := begin; u < end; u++ {
		part, unit := u%s.parts, u/s.parts
		w.lo, w.hi = size/s.parts*part, size/s.parts*(part+1)
		if part == s.parts-1 {
			w.hi = size
		}
		switch {
		case s.Cols:
			left := unit % s.across * s.Tile
			w.place(unit/s.across, left, min(s.width-left, s.Tile))
			w.columns()
		case s.parts == 1: // one call processes the whole share
			w.rows(unit, end)
			return
		default:
			w.rows(unit, unit+1)
		}
	}
}
