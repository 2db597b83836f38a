//go:build cgo && unix

package cpu

/*
#cgo LDFLAGS: -lm -lpthread
#include <stdlib.h>
#include "fold.h"
#include "run.h"
*/
import "C"

import (
	"errors"
	goruntime "runtime"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

const maxReduces = C.MR_MAX_REDUCES

// cExecutor hands lists of launches to the C walker, one call per list.
type cExecutor struct {
	pool   *C.mr_pool
	absent *int32 // threads the system refused, in C memory
	asleep *int32 // threads that sleep, in C memory
	// Launches are written to C memory: Go memory that holds pointers must not
	// be passed. The memory is used again by the next call.
	arena  arena
	packed packedSides
	slow   *goExecutor // for programs whose tier 0 has no C functions here
}

func newExecutor(threads int, d ir.Denormals) (executor, error) {
	pool := C.mr_pool_open(C.int(threads), C.int(d))
	if pool == nil {
		return nil, errors.New("cpu: no memory for a pool of threads")
	}
	absent := (*int32)(unsafe.Pointer(C.mr_pool_refused(pool)))
	asleep := (*int32)(unsafe.Pointer(C.mr_pool_sleeping(pool)))
	return &cExecutor{pool: pool, absent: absent, asleep: asleep, slow: newGoExecutor(threads)}, nil
}

func (e *cExecutor) close() {
	C.mr_pool_close(e.pool)
	C.free(e.arena.base)
	e.packed.free()
	e.slow.close()
}

func (e *cExecutor) refused() int { return int(atomic.LoadInt32(e.absent)) }

func (e *cExecutor) rouse() {
	if atomic.LoadInt32(e.asleep) > 0 {
		C.mr_pool_rouse(e.pool)
	}
}

func (e *cExecutor) copyBytes(dst, src []byte) {
	C.mr_copy(e.pool, unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), C.mr_i64(len(src)))
}

