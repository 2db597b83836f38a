//go:build cgo && unix

package cpu

/*
#include <stdlib.h>
#include "contract_run.h"
*/
import "C"

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// dotBytes is the arena memory that dot takes.
func dotBytes(r *ready) uintptr {
	if r.dot == nil {
		return 0
	}
	return unsafe.Sizeof(C.mr_dot{}) + uintptr(len(r.l.Args)+1)*(3*unsafe.Sizeof(C.mr_operand{})+unsafe.Sizeof(C.struct_mr_transposed{}))
}

// dot writes what a contraction's walker needs beside a launch whose operands
// and phases are written.
func (e *cExecutor) dot(c *C.mr_launch, r *ready) {
	plan, o := r.plan(), r.dot
	level, _ := contractLevel()
	d := &arenaSlice[C.mr_dot](&e.arena, 1)[0]
	*d = C.mr_dot{nops: C.mr_i64(len(r.l.Args) + 1), temp: C.mr_i64(len(r.l.Args)), level: C.mr_i64(level)}
	q := &d.c
	q.m, q.n, q.k = C.mr_i64(o.m), C.mr_i64(o.n), C.mr_i64(o.depth)
	q._type, q.rank = contractTypes[plan.Temps[0].DT], C.mr_i64(len(o.batch))
	chosen := choice(r.l.Choice)
	q.wide, q.high = C.mr_i64(chosen.wide()), C.mr_i64(chosen.high())
	for i, dim := range o.batch {
		q.dims[i] = C.mr_i64(r.l.Dims[dim])
	}
	for i, to := range [...]struct {
		side *C.mr_side
		view *C.mr_view
		walk *C.mr_walked
	}{{&q.x, &d.x, &d.wx}, {&q.y, &d.y, &d.wy}} {
		v := &o.views[i]
		if slot := r.inMemory(v, plan); slot >= 0 {
			e.memory(to.side, r, v, slot)
			continue
		}
		to.side.kind = C.MR_SIDE_FILL_I
		if v.alongK {
			to.side.kind = C.MR_SIDE_FILL_K
		}
		if slot := r.walked(v, plan); slot >= 0 {
			e.walked(to.walk, r, v, slot)
			continue
		}
		e.view(to.view, c, r, v)
		q.work += C.mr_i64(r.phaseWork(v.part))
	}
	q.stays = e.packed.at(r.packed)
	q.mask, q.maskrow, q.maskkind, q.masksmall = r.mask.at, C.mr_i64(r.mask.row), C.mr_i64(r.mask.kind), C.mr_i64(flag(r.mask.small))
	q.tails, q.hidden = (*C.mr_i64)(r.mask.tails), (*C.mr_i64)(r.mask.hidden)
	if slot := r.sink(plan); slot >= 0 {
		a, v := &r.l.Args[slot], &o.views[2]
		size := int64(plan.Temps[0].DT.Size())
		q.out = unsafe.Add(a.Buf.(*buffer).p, a.Offset*size)
		q.outrow = C.mr_i64(v.stride(a, v.lead))
		e.batch(&q.outbatch, r, a)
	} else if slot := r.walkedSink(plan); slot >= 0 {
		d.drains = 1
		e.walked(&d.wz, r, &o.views[2], slot)
	} else {
		d.drains = 1
		e.view(&d.z, c, r, &o.views[2])
		e.touched(&d.z, r, &o.views[2])
		q.work += C.mr_i64(r.phaseWork(partEnd))
	}
	c.dot = d
}

// packedSides are where the engine finds packed sides y again.
type packedSides []*C.mr_packed

// at is that of a side, nil where it is not kept.
func (s *packedSides) at(k packedSide) *C.mr_packed {
	if k.number == 0 {
		return nil
	}
	for len(*s) < k.number {
		*s = append(*s, (*C.mr_packed)(C.calloc(1, C.sizeof_mr_packed)))
	}
	c := (*s)[k.number-1]
	if c != nil { // memory may have been refused
		c.same = C.mr_i64(flag(k.same))
	}
	return c
}

func (s packedSides) free() {
	for _, k := range s {
		if k != nil {
			C.mr_packed_free(k)
			C.free(unsafe.Pointer(k))
		}
	}
}

