package cpu

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// goExecutor walks launches in Go, with goroutines for threads, and runs
// everything in tier 0. It is all there is without cgo; with it, it serves
// programs for which C has no usable block functions.
type goExecutor struct {
	threads int
	free    sync.Pool   // *workspace
	level   machine.ISA // that contractions are made for
	dots    dotPool
}

// workspace is the memory of one share.
type workspace struct {
	scratch []byte
	bufs    [maxReduces]unsafe.Pointer
	values  [maxReduces][]uint64 // backing of bufs: a block of values each
	ops     []operand            // of a part of a launch
}

func newGoExecutor(threads int) *goExecutor {
	return &goExecutor{threads: threads, level: machine.Level(), free: sync.Pool{New: func() any { return new(workspace) }}}
}

func (e *goExecutor) close() { e.dots.close() }

func (e *goExecutor) refused() int { return 0 }

func (e *goExecutor) rouse() {} // goroutines are started, not woken

func (e *goExecutor) copyBytes(dst, src []byte) {
	e.split(e.threads, int64(len(src)), 1<<20, func(begin, end int64) { copy(dst[begin:end], src[begin:end]) })
}

func (e *goExecutor) run(list []ready) error {
	for len(list) > 0 {
		n := inWave(list)
		if n > 1 { // none of them may fault
			e.split(e.threads, int64(n), 1, func(begin, end int64) {
				for i := begin; i < end; i++ {
					_ = e.one(list[i])
				}
			})
		} else if err := e.one(list[0]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// one runs a launch. It has a copy: the order of dims is chosen anew.
func (e *goExecutor) one(r ready) error {
	if r.p.faults {
		r.fault = new(indexFault)
	}
	switch {
	case r.dot != nil:
		e.dot(&r)
	case r.scatter != nil:
		e.scatter(&r)
	case r.p.hasRows:
		r.mode = modeRows
		e.rows(&r)
	case r.transposed.ops != 0:
		e.transposed(&r)
	default:
		e.elementwise(&r)
	}
	return r.faulted()
}

func (e *goExecutor) elementwise(r *ready) {
	a := argsOf(r)
	threads := min(int(r.threads), e.threads)
	grain := (r.total/int64(threads)/4 + groupLen) / 1024 * 1024
	e.split(threads, r.total, max(grain, 1024), func(begin, end int64) {
		e.with(r, func(w *workspace) { w.eval(r.sched.tier0[0], &a, begin, end) })
	})
}

// split runs f over shares of [0, total) of about grain units.
func (e *goExecutor) split(threads int, total, grain int64, f func(begin, end int64)) {
	if threads <= 1 || total <= grain {
		if total > 0 {
			f(0, total)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	work := func() {
		for {
			begin := next.Add(grain) - grain
			if begin >= total {
				return
			}
			f(begin, min(begin+grain, total))
		}
	}
	for range threads - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// with lends a workspace that is large enough for the launch.
func (e *goExecutor) with(r *ready, f func(w *workspace)) {
	w := e.workspaceFor(r)
	f(w)
	e.free.Put(w)
}

// workspaceFor is one that is large enough for the launch, and that goes back to free.
func (e *goExecutor) workspaceFor(r *ready) *workspace {
	w := e.free.Get().(*workspace)
	n := 0
	for _, t := range r.sched.tier0 {
		n = max(n, int(t.scratch()))
	}
	if len(w.scratch) < n {
		b := make([]byte, n+63)
		skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
		w.scratch = b[skip : skip+n]
	}
	for k := range r.sched.plan.reduces {
		if w.values[k] == nil {
			w.values[k] = make([]uint64, ir.FoldBlock)
		}
		w.bufs[k] = unsafe.Pointer(unsafe.SliceData(w.values[k]))
	}
	return w
}

// eval evaluates points of a phase in tier 0.
func (w *workspace) eval(t *tier0Code, a *args, begin, end int64) {
	mine := *a
	mine.bufs, mine.scratch = w.bufs[:], w.scratch
	t.eval(&mine, begin, end)
}

// argsOf is a launch in the form that evaluations take.
func argsOf(r *ready) args { return argsInto(r, nil) }

// argsInto is argsOf with operands in a list that is used again.
func argsInto(r *ready, list []operand) args {
	l := r.l
	a := args{rank: max(l.Rank, 1), ops: slices.Grow(list, len(l.Args)+1)[:len(l.Args)], scalars: l.Scalars}
	clear(a.ops)
	a.dims[0] = 1
	for d := range l.Rank {
		a.dims[d] = l.Dims[r.dim(d)]
	}
	a.fault = r.fault
	for i := range a.ops {
		from, o := &l.Args[i], &a.ops[i]
		o.istride, o.isize = from.IndexStride, from.IndexSize
		o.offset, o.stages, o.guard = from.Offset, from.Stages, r.guard(i)
		if r.p.kernel.Operands[i].Kind != codegen.Index {
			o.base = from.Buf.(*buffer).p
		}
		for d := range l.Rank {
			o.stride[d] = from.Stride[r.dim(d)]
		}
	}
	return a
}
