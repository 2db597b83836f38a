//go:build cgo

package cpu

/*
#include <stdlib.h>
#include "tier0.h"
#include "run.h"
*/
import "C"

import (
	goruntime "runtime"
	"unsafe"
)

// This file calls single block functions and single evaluations, for the probe
// and for tests, which cannot use cgo themselves. Launches go through mr_run.

// nativeCall calls the functions of a level, on copies of the values in C
// memory.
func nativeCall(level int) blockCaller {
	return func(in *t0Instr, v []t0Val, groups int) {
		var c cMemory
		defer c.free()
		native := make([]C.mr_t0_val, len(v))
		for i := range v {
			native[i].p = (*C.char)(c.alloc(groups * uniformBytes))
			native[i].step = C.mr_i64(v[i].step)
			copyBytes(unsafe.Pointer(native[i].p), v[i].p, int64(v[i].step*groups))
		}
		C.mr_t0_call(C.int(level), (*C.mr_t0_instr)(unsafe.Pointer(in)), &native[0], C.mr_i64(groups))
		d := v[in.dst]
		copyBytes(d.p, unsafe.Pointer(native[in.dst].p), int64(d.step*groups))
	}
}

// nativeCallers are the ISA levels of this processor.
func nativeCallers() map[string]blockCaller {
	m := map[string]blockCaller{}
	for level, name := range levelNames {
		if C.mr_t0_level(C.int(level)) != nil {
			m[name] = nativeCall(level)
		}
	}
	return m
}

// cMemory is C memory that is freed together.
type cMemory struct{ all []unsafe.Pointer }

func (c *cMemory) alloc(n int) unsafe.Pointer {
	p := C.calloc(1, C.size_t(n+1)) // zeros: see arena
	c.all = append(c.all, p)
	return p
}

func (c *cMemory) free() {
	for _, p := range c.all {
		C.free(p)
	}
}

// toC copies a slice to C memory.
func toC[T any](c *cMemory, s []T) unsafe.Pointer {
	var x T
	p := c.alloc(len(s) * int(unsafe.Sizeof(x)))
	copy(unsafe.Slice((*T)(p), len(s)), s)
	return p
}

// evalNative is eval in C, on Go memory.
func (t *tier0Code) evalNative(a *args, begin, end int64) {
	var c cMemory
	defer c.free()
	var pin goruntime.Pinner
	defer pin.Unpin()
	pin.Pin(unsafe.SliceData(a.scratch))
	for _, p := range a.bufs {
		pin.Pin(p)
	}
	ops := make([]C.mr_operand, len(a.ops))
	for i := range a.ops {
		o, n := &a.ops[i], &ops[i]
		if o.base != nil {
			pin.Pin(o.base)
		}
		n.base, n.offset, n.guard = (*C.char)(o.base), C.mr_i64(o.offset), C.mr_u32(o.guard)
		for d, s := range o.stride {
			n.stride[d] = C.mr_i64(s)
		}
		var stages []C.mr_stage
		for _, s := range o.stages {
			stages = append(stages, C.mr_stage{offset: C.mr_i64(s.Offset), rank: C.mr_i64(len(s.Dims)),
				dims: (*C.mr_i64)(toC(&c, s.Dims)), stride: (*C.mr_i64)(toC(&c, s.Stride))})
		}
		n.stages, n.nstages = (*C.mr_stage)(toC(&c, stages)), C.mr_i32(len(stages))
	}
	_, code := t.evaluator()
	n := (*C.mr_args)(c.alloc(int(unsafe.Sizeof(C.mr_args{}))))
	*n = C.mr_args{rank: C.mr_i64(a.rank), code: code, ops: (*C.mr_operand)(toC(&c, ops)), scalars: (*C.mr_u64)(toC(&c, a.scalars)),
		bufs: (*unsafe.Pointer)(toC(&c, a.bufs)), scratch: unsafe.Pointer(unsafe.SliceData(a.scratch))}
	for d, s := range a.dims {
		n.dims[d] = C.mr_i64(s)
	}
	C.mr_tier0_eval(n, C.mr_i64(begin), C.mr_i64(end))
	goruntime.KeepAlive(t) // only C's memory had what it points to
}
