package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/proflabel"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// executor runs launches on a pool of goroutines. It keeps its working memory for the next launch,
// so that a launch allocates nothing.
type executor struct {
	threads int
	pool    *threads.Pool
	memory  []threadMemory // of each thread, and last of the launch as a whole
	inner   []*executor    // of each thread, for launches that one thread runs alone
	failed  atomic.Bool    // an allocation was refused
	fault   indexFault
	free    threads.Spares[workspace]
	dots    *contract.Engine
	dotRuns threads.Spares[dotRun]
	mem     *memory.Pool    // contractions borrow from it
	source  contract.Source // the functions of contractions

	points   elementwiseJob
	tiles    transposedJob
	rows     rowJob
	scatters scatterJob
	host     host
	wave     waveJob
	copying  copyJob
}

func newExecutor(n int, mem *memory.Pool, source contract.Source) *executor {
	e := &executor{threads: n, pool: threads.NewPool(n), memory: make([]threadMemory, n+1), mem: mem, source: source}
	e.dots = contract.NewEngine(e.pool, mem, source)
	e.points.e, e.tiles.e, e.host.e, e.wave.e = e, e, e, e
	return e
}

func (e *executor) close() {
	e.pool.Close()
	e.dots.Close()
	for i := range e.memory {
		e.memory[i].Free()
	}
	for _, in := range e.inner {
		in.close()
	}
}

func (e *executor) rouse() { e.pool.Rouse() }

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

func (c *copyJob) Share(_ int, begin, end int64) { copy(c.dst[begin:end], c.src[begin:end]) }

func (e *executor) copyBytes(dst, src []byte) {
	e.copying = copyJob{dst, src}
	e.pool.Split(e.threads, int64(len(src)), shareBytes, &e.copying)
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
	if m := proflabel.On(); m != nil {
		return e.labelled(m, r)
	}
	return e.plain(r)
}

func (e *executor) plain(r *ready) error {
	if r.p.faults {
		e.fault.Reset()
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
		e.scatter(r)
	case r.p.hasRows:
		e.walkRows(r)
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

func (w *waveJob) Share(who int, begin, end int64) {
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
		e.inner = append(e.inner, newExecutor(1, e.mem, e.source))
	}
	e.pool.Split(threads, int64(len(list)), 1, &e.wave)
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
	j.e.pool.Split(threads, r.total, r.grain(threads), j)
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

func (j *elementwiseJob) Share(who int, begin, end int64) {
	m := &j.e.memory[who]
	s := m.Reserve(j.code.scratch())
	if s == nil {
		j.e.failed.Store(true)
		return
	}
	a := &m.args
	*a = j.args
	a.Scratch, a.room = unsafe.Slice((*byte)(s), j.code.scratch()), &m.room
	j.code.eval(a, begin, end)
	*a = args{}
}

// writeArgs writes a launch in the form that evaluations take, reusing the memory of a.
func (r *ready) writeArgs(a *args) {
	l := r.l
	ops := a.Ops[:0]
	*a = args{Args: operands.Args{Rank: max(l.Rank, 1), Scalars: l.Scalars, Fault: r.fault}, tape: r.tape}
	a.Dims[0] = 1
	for d := range l.Rank {
		a.Dims[d] = l.Dims[r.dim(d)]
	}
	for i := range l.Args {
		from := &l.Args[i]
		o := operand{
			Offset: from.Offset, Stages: from.Stages, Guard: r.guard(i), Stream: r.streams(i),
			IndexStride: from.IndexStride, IndexSize: from.IndexSize,
		}
		if r.p.kernel.Operands[i].Kind != codegen.Index {
			o.Base = from.Buf.(*memory.Buffer).P
		}
		if r.p.total(i) {
			o.Offset, o.Stages = totalAt(from, l), nil
		} else {
			for d := range l.Rank {
				o.Stride[d] = from.Stride[r.dim(d)]
			}
		}
		ops = append(ops, o)
	}
	a.Ops = ops
}

// forget drops all references to a launch but keeps the memory of operands.
func (a *args) forget() {
	clear(a.Ops)
	*a = args{Args: operands.Args{Ops: a.Ops[:0]}}
}
