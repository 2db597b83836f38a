package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// scatterWalk is a scatter on its way in Go: scatter.c, where it is explained,
// again, but for columns: rows are walked one by one.
type scatterWalk struct {
	e       *goExecutor
	r       *ready
	args    args
	out     *operand
	mode    ir.IndexMode
	how     ir.Combine
	dt      ir.DType
	reduced int64
}

func (e *goExecutor) scatter(r *ready) {
	r.mode = modeRows
	p := r.p.scatter
	w := &scatterWalk{e: e, r: r, args: argsOf(r), mode: codegen.ModeOf(p.in), how: codegen.CombineOf(p.in), dt: p.in.DT, reduced: r.total / r.outputs}
	w.out = &w.args.ops[p.to]
	threads := int(r.threads)
	if w.mode == ir.IndexError {
		// Once something is written nothing may fail: it could be the operand.
		e.split(threads, r.total, max(r.total/int64(4*threads), ir.FoldBlock), func(begin, end int64) {
			w.each(begin, end, func(*workspace, int64, []int64) {}, 0, w.out.isize)
		})
		if r.fault.set {
			return
		}
	}
	if r.scatter.copies {
		w.copy(&w.args.ops[p.from])
	}
	if w.reduced == 0 {
		return
	}
	parts := scatterShares(r.outputs, r.threads, w.out.isize)
	part := w.out.isize / parts
	e.split(threads, r.outputs*parts, max(r.outputs/int64(8*threads), 1), func(begin, end int64) {
		for begin < end {
			row, stop := begin/parts, begin/parts+1
			lo, hi := begin%parts*part, (begin%parts+1)*part
			if begin%parts == parts-1 {
				hi = w.out.isize
			}
			if begin++; parts == 1 {
				stop, begin = end, end
			}
			w.each(row*w.reduced, stop*w.reduced, w.join, lo, hi)
		}
	})
}

// each evaluates points [begin, end), block by block, and calls f with the
// first point of a block and how far from their rows' first elements those are
// that the indices name: -1 for none, or one outside of [lo, hi).
func (w *scatterWalk) each(begin, end int64, f func(ws *workspace, p int64, at []int64), lo, hi int64) {
	at := make([]int64, ir.FoldBlock)
	w.e.with(w.r, func(ws *workspace) {
		for p := begin; p < end; p += ir.FoldBlock {
			n := min(end-p, ir.FoldBlock)
			ws.eval(w.r.sched.tier0[0], &w.args, p, p+n)
			for k := range at[:n] {
				at[k] = w.resolve(ws.bufs[0], int64(k), lo, hi)
			}
			f(ws, p, at[:n])
		}
	})
}

func (w *scatterWalk) resolve(indices unsafe.Pointer, k, lo, hi int64) int64 {
	i := int64(0)
	if w.r.p.scatter.index == ir.Int32 {
		i = int64(elements[int32](indices, k+1)[k])
	} else {
		i = elements[int64](indices, k+1)[k]
	}
	at, ok := ir.ResolveIndex(w.mode, i, int(w.out.isize))
	if !ok && w.mode == ir.IndexError {
		w.r.fault.note(w.r.p.scatter.to, i)
	}
	if !ok || int64(at) < lo || int64(at) >= hi {
		return -1
	}
	return int64(at) * w.out.istride
}

// join combines the values of points from p on with the elements at.
func (w *scatterWalk) join(ws *workspace, p int64, at []int64) {
	ws.eval(w.r.sched.tier0[1], &w.args, p, p+int64(len(at)))
	size := int64(w.dt.Size())
	for k := int64(0); k < int64(len(at)); {
		row := (p + k) / w.reduced
		n := min((row+1)*w.reduced-p, int64(len(at))) - k
		base := w.out.offset
		for d := w.r.l.Kept - 1; d >= 0; d-- {
			base += row % w.args.dims[d] * w.out.stride[d]
			row /= w.args.dims[d]
		}
		w.r.p.folds().dtype[w.dt].into(w.how, unsafe.Add(w.out.base, base*size), at[k:k+n], unsafe.Add(ws.bufs[0], k*size))
		k += n
	}
}

// copy makes the output what the operand is.
func (w *scatterWalk) copy(from *operand) {
	rows := w.r.outputs
	size := int64(w.dt.Size())
	w.e.split(int(w.r.threads), rows*w.out.isize, max(rows*w.out.isize/(4*w.r.threads), ir.FoldBlock), func(begin, end int64) {
		for at := begin; at < end; at++ {
			row, i := at/w.out.isize, at%w.out.isize
			x, to := from.offset+i*from.istride, w.out.offset+i*w.out.istride
			for d := w.r.l.Kept - 1; d >= 0; d-- {
				x += row % w.args.dims[d] * from.stride[d]
				to += row % w.args.dims[d] * w.out.stride[d]
				row /= w.args.dims[d]
			}
			storeElement(unsafe.Add(w.out.base, to*size), int32(size), element(unsafe.Add(from.base, x*size), int32(size)))
		}
	})
}