// memory is a side that is an operand as it lies.
func (e *cExecutor) memory(s *C.mr_side, r *ready, v *dotView, slot int) {
	a := &r.l.Args[slot]
	outer, inner := C.mr_i64(v.stride(a, v.lead)), C.mr_i64(v.stride(a, v.lead+1))
	s.kind = C.MR_SIDE_MEM
	s.base = unsafe.Add(a.Buf.(*buffer).p, a.Offset*int64(r.p.kernel.Operands[slot].DT.Size()))
	s.stride, s.kstride = outer, inner
	if !v.alongK {
		s.stride, s.kstride = inner, outer
	}
	e.batch(&s.batch, r, a)
}

// walked is an operand as it lies along several dims.
func (e *cExecutor) walked(to *C.mr_walked, r *ready, v *dotView, slot int) {
	a := &r.l.Args[slot]
	to.on = 1
	to.base = (*C.char)(unsafe.Add(a.Buf.(*buffer).p, a.Offset*int64(r.p.kernel.Operands[slot].DT.Size())))
	e.batch(&to.batch, r, a)
	for _, g := range [...]struct {
		to        *C.mr_walk
		from, end int
	}{{&to.outer, v.lead, v.innerAt}, {&to.inner, v.innerAt, v.rank}} {
		g.to.rank = C.mr_i64(g.end - g.from)
		for d := g.from; d < g.end; d++ {
			g.to.dims[d-g.from], g.to.stride[d-g.from] = C.mr_i64(v.size[d]), C.mr_i64(v.stride(a, d))
		}
	}
}

func (e *cExecutor) batch(to *[runtime.MaxRank]C.mr_i64, r *ready, a *runtime.Access) {
	for i, dim := range r.dot.batch {
		to[i] = C.mr_i64(a.Stride[dim])
	}
}

// view is the domain of a phase that is evaluated.
func (e *cExecutor) view(to *C.mr_view, c *C.mr_launch, r *ready, v *dotView) {
	to.phase = (*C.mr_phase)(unsafe.Add(unsafe.Pointer(c.phases), uintptr(v.part)*unsafe.Sizeof(C.mr_phase{})))
	to.lead, to.outer, to.inner = C.mr_i64(v.lead), C.mr_i64(v.outer), C.mr_i64(v.inner)
	if v.flat {
		to.flat = 1
	}
	to.args = c.args
	to.args.rank = C.mr_i64(v.rank)
	all := len(r.l.Args)
	ops := arenaSlice[C.mr_operand](&e.arena, all+1)
	copy(ops, unsafe.Slice(c.args.ops, all))
	ops[all] = C.mr_operand{}
	for d := range v.rank {
		to.args.dims[d] = C.mr_i64(v.size[d])
		ops[all].stride[d] = C.mr_i64(v.tempStride(d))
	}
	for i := range all {
		ops[i].guard = C.mr_u32(r.viewGuard(v, i))
		for d := range v.rank {
			ops[i].stride[d] = C.mr_i64(v.stride(&r.l.Args[i], d))
		}
	}
	to.args.ops = unsafe.SliceData(ops)
}

// touched tells what the last phase touches where rows of results are short. Of rows of
// one point, whose neighbours are those of other rows, it is the product only.
func (e *cExecutor) touched(to *C.mr_view, r *ready, v *dotView) {
	if !v.short() {
		return
	}
	list := arenaSlice[C.struct_mr_transposed](&e.arena, len(r.l.Args)+1)
	list[0] = C.struct_mr_transposed{operand: C.mr_i32(len(r.l.Args)), size: C.mr_i32(r.plan().Temps[0].DT.Size())}
	n := 1
	for _, i := range r.p.parts[partEnd] {
		if v.inner == 1 {
			break
		}
		list[n] = C.struct_mr_transposed{operand: C.mr_i32(i)}
		if r.spreads(v, i) {
			list[n].size = C.mr_i32(r.p.kernel.Operands[i].DT.Size())
		}
		n++
	}
	to.ntouched, to.touched = C.mr_i64(n), unsafe.SliceData(list)
}