func (e *cExecutor) run(list []ready) error {
	for len(list) > 0 {
		n := 0
		for n < len(list) && runsInC(&list[n]) {
			n++
		}
		if n == 0 {
			if err := e.slow.run(list[:1]); err != nil {
				return err
			}
			list = list[1:]
			continue
		}
		if err := e.runNative(list[:n]); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// runsInC reports that C code runs the launch. Folds are compiled with the
// flags of the block functions: where those are refused, so are they.
func runsInC(r *ready) bool {
	if r.p.soft {
		return false
	}
	if level, _ := nativeLevel(); r.p.hasRows && level < 0 {
		return false
	}
	if r.dot != nil {
		if level, _ := contractLevel(); level < 0 {
			return false
		}
	}
	return r.code != nil || !r.sched.refused()
}

func (e *cExecutor) runNative(list []ready) error {
	size := uintptr(len(list)) * unsafe.Sizeof(C.mr_launch{})
	for i := range list {
		size += launchBytes(&list[i])
	}
	if !e.arena.reset(size) {
		return errRefused
	}
	defer e.arena.wipe()
	launches := arenaSlice[C.mr_launch](&e.arena, len(list))
	for i := range list {
		e.write(&launches[i], &list[i])
	}
	n := C.mr_run(e.pool, &launches[0], C.mr_i64(len(list)))
	goruntime.KeepAlive(list) // from here on nothing runs that C knew only by address: block programs, loaded code
	switch {
	case n < 0:
		return errRefused
	case n > 0:
		f := launches[n-1].args.fault
		return list[n-1].outOfRange(int(f.operand), int64(f.index))
	}
	return nil
}

// launchBytes is the arena memory that write takes, rounding included.
func launchBytes(r *ready) uintptr {
	plan := r.plan()
	n := unsafe.Sizeof(C.mr_fault{}) + uintptr(len(r.l.Args))*unsafe.Sizeof(C.mr_operand{}) + uintptr(len(r.l.Scalars))*8 +
		uintptr(len(plan.Phases))*unsafe.Sizeof(C.mr_phase{}) + uintptr(len(plan.Temps))*unsafe.Sizeof(C.mr_temp{}) + uintptr(len(r.l.Args))*8 + dotBytes(r) + unsafe.Sizeof(C.mr_scatter{}) + transposeBytes(r)
	for i := range plan.Phases {
		n += uintptr(len(plan.Phases[i].Reduces))*unsafe.Sizeof(C.mr_reduce{}) + uintptr(len(plan.Phases[i].Stores))*unsafe.Sizeof(C.struct_mr_stored{})
	}
	for i := range r.l.Args {
		for j := range r.l.Args[i].Stages {
			n += unsafe.Sizeof(C.mr_stage{}) + uintptr(len(r.l.Args[i].Stages[j].Dims))*16
		}
	}
	return n
}

func (e *cExecutor) write(c *C.mr_launch, r *ready) {
	l, plan := r.l, r.plan()
	*c = C.mr_launch{
		total: C.mr_i64(r.total), bytes: C.mr_i64(r.p.perItem), mode: C.mr_i64(r.mode),
		nops: C.mr_i64(len(l.Args)), kept: C.mr_i64(l.Kept), outputs: C.mr_i64(r.outputs), reduced: C.mr_i64(r.total / r.outputs),
		tile: C.mr_i64(r.tile), threads: C.mr_i64(r.threads), wave: C.mr_i64(r.wave),
		nphases: C.mr_i64(len(plan.Phases)), ntemps: C.mr_i64(len(plan.Temps)),
	}
	if r.split {
		c.split = 1
	}
	rank := max(l.Rank, 1)
	c.args.rank = C.mr_i64(rank)
	c.args.dims[0] = 1
	for d := range l.Rank {
		c.args.dims[d] = C.mr_i64(l.Dims[r.dim(d)])
	}
	ops := arenaSlice[C.mr_operand](&e.arena, len(l.Args))
	for i := range ops {
		e.operand(&ops[i], r, i)
	}
	c.args.ops = unsafe.SliceData(ops)
	scalars := arenaSlice[C.mr_u64](&e.arena, len(l.Scalars))
	for i, s := range l.Scalars {
		scalars[i] = C.mr_u64(s)
	}
	c.args.scalars = unsafe.SliceData(scalars)
	if r.p.faults {
		f := arenaSlice[C.mr_fault](&e.arena, 1)
		f[0] = C.mr_fault{}
		c.args.fault = &f[0]
	}
	e.phases(c, r)
	if r.dot != nil {
		e.dot(c, r)
	}
	if r.scatter != nil {
		e.scatter(c, r)
	}
	if r.transposed.ops != 0 {
		e.transpose(c, r)
	}
}

func (e *cExecutor) phases(c *C.mr_launch, r *ready) {
	plan := r.plan()
	temps := arenaSlice[C.mr_temp](&e.arena, len(plan.Temps))
	for i, t := range plan.Temps {
		temps[i] = C.mr_temp{size: C.mr_i32(t.DT.Size()), row: flag(t.Row)}
	}
	c.temps = unsafe.SliceData(temps)
	look := r.lookPhase()
	if look >= 0 {
		ahead := arenaSlice[C.mr_i64](&e.arena, len(r.l.Args))
		for i := range ahead {
			ahead[i] = C.mr_i64(r.ahead(i))
		}
		c.ahead = unsafe.SliceData(ahead)
	}
	phases := arenaSlice[C.mr_phase](&e.arena, len(plan.Phases))
	totals := C.mr_i32(0)
	for i := range phases {
		ph := &plan.Phases[i]
		phases[i] = C.mr_phase{row: C.mr_i64(flag(ph.Level == codegen.Row)), stores: C.mr_i64(len(ph.Stores)), nreduce: C.mr_i64(len(ph.Reduces))}
		if i == look {
			phases[i].look = 1
		}
		if r.even(ph) {
			e.even(&phases[i], ph)
		}
		if r.code != nil {
			phases[i].eval = C.mr_eval(r.code.funcs[i])
		} else {
			eval, code := r.sched.tier0[i].evaluator()
			phases[i].eval, phases[i].code = C.mr_eval(eval), code
			phases[i].scratch = C.mr_i64(r.sched.tier0[i].scratch())
		}
		reduces := arenaSlice[C.mr_reduce](&e.arena, len(ph.Reduces))
		for j := range reduces {
			reduces[j] = reduceOf(ph.Kernel, &ph.Reduces[j])
			reduces[j].empty = C.mr_u64(plan.empty[i][j])
			if ph.Reduces[j].Operand < len(r.l.Args) {
				totals++
				reduces[j].total = totals
			}
		}
		phases[i].reduces = unsafe.SliceData(reduces)
	}
	c.phases, c.ntotals = unsafe.SliceData(phases), C.mr_i64(totals)
	c.tails = (*C.mr_i64)(r.tails.at)
}

// even tells what a phase stores, to be repeated in a row's tail.
func (e *cExecutor) even(to *C.mr_phase, ph *codegen.Phase) {
	stored := arenaSlice[C.struct_mr_stored](&e.arena, len(ph.Stores))
	for j, s := range ph.Stores {
		stored[j] = C.struct_mr_stored{operand: C.mr_i32(s.Operand), size: C.mr_i32(ph.Operands[s.Operand].DT.Size())}
	}
	to.even, to.stored = 1, unsafe.SliceData(stored)
}

// cRowOps are row ops as C knows them: a scan is that of a fold's op.
var cRowOps = map[ir.Op]C.mr_i32{
	ir.Sum: C.MR_SUM, ir.Prod: C.MR_PROD, ir.Max: C.MR_MAX, ir.Min: C.MR_MIN, ir.Any: C.MR_MAX, ir.All: C.MR_MIN,
	ir.ArgMax: C.MR_ARGMAX, ir.ArgMin: C.MR_ARGMIN,
	ir.CumSum: C.MR_SUM, ir.CumProd: C.MR_PROD, ir.CumMax: C.MR_MAX, ir.CumMin: C.MR_MIN,
	ir.Sort: C.MR_SORT, ir.ArgSort: C.MR_ARGSORT,
}

func reduceOf(k *codegen.Kernel, r *codegen.Reduce) C.mr_reduce {
	value := k.Body[r.Value]
	c := C.mr_reduce{
		op: cRowOps[r.Op], scan: flag(r.Op.Class() == ir.ClassScan), dt: C.mr_i32(value.DT), temp: C.mr_i32(r.Operand),
		size: C.mr_i32(k.Operands[r.Operand].DT.Size()), load: -1, descending: flag(r.Descending),
	}
	if value.Op == ir.Load && value.Args[0] == ir.None {
		c.load = C.mr_i32(value.Imm)
	}
	return c
}

func flag(x bool) C.mr_i32 {
	if x {
		return 1
	}
	return 0
}

func (e *cExecutor) operand(o *C.mr_operand, r *ready, i int) {
	a := &r.l.Args[i]
	*o = C.mr_operand{offset: C.mr_i64(a.Offset), guard: C.mr_u32(r.guard(i)), nstages: C.mr_i32(len(a.Stages)),
		istride: C.mr_i64(a.IndexStride), isize: C.mr_i64(a.IndexSize), stream: C.mr_i64(flag(r.streams(i)))}
	if r.p.kernel.Operands[i].Kind != codegen.Index {
		o.base = (*C.char)(a.Buf.(*buffer).p)
	}
	if r.p.total(i) {
		o.offset, o.nstages = C.mr_i64(totalAt(a, r.l)), 0
		return
	}
	for d := range r.l.Rank {
		o.stride[d] = C.mr_i64(a.Stride[r.dim(d)])
	}
	if len(a.Stages) == 0 {
		return
	}
	stages := arenaSlice[C.mr_stage](&e.arena, len(a.Stages))
	for j := range a.Stages {
		s := &a.Stages[j]
		dims, strides := arenaSlice[C.mr_i64](&e.arena, len(s.Dims)), arenaSlice[C.mr_i64](&e.arena, len(s.Dims))
		for d := range s.Dims {
			dims[d], strides[d] = C.mr_i64(s.Dims[d]), C.mr_i64(s.Stride[d])
		}
		stages[j] = C.mr_stage{offset: C.mr_i64(s.Offset), rank: C.mr_i64(len(s.Dims)), dims: unsafe.SliceData(dims), stride: unsafe.SliceData(strides)}
	}
	o.stages = unsafe.SliceData(stages)
}

// arena is C memory handed out from the front. All that is put there is made
// of words of eight bytes.
//
// It is zero between runs. Where Go stores a pointer while garbage is collected, the
// collector looks at what was there before: an address in Go's heap that is no object
// any more, as the memory of a tensor that a program shared may be, would end the process.
type arena struct {
	base       unsafe.Pointer
	size, used uintptr
}

// reset makes room for n bytes; false where there is no memory.
func (a *arena) reset(n uintptr) bool {
	a.used = 0
	if n <= a.size {
		return true
	}
	C.free(a.base)
	a.base, a.size = C.calloc(1, C.size_t(2*n)), 2*n
	if a.base == nil {
		a.size = 0
	}
	return a.base != nil
}

// wipe forgets what was put there.
func (a *arena) wipe() { clear(unsafe.Slice((*byte)(a.base), a.used)) }

func arenaSlice[T any](a *arena, n int) []T {
	if n == 0 {
		return nil
	}
	var zero T
	s := unsafe.Slice((*T)(unsafe.Add(a.base, a.used)), n)
	a.used += uintptr(n) * unsafe.Sizeof(zero)
	return s
}
