package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// dotRun executes a launch with a contraction. Runs are reused, with their lists, so that a launch
// allocates nothing.
type dotRun struct {
	e       *executor
	c       contract.Contraction
	x, y, z dotWalk
	batch   [3][runtime.MaxRank]int64 // strides of the batch: of x, of y, of the results
	dims    [runtime.MaxRank]int64
}

// dotWalk provides a side that is evaluated, or handles the results. Rows whose elements are not
// neighbours go through a buffer, many rows in one evaluation. If nothing is evaluated, mem tells
// where the elements are.
type dotWalk struct {
	e    *executor
	r    *ready
	v    *dotView
	args args // over the view's domain
	mem  contract.Walk

	alongK, alongI func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) // method values, bound once
	drained        func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64)
}

func newDotRun(e *executor) *dotRun {
	d := &dotRun{e: e}
	for _, w := range []*dotWalk{&d.x, &d.y, &d.z} {
		w.e, w.alongK, w.drained = e, w.values, w.drain
		w.alongI = func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
			w.values(batch, p0, p1, i0, i1, dst, ld)
		}
	}
	return d
}

// dot runs a launch with a contraction.
func (e *executor) dot(r *ready) {
	d := e.dotRuns.Take()
	if d == nil {
		d = newDotRun(e)
	}
	d.run(r)
	d.forget()
	e.dotRuns.Put(d)
}

// forget drops the pointers that would keep memory alive.
func (d *dotRun) forget() {
	for _, w := range []*dotWalk{&d.x, &d.y, &d.z} {
		clear(w.args.Ops)
		w.r, w.v, w.args, w.mem = nil, nil, args{Args: operands.Args{Ops: w.args.Ops[:0]}}, contract.Walk{}
	}
	d.c = contract.Contraction{}
}

func (d *dotRun) run(r *ready) {
	plan, o, c := r.plan(), r.dot, &d.c
	chosen := choice(r.l.Choice)
	*c = contract.Contraction{M: o.m, N: o.n, K: o.depth, DT: plan.Temps[0].DT, Threads: int(r.threads), Soft: r.p.kernel.Denormals == ir.FlushDenormals, Wide: chosen.wide(), High: chosen.high(), Dims: d.dims[:len(o.batch)], Keep: r.packed.side, Same: r.packed.same, Mask: r.mask.Mask}
	if r.tape != nil {
		c.Tape = r.tape.Tape
	}
	for i, dim := range o.batch {
		c.Dims[i] = r.l.Dims[dim]
	}
	d.side(0, r, &c.X, &d.x)
	d.side(1, r, &c.Y, &d.y)
	d.results(r)
	d.e.dots.Run(c)
}

// side sets s to side i: an operand, or a phase that w evaluates.
func (d *dotRun) side(i int, r *ready, s *contract.Side, w *dotWalk) {
	v := &r.dot.views[i]
	kind := contract.AlongI
	if v.alongK {
		kind = contract.AlongK
	}
	switch slot := r.walked(v, r.plan()); {
	case slot < 0:
		w.begin(r, v)
		d.c.Work += r.phaseWork(v.part)
		if s.Kind, s.Fill = kind, w.alongI; v.alongK {
			s.Fill = w.alongK
		}
	case !v.flat:
		d.walkOver(&w.mem, i, r, slot)
		s.Kind, s.Walk = kind, &w.mem
	default:
		a := &r.l.Args[slot]
		s.Base, s.Batch, s.Operand = elementOf(a, int64(d.c.DT.Size())), d.strides(i, r, a), slot
		if s.Stride, s.KStride = v.stride(a, v.lead+1), v.stride(a, v.lead); v.alongK {
			s.Stride, s.KStride = s.KStride, s.Stride
		}
	}
}

// results sets where results go: to an operand, or through the last phase.
func (d *dotRun) results(r *ready) {
	v, out, plan := &r.dot.views[2], &d.c.Out, r.plan()
	if slot := r.sink(plan); slot >= 0 {
		a := &r.l.Args[slot]
		*out = contract.Results{Base: elementOf(a, int64(d.c.DT.Size())), Row: v.stride(a, v.lead), Batch: d.strides(2, r, a), Operand: slot}
	} else if slot := r.walkedSink(plan); slot >= 0 {
		d.walkOver(&d.z.mem, 2, r, slot)
		out.Walk = &d.z.mem
	} else {
		d.z.begin(r, v)
		d.c.Work += r.phaseWork(partEnd)
		out.Drain = d.z.drained
	}
}

