//go:build cgo && unix

package cpu

/*
#cgo CFLAGS: -O3 -std=c11 -fno-strict-aliasing
#cgo LDFLAGS: -lm -lpthread
#include <stdlib.h>
#include "run.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

const maxReduces = C.MR_MAX_REDUCES

// cExecutor hands lists of launches to the C walker, one call per list.
type cExecutor struct {
	pool *C.mr_pool
	// Launches are written to C memory: Go memory that holds pointers must not
	// be passed. The memory is used again by the next call.
	arena arena
	slow  *goExecutor // for programs whose tier 0 has no C functions here
}

func newExecutor(threads int) (executor, error) {
	pool := C.mr_pool_open(C.int(threads))
	if pool == nil {
		return nil, errors.New("cpu: the system refuses threads")
	}
	return &cExecutor{pool: pool, slow: newGoExecutor(threads)}, nil
}

func (e *cExecutor) close() {
	C.mr_pool_close(e.pool)
	C.free(e.arena.base)
	e.slow.close()
}

func (e *cExecutor) copyBytes(dst, src []byte) {
	C.mr_copy(e.pool, unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), C.mr_i64(len(src)))
}

func (e *cExecutor) run(list []ready) error {
	for len(list) > 0 {
		n := 0
		for n < len(list) && native(&list[n]) {
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

// native reports that C code runs the launch.
func native(r *ready) bool {
	if r.code != nil {
		return true
	}
	_, code := r.p.tier0.entry()
	return code != nil
}

func (e *cExecutor) runNative(list []ready) error {
	size := uintptr(len(list)) * unsafe.Sizeof(C.mr_launch{})
	for i := range list {
		size += launchBytes(&list[i])
	}
	if !e.arena.reset(size) {
		return errRefused
	}
	launches := arenaSlice[C.mr_launch](&e.arena, len(list))
	for i := range list {
		e.write(&launches[i], &list[i])
	}
	if C.mr_run(e.pool, &launches[0], C.mr_i64(len(list))) != 0 {
		return errRefused
	}
	return nil
}

// launchBytes is the arena memory that write takes, rounding included.
func launchBytes(r *ready) uintptr {
	n := uintptr(len(r.l.Args))*unsafe.Sizeof(C.mr_operand{}) +
		uintptr(len(r.l.Scalars))*8 + uintptr(len(r.p.kernel.Reduces))*unsafe.Sizeof(C.mr_reduce{})
	for i := range r.l.Args {
		for j := range r.l.Args[i].Stages {
			n += unsafe.Sizeof(C.mr_stage{}) + uintptr(len(r.l.Args[i].Stages[j].Dims))*16
		}
	}
	return n
}

func (e *cExecutor) write(c *C.mr_launch, r *ready) {
	l, k := r.l, r.p.kernel
	*c = C.mr_launch{
		total: C.mr_i64(r.total), bytes: C.mr_i64(r.p.perItem), mode: C.mr_i64(r.mode),
		nops: C.mr_i64(len(l.Args)), kept: C.mr_i64(l.Kept), nreduce: C.mr_i64(len(k.Reduces)),
	}
	rank := max(l.Rank, 1)
	c.args.rank = C.mr_i64(rank)
	c.args.dims[0] = 1
	for d := range l.Rank {
		c.args.dims[d] = C.mr_i64(l.Dims[r.dim(d)])
	}
	if r.code != nil {
		c.eval = C.mr_eval(r.code)
	} else {
		eval, code := r.p.tier0.entry()
		c.eval = C.mr_eval(eval)
		c.args.code = code
		c.scratch = C.mr_i64(r.p.tier0.scratch())
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
	reduces := arenaSlice[C.mr_reduce](&e.arena, len(k.Reduces))
	for i, red := range k.Reduces {
		op := C.mr_i32(C.MR_SUM)
		if red.Op == ir.Max {
			op = C.MR_MAX
		}
		reduces[i] = C.mr_reduce{op: op, dt: C.mr_i32(k.Body[red.Value].DT), operand: C.mr_i32(red.Operand)}
	}
	c.reduces = unsafe.SliceData(reduces)
}

func (e *cExecutor) operand(o *C.mr_operand, r *ready, i int) {
	a := &r.l.Args[i]
	*o = C.mr_operand{offset: C.mr_i64(a.Offset), guard: C.mr_u32(r.guard(i)), nstages: C.mr_i32(len(a.Stages))}
	if r.p.kernel.Operands[i].Kind != codegen.Index {
		o.base = (*C.char)(a.Buf.(*buffer).p)
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
	a.base, a.size = C.malloc(C.size_t(2*n)), 2*n
	if a.base == nil {
		a.size = 0
	}
	return a.base != nil
}

func arenaSlice[T any](a *arena, n int) []T {
	if n == 0 {
		return nil
	}
	var zero T
	s := unsafe.Slice((*T)(unsafe.Add(a.base, a.used)), n)
	a.used += uintptr(n) * unsafe.Sizeof(zero)
	return s
}
