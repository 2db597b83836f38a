package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/label"
)

// executor runs launches on a pool of goroutines. It keeps its working memory for the next launch,
// so that a launch allocates nothing.
type executor struct {
	threads int
	pool    *pool
	memory  []threadMemory // of each thread, and last of the launch as a whole
	inner   []*executor    // of each thread, for launches that one thread runs alone
	failed  atomic.Bool    // an allocation was refused
	fault   indexFault
	free    spares[workspace]
	dots    dotPool
	mem     *memory // contractions borrow from it

	dotSource dotSource // the functions of contractions

	points    elementwiseJob
	tiles     transposedJob
	rows      rowJob
	scatters  scatterJob
	wave      waveJob
	copying   copyJob
	functions functionJob
}

func newExecutor(threads int) *executor {
	e := &executor{threads: threads, pool: newPool(threads), memory: make([]threadMemory, threads+1)}
	e.points.e, e.tiles.e, e.rows.e, e.scatters.e, e.wave.e = e, e, e, e, e
	return e
}

func (e *executor) close() {
	e.pool.close()
	e.closeDots()
	for i := range e.memory {
		e.memory[i].free()
	}
	for _, in := range e.inner {
		in.close()
	}
}

func (e *executor) rouse() { e.pool.rouse() }

const (
	// shareBytes is the bytes that a share of work touches: few enough that threads end at about
	// the same time, enough that the start of a share costs nothing.
	shareBytes = 1 << 19
	// sharePoints is the unit of shares, in points. Shares begin at its multiples, so that two
	// threads never write to one cache line of a dense output, and blocks of tier 0 stay whole.
	sharePoints = 1024
)

// copyJob copies bytes on several threads.
type copyJob struct{ dst, src []byte }

func (c *copyJob) share(_ int, begin, end int64) { copy(c.dst[begin:end], c.src[begin:end]) }

func (e *executor) copyBytes(dst, src []byte) {
	e.copying = copyJob{dst, src}
	e.pool.split(e.threads, int64(len(src)), shareBytes, &e.copying)
	e.copying = copyJob{}
}

func (e *executor) run(list []ready) error {
	for len(list) > 0 {
		n := inWave(list)
		var err error
		if n > 1 {
			err = e.runWave(list[:n])
		} else {
			err = e.one(&list[0])
		}
		if err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// one runs a launch, with profiler labels if they are on.
func (e *executor) one(r *ready) error {
	if m := label.On(); m != nil {
		return e.labelled(m, r)
	}
	return e.plain(r)
}

func (e *executor) plain(r *ready) error {
	if r.p.faults {
		e.fault.reset()
		r.fault = &e.fault
	}
	if r.kept != nil {
		return e.keep(r)
	}
	return e.walk(r)
}

// walk runs a launch by the job for its kind.
func (e *executor) walk(r *ready) error {
	e.failed.Store(false)
	switch {
	case r.dot != nil:
		e.dot(r)
	case r.scatter != nil:
		e.scatters.run(r)
	case r.p.hasRows:
		e.rows.run(r)
	case r.transposed.ops != 0:
		e.tiles.run(r)
	default:
		e.points.run(r)
	}
	if e.failed.Load() {
		return errRefused
	}
	return r.faulted()
}

// waveJob runs launches that do not depend on each other, each on one thread.
type waveJob struct {
	e    *executor
	list []ready
}

func (w *waveJob) share(who int, begin, end int64) {
	for i := begin; i < end; i++ {
		if w.e.inner[who].one(&w.list[i]) != nil { // out of memory: launches that can fault are in no wave
			w.e.failed.Store(true)
		}
	}
}

func (e *executor) runWave(list []ready) error {
	e.wave.list = list
	e.failed.Store(false)
	threads := min(e.threads, len(list))
	for len(e.inner) < threads {
		in := newExecutor(1)
		in.dotSource, in.mem = e.dotSource, e.mem
		e.inner = append(e.inner, in)
	}
	e.pool.split(threads, int64(len(list)), 1, &e.wave)
	e.wave.list = nil
	if e.failed.Load() {
		return errRefused
	}
	return nil
}

// elementwiseJob runs one phase over all points.
type elementwiseJob struct {
	e    *executor
	args args
	code evaluator
}

func (j *elementwiseJob) run(r *ready) {
	j.code = r.evaluator(0)
	r.writeArgs(&j.args)
	threads := min(int(r.threads), j.e.threads)
	j.e.pool.split(threads, r.total, r.grain(threads), j)
	j.args.forget()
	j.code = nil
}

// grain returns the points of a share of an elementwise launch.
func (r *ready) grain(threads int) int64 {
	if threads <= 1 {
		return r.total
	}
	n := min(shareBytes/max(r.p.perItem, 1), r.total/int64(threads))
	return (n + sharePoints) / sharePoints * sharePoints
}

func (j *elementwiseJob) share(who int, begin, end int64) {
	m := &j.e.memory[who]
	s := m.reserve(j.code.scratch())
	if s == nil {
		j.e.failed.Store(true)
		return
	}
	a := &m.args
	*a = j.args
	a.scratch, a.values = unsafe.Slice((*byte)(s), j.code.scratch()), &m.values
	j.code.eval(a, begin, end)
	*a = args{}
}

// writeArgs writes a launch in the form that evaluations take, reusing the memory of a.
func (r *ready) writeArgs(a *args) {
	l := r.l
	ops := a.ops[:0]
	*a = args{rank: max(l.Rank, 1), scalars: l.Scalars, fault: r.fault, tape: r.tape}
	a.dims[0] = 1
	for d := range l.Rank {
		a.dims[d] = l.Dims[r.dim(d)]
	}
	for i := range l.Args {
		from := &l.Args[i]
		o := operand{
			offset: from.Offset, stages: from.Stages, guard: r.guard(i), stream: r.streams(i),
			istride: from.IndexStride, isize: from.IndexSize,
		}
		if r.p.kernel.Operands[i].Kind != codegen.Index {
			o.base = from.Buf.(*buffer).p
		}
		if r.p.total(i) {
			o.offset, o.stages = totalAt(from, l), nil
		} else {
			for d := range l.Rank {
				o.stride[d] = from.Stride[r.dim(d)]
			}
		}
		ops = append(ops, o)
	}
	a.ops = ops
}

// forget drops all references to a launch but keeps the memory of operands.
func (a *args) forget() {
	clear(a.ops)
	*a = args{ops: a.ops[:0]}
}