// walkOver sets w to an operand as the dims of view i walk over it.
func (d *dotRun) walkOver(w *contract.Walk, i int, r *ready, slot int) {
	v, a := &r.dot.views[i], &r.l.Args[slot]
	w.Base, w.Batch, w.Operand = elementOf(a, int64(d.c.DT.Size())), d.strides(i, r, a), slot
	v.dimsOf(&w.Outer, a, v.lead, v.innerAt)
	v.dimsOf(&w.Inner, a, v.innerAt, v.rank)
}

// dimsOf sets g to dims [from, end) of a view, with an operand's strides.
func (v *dotView) dimsOf(g *contract.Dims, a *runtime.Access, from, end int) {
	g.Rank = end - from
	for d := range g.Rank {
		g.Size[d], g.Stride[d] = v.size[from+d], v.stride(a, from+d)
	}
}

func elementOf(a *runtime.Access, size int64) unsafe.Pointer {
	return unsafe.Add(a.Buf.(*memory.Buffer).P, a.Offset*size)
}

func (d *dotRun) strides(i int, r *ready, a *runtime.Access) []int64 {
	s := d.batch[i][:len(r.dot.batch)]
	for n, dim := range r.dot.batch {
		s[n] = a.Stride[dim]
	}
	return s
}

// begin sets w up for a view of a launch.
func (w *dotWalk) begin(r *ready, v *dotView) {
	w.r, w.v = r, v
	ops := w.args.Ops[:0]
	w.args = argsInto(r, ops)
	all := len(r.l.Args)
	w.args.Ops = append(w.args.Ops, operand{})
	w.args.Rank = v.rank
	copy(w.args.Dims[:], v.size[:v.rank])
	for i := range w.args.Ops[:all] {
		o := &w.args.Ops[i]
		o.Guard = r.viewGuard(v, i)
		for d := range v.rank {
			o.Stride[d] = v.stride(&r.l.Args[i], d)
		}
	}
	for d := range v.rank {
		w.args.Ops[all].Stride[d] = v.tempStride(d)
	}
}

// place makes the block at (o, i) of a batch, outer by inner points, a domain of its own. Its
// operands are stored in the workspace.
func (w *dotWalk) place(ws *workspace, batch, o, outer, i, inner int64) args {
	a, v := w.args, w.v
	ws.ops = append(ws.ops[:0], w.args.Ops...)
	a.Ops, a.Rank = ws.ops, 2
	a.Dims[0], a.Dims[1] = outer, inner
	for k := range a.Ops {
		op := &a.Ops[k]
		s := op.Stride
		op.Offset += o*s[v.lead] + i*s[v.lead+1]
		for d, rest := v.lead-1, batch; d >= 0; d-- {
			op.Offset += rest % v.size[d] * s[d]
			rest /= v.size[d]
		}
		op.Stride[0], op.Stride[1] = s[v.lead], s[v.lead+1]
		op.Guard = 0
	}
	return a
}

// values evaluates points [o0, o1) by [i0, i1) of a batch. Runs of the inner group are ld elements
// apart in dst.
func (w *dotWalk) values(batch, o0, o1, i0, i1 int64, dst unsafe.Pointer, ld int64) {
	size := int64(w.r.plan().Temps[0].DT.Size())
	code, rows, run := w.r.evaluator(w.v.part), o1-o0, i1-i0
	ws := w.e.workspaceFor(w.r)
	a, first, next := w.args, (batch*w.v.outer+o0)*w.v.inner+i0, w.v.inner
	if w.v.flat {
		a, first, next = w.place(ws, batch, o0, rows, i0, run), 0, run
	}
	if next == run && ld == run { // all runs are one block
		rows, run = 1, rows*run
	}
	mine := ws.take(&a)
	for range rows {
		ws.bufs[0] = dst
		code.eval(mine, first, first+run)
		dst, first = unsafe.Add(dst, ld*size), first+next
	}
	ws.forget()
	w.e.free.Put(ws)
}

// drain evaluates the last phase over a tile, which is one of its operands.
func (w *dotWalk) drain(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
	code := w.r.evaluator(partEnd)
	ws := w.e.workspaceFor(w.r)
	if w.v.flat {
		a := w.place(ws, batch, row0, rows, col0, cols)
		t := &a.Ops[len(a.Ops)-1]
		t.Base, t.Offset = tile, 0
		t.Stride[0], t.Stride[1] = ld, 1
		code.eval(ws.take(&a), 0, rows*cols)
		ws.forget()
		w.e.free.Put(ws)
		return
	}
	a := w.args
	ws.ops = append(ws.ops[:0], w.args.Ops...)
	a.Ops = ws.ops
	t := &a.Ops[len(a.Ops)-1]
	t.Base = tile
	mine := ws.take(&a)
	for i := range rows {
		t.Offset = i*ld - col0
		at := (batch*w.v.outer+row0+i)*w.v.inner + col0
		code.eval(mine, at, at+cols)
	}
	ws.forget()
	w.e.free.Put(ws)
}
