package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// dotRun executes a launch with a contraction in Go. Runs are reused, with their lists, so that a
// launch allocates nothing.
type dotRun struct {
	e       *executor
	c       contraction
	x, y, z dotWalk
	batch   [3][runtime.MaxRank]int64 // strides of the batch: of x, of y, of the results
	dims    [runtime.MaxRank]int64
}

// dotWalk provides a side that is evaluated or copied from memory, or handles the results. Rows
// whose elements are not neighbours go through a buffer, many rows in one evaluation.
type dotWalk struct {
	e    *executor
	r    *ready
	v    *dotView
	args args   // over the view's domain
	mem  walked // used if nothing is evaluated and memory is only copied
	c    *contraction

	alongK, alongI   func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) // method values, bound once
	drained          func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64)
	walkedK, walkedI func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64)
	walkedPanels     func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, width, panel int64)
	unwalked         func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64)
}

func newDotRun(e *executor) *dotRun {
	d := &dotRun{e: e}
	for _, w := range []*dotWalk{&d.x, &d.y, &d.z} {
		w.e, w.c = e, &d.c
		w.alongK, w.drained = w.values, w.drain
		w.walkedK = func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
			w.mem.load(w.c, w.code(), &walkOver{batch, i0, i1, p0, p1, dst, ld, p1 - p0, 0})
		}
		w.walkedI = func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
			w.mem.load(w.c, w.code(), &walkOver{batch, p0, p1, i0, i1, dst, ld, i1 - i0, 0})
		}
		w.walkedPanels = func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, width, panel int64) {
			w.mem.panels(w.c, w.code(), &walkOver{batch, p0, p1, i0, i1, dst, width, width, panel})
		}
		w.unwalked = func(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
			w.mem.store(w.c, w.code(), &walkOver{batch, row0, row0 + rows, col0, col0 + cols, tile, ld, cols, 0})
		}
		w.alongI = func(batch, i0, i1, p0, p1 int64, dst unsafe.Pointer, ld int64) {
			w.values(batch, p0, p1, i0, i1, dst, ld)
		}
	}
	return d
}

// code returns the functions that copy pieces of walks; nil: Go copies.
func (w *dotWalk) code() *dotCode { return w.e.dots.code[w.c.dt] }

// dot runs a launch with a contraction.
func (e *executor) dot(r *ready) {
	d := e.dots.runs.take()
	if d == nil {
		d = newDotRun(e)
	}
	d.run(r)
	d.forget()
	e.dots.runs.put(d)
}

// forget drops the pointers that would keep memory alive.
func (d *dotRun) forget() {
	for _, w := range []*dotWalk{&d.x, &d.y, &d.z} {
		clear(w.args.ops)
		w.r, w.v, w.args, w.mem = nil, nil, args{ops: w.args.ops[:0]}, walked{}
	}
	d.c = contraction{}
}

