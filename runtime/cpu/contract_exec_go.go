package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// dotWalk is a contraction on its way in Go: contract_run.c, where it is
// explained, again.
type dotWalk struct {
	e    *goExecutor
	r    *ready
	v    *dotView
	args args // of the view's domain
}

// dot runs a launch with a contraction.
func (e *goExecutor) dot(r *ready) {
	plan, o := r.sched.plan, r.dot
	dt := plan.Temps[0].DT
	c := &contraction{m: o.m, n: o.n, k: o.depth, dt: dt, threads: int(r.threads), soft: r.p.soft}
	for _, dim := range o.batch {
		c.dims = append(c.dims, r.l.Dims[dim])
	}
	base := argsOf(r)
	for i, s := range []*side{&c.x, &c.y} {
		v := &o.views[i]
		slot := r.inMemory(v, plan)
		if slot < 0 {
			w := e.dotWalk(r, v, &base)
			s.kind, s.fill = sideFillI, func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
				w.values(batch, p0, p1, i0, i1, dst, ld)
			}
			if v.alongK {
				s.kind, s.fill = sideFillK, w.values
			}
			continue
		}
		a := &r.l.Args[slot]
		s.kind, s.stride, s.kstride = sideMem, v.stride(a, v.lead+1), v.stride(a, v.lead)
		if v.alongK {
			s.stride, s.kstride = s.kstride, s.stride
		}
		s.base, s.batch = elementOf(a, int64(dt.Size())), batchStrides(r, a)
	}
	if slot := r.sink(plan); slot >= 0 {
		a, v := &r.l.Args[slot], &o.views[2]
		c.out, c.outRow, c.outBatch = elementOf(a, int64(dt.Size())), v.stride(a, v.lead), batchStrides(r, a)
	} else {
		c.drain = e.dotWalk(r, &o.views[2], &base).drain
	}
	e.contract(c)
}

func elementOf(a *runtime.Access, size int64) unsafe.Pointer {
	return unsafe.Add(a.Buf.(*buffer).p, a.Offset*size)
}

func batchStrides(r *ready, a *runtime.Access) []int64 {
	var s []int64
	for _, dim := range r.dot.batch {
		s = append(s, a.Stride[dim])
	}
	return s
}

func (e *goExecutor) dotWalk(r *ready, v *dotView, base *args) *dotWalk {
	w := &dotWalk{e: e, r: r, v: v, args: *base}
	all := len(r.l.Args)
	w.args.rank = v.rank
	w.args.ops = append(append([]operand(nil), base.ops[:all]...), operand{})
	copy(w.args.dims[:], v.size[:v.rank])
	for i := range w.args.ops[:all] {
		o := &w.args.ops[i]
		o.guard = r.viewGuard(v, i)
		for d := range v.rank {
			o.stride[d] = v.stride(&r.l.Args[i], d)
		}
	}
	for d := range v.rank {
		w.args.ops[all].stride[d] = v.tempStride(d)
	}
	return w
}

// values evaluates points [o0, o1) by [i0, i1) of a batch, runs of the inner
// group being ld elements apart.
func (w *dotWalk) values(batch, o0, o1, i0, i1 int64, dst unsafe.Pointer, ld int64) {
	size := int64(w.r.sched.plan.Temps[0].DT.Size())
	w.e.with(w.r, func(ws *workspace) {
		for o := o0; o < o1; o++ {
			ws.bufs[0] = unsafe.Add(dst, (o-o0)*ld*size)
			at := (batch*w.v.outer + o) * w.v.inner
			ws.eval(w.r.sched.tier0[w.v.part], &w.args, at+i0, at+i1)
		}
	})
}

// drain evaluates the last phase over a tile, which is one of its operands.
func (w *dotWalk) drain(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
	a := w.args
	a.ops = append([]operand(nil), w.args.ops...)
	t := &a.ops[len(a.ops)-1]
	t.base = tile
	w.e.with(w.r, func(ws *workspace) {
		for i := range rows {
			t.offset = i*ld - col0
			at := (batch*w.v.outer+row0+i)*w.v.inner + col0
			ws.eval(w.r.sched.tier0[partEnd], &a, at, at+cols)
		}
	})
}
