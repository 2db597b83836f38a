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

// nativeCall calls the functions of a level. Values must be in C memory or
// hold no pointers to Go memory that holds pointers.
func nativeCall(level int) blockCaller {
	return func(in *t0Instr, v []t0Val, groups int) {
		p := C.malloc(C.size_t(len(v)) * C.size_t(unsafe.Sizeof(v[0])))
		defer C.free(p)
		native := unsafe.Slice((*t0Val)(p), len(v))
		var data []unsafe.Pointer
		for i := range v {
			data = append(data, C.malloc(C.size_t(groups*uniformBytes)))
			native[i] = t0Val{data[i], v[i].step}
			copyBytes(data[i], v[i].p, int64(max(v[i].step*groups, v[i].step, 1)))
		}
		C.mr_t0_call(C.int(level), (*C.mr_t0_instr)(unsafe.Pointer(in)), (*C.mr_t0_val)(p), C.mr_i64(groups))
		d := v[in.dst]
		copyBytes(d.p, data[in.dst], int64(d.step*groups))
		for _, p := range data {
			C.free(p)
		}
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
	p := C.malloc(C.size_t(n + 1))
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
func (t *tier0Prog) evalNative(a *args, begin, end int64) {
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
	_, code := t.entry()
	n := (*C.mr_args)(c.alloc(int(unsafe.Sizeof(C.mr_args{}))))
	*n = C.mr_args{rank: C.mr_i64(a.rank), code: code, ops: (*C.mr_operand)(toC(&c, ops)), scalars: (*C.mr_u64)(toC(&c, a.scalars)),
		bufs: (*unsafe.Pointer)(toC(&c, a.bufs)), scratch: unsafe.Pointer(unsafe.SliceData(a.scratch))}
	for d, s := range a.dims {
		n.dims[d] = C.mr_i64(s)
	}
	C.mr_tier0_eval(n, C.mr_i64(begin), C.mr_i64(end))
}
