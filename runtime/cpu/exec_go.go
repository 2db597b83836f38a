package cpu

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// goExecutor walks launches in Go, with goroutines for threads, and runs
// everything in tier 0. It is all there is without cgo; with it, it serves
// programs for which C has no usable block functions.
type goExecutor struct {
	threads int
	free    sync.Pool // *workspace
}

// workspace is the memory of one share.
type workspace struct {
	scratch []byte
	bufs    []unsafe.Pointer
	values  [maxReduces][]uint64 // backing of bufs: a block of values each
}

func newGoExecutor(threads int) *goExecutor {
	return &goExecutor{threads: threads, free: sync.Pool{New: func() any { return new(workspace) }}}
}

func (e *goExecutor) close() {}

func (e *goExecutor) copyBytes(dst, src []byte) {
	e.split(e.threads, int64(len(src)), 1<<20, func(begin, end int64) { copy(dst[begin:end], src[begin:end]) })
}

// A goroutine is worth this many bytes of work: handing work over costs about
// a microsecond, and the interpreter moves about a byte in a nanosecond.
const goThreadBytes = 64 << 10

func (e *goExecutor) run(list []ready) error {
	for i := range list {
		r := list[i] // a copy: the order of dims is chosen anew
		if len(r.p.kernel.Reduces) > 0 {
			r.mode = modeRows
			e.reduce(&r)
			continue
		}
		a := argsOf(&r)
		threads := int(min(r.total*r.p.perItem/goThreadBytes+1, int64(e.threads)))
		grain := (r.total/int64(threads)/4 + groupLen) / 1024 * 1024
		e.split(threads, r.total, max(grain, 1024), func(begin, end int64) {
			e.with(&r, func(w *workspace) { w.eval(&r, &a, begin, end) })
		})
	}
	return nil
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
	w := e.free.Get().(*workspace)
	if n := int(r.p.tier0.scratch()); len(w.scratch) < n {
		b := make([]byte, n+63)
		skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
		w.scratch = b[skip : skip+n]
	}
	w.bufs = w.bufs[:0]
	for k := range r.p.kernel.Reduces {
		if w.values[k] == nil {
			w.values[k] = make([]uint64, ir.FoldBlock)
		}
		w.bufs = append(w.bufs, unsafe.Pointer(unsafe.SliceData(w.values[k])))
	}
	f(w)
	e.free.Put(w)
}

// eval evaluates points in tier 0.
func (w *workspace) eval(r *ready, a *args, begin, end int64) {
	mine := *a
	mine.bufs, mine.scratch = w.bufs, w.scratch
	r.p.tier0.eval(&mine, begin, end)
}

// argsOf is a launch in the form that evaluations take.
func argsOf(r *ready) args {
	l := r.l
	a := args{rank: max(l.Rank, 1), ops: make([]operand, len(l.Args)), scalars: l.Scalars}
	a.dims[0] = 1
	for d := range l.Rank {
		a.dims[d] = l.Dims[r.dim(d)]
	}
	for i := range a.ops {
		from, o := &l.Args[i], &a.ops[i]
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

// reduce runs a reducing launch: whole outputs are shared out, or their blocks
// where there are few outputs.
func (e *goExecutor) reduce(r *ready) {
	outputs := int64(1)
	for _, n := range r.l.Dims[:r.l.Kept] {
		outputs *= n
	}
	a := argsOf(r)
	n := r.total / outputs // points of an output
	blocks := (n + ir.FoldBlock - 1) / ir.FoldBlock
	threads := int(min(r.total*r.p.perItem/goThreadBytes+1, int64(e.threads)))
	k := len(r.p.kernel.Reduces)
	results := make([]uint64, outputs*max(blocks, 1)*int64(k)) // by output, block, reduction
	fold := make([]folding, k)
	for i, red := range r.p.kernel.Reduces {
		fold[i] = foldings[foldKey{red.Op, r.p.kernel.Body[red.Value].DT}]
	}
	// A unit is a run of short outputs that fit a block, or one block.
	batch := int64(1)
	if n > 0 && blocks == 1 {
		batch = ir.FoldBlock / n
	}
	units := (outputs*blocks + batch - 1) / batch
	e.split(threads, units, units/int64(threads*8)+1, func(begin, end int64) {
		e.with(r, func(w *workspace) {
			for u := begin; u < end; u++ {
				if blocks == 1 {
					first := u * batch
					count := min(batch, outputs-first)
					w.eval(r, &a, first*n, (first+count)*n)
					for o := range count {
						for i := range fold {
							results[(first+o)*int64(k)+int64(i)] = fold[i].block(w.bufs[i], o*n, n)
						}
					}
					continue
				}
				from := u / blocks * n
				b := u % blocks * ir.FoldBlock
				count := min(ir.FoldBlock, n-b)
				w.eval(r, &a, from+b, from+b+count)
				for i := range fold {
					results[u*int64(k)+int64(i)] = fold[i].block(w.bufs[i], 0, count)
				}
			}
		})
	})
	for o := range outputs {
		for i, red := range r.p.kernel.Reduces {
			var total uint64 // of an empty sum
			for b := range blocks {
				x := results[(o*blocks+b)*int64(k)+int64(i)]
				if b == 0 {
					total = x
				} else {
					total = fold[i].combine(total, x)
				}
			}
			storeResult(r, red, o, total)
		}
	}
}

// storeResult writes the result of output number o of a reduction.
func storeResult(r *ready, red codegen.Reduce, o int64, bits uint64) {
	l, access := r.l, &r.l.Args[red.Operand]
	p := access.Offset
	for d := l.Kept - 1; d >= 0; d-- {
		at := o % l.Dims[d]
		o /= l.Dims[d]
		if access.Stride[d] == 0 && at != 0 {
			return
		}
		p += at * access.Stride[d]
	}
	for i := range access.Stages {
		p = throughStage(&access.Stages[i], p)
	}
	at := unsafe.Add(access.Buf.(*buffer).p, p*int64(r.p.kernel.Operands[red.Operand].DT.Size()))
	switch r.p.kernel.Operands[red.Operand].DT.Size() {
	case 1:
		*(*uint8)(at) = uint8(bits)
	case 2:
		*(*uint16)(at) = uint16(bits)
	case 4:
		*(*uint32)(at) = uint32(bits)
	default:
		*(*uint64)(at) = bits
	}
}

func throughStage(s *runtime.Stage, p int64) int64 {
	q := s.Offset
	for d := len(s.Dims) - 1; d >= 0; d-- {
		q += p % s.Dims[d] * s.Stride[d]
		p /= s.Dims[d]
	}
	return q
}