func (d *dotRun) run(r *ready) {
	plan, o, c := r.plan(), r.dot, &d.c
	dt := plan.Temps[0].DT
	size := int64(dt.Size())
	chosen := choice(r.l.Choice)
	*c = contraction{m: o.m, n: o.n, k: o.depth, dt: dt, threads: int(r.threads), soft: r.p.kernel.Denormals == ir.FlushDenormals, wide: chosen.wide(), high: chosen.high(), tape: r.tape, dims: d.dims[:len(o.batch)]}
	for i, dim := range o.batch {
		c.dims[i] = r.l.Dims[dim]
	}
	for i, s := range []*side{&c.x, &c.y} {
		v, w := &o.views[i], []*dotWalk{&d.x, &d.y}[i]
		slot := r.walked(v, plan)
		if slot >= 0 && !v.flat {
			w.mem = d.walkedOf(i, r, v, slot)
			if s.kind, s.fill, s.panels = sideFillI, w.walkedI, w.walkedPanels; v.alongK {
				s.kind, s.fill, s.panels = sideFillK, w.walkedK, nil
			}
			continue
		}
		if slot < 0 {
			w.begin(r, v)
			c.work += r.phaseWork(v.part)
			if s.kind, s.fill = sideFillI, w.alongI; v.alongK {
				s.kind, s.fill = sideFillK, w.alongK
			}
			continue
		}
		a := &r.l.Args[slot]
		s.kind, s.stride, s.kstride = sideMem, v.stride(a, v.lead+1), v.stride(a, v.lead)
		if v.alongK {
			s.stride, s.kstride = s.kstride, s.stride
		}
		s.base, s.batch, s.operand = elementOf(a, size), d.strides(i, r, a), slot
	}
	c.stays, c.same = d.e.dots.at(r.packed), r.packed.same
	c.mask, c.maskRow, c.maskKind, c.maskSmall = r.mask.at, r.mask.row, r.mask.kind, r.mask.small
	c.tails, c.hidden, c.spans = r.mask.tails, r.mask.hidden, r.mask.spans
	if slot := r.sink(plan); slot >= 0 {
		a, v := &r.l.Args[slot], &o.views[2]
		c.out, c.outRow, c.outBatch, c.to = elementOf(a, size), v.stride(a, v.lead), d.strides(2, r, a), slot
	} else if slot := r.walkedSink(plan); slot >= 0 {
		d.z.mem = d.walkedOf(2, r, &o.views[2], slot)
		c.drain = d.z.unwalked
	} else {
		d.z.begin(r, &o.views[2])
		c.work += r.phaseWork(partEnd)
		c.drain = d.z.drained
	}
	d.e.contract(c)
}

func elementOf(a *runtime.Access, size int64) unsafe.Pointer {
	return unsafe.Add(a.Buf.(*buffer).p, a.Offset*size)
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
	ops := w.args.ops[:0]
	w.args = argsInto(r, ops)
	all := len(r.l.Args)
	w.args.ops = append(w.args.ops, operand{})
	w.args.rank = v.rank
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
}

// place makes the block at (o, i) of a batch, outer by inner points, a domain of its own. Its
// operands are stored in the workspace.
func (w *dotWalk) place(ws *workspace, batch, o, outer, i, inner int64) args {
	a, v := w.args, w.v
	ws.ops = append(ws.ops[:0], w.args.ops...)
	a.ops, a.rank = ws.ops, 2
	a.dims[0], a.dims[1] = outer, inner
	for k := range a.ops {
		op := &a.ops[k]
		s := op.stride
		op.offset += o*s[v.lead] + i*s[v.lead+1]
		for d, rest := v.lead-1, batch; d >= 0; d-- {
			op.offset += rest % v.size[d] * s[d]
			rest /= v.size[d]
		}
		op.stride[0], op.stride[1] = s[v.lead], s[v.lead+1]
		op.guard = 0
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
	w.e.free.put(ws)
}

// drain evaluates the last phase over a tile, which is one of its operands.
func (w *dotWalk) drain(batch, row0, rows, col0, cols int64, tile unsafe.Pointer, ld int64) {
	code := w.r.evaluator(partEnd)
	ws := w.e.workspaceFor(w.r)
	if w.v.flat {
		a := w.place(ws, batch, row0, rows, col0, cols)
		t := &a.ops[len(a.ops)-1]
		t.base, t.offset = tile, 0
		t.stride[0], t.stride[1] = ld, 1
		code.eval(ws.take(&a), 0, rows*cols)
		ws.forget()
		w.e.free.put(ws)
		return
	}
	a := w.args
	ws.ops = append(ws.ops[:0], w.args.ops...)
	a.ops = ws.ops
	t := &a.ops[len(a.ops)-1]
	t.base = tile
	mine := ws.take(&a)
	for i := range rows {
		t.offset = i*ld - col0
		at := (batch*w.v.outer+row0+i)*w.v.inner + col0
		code.eval(mine, at, at+cols)
	}
	ws.forget()
	w.e.free.put(ws)
}
