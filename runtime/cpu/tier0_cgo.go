//go:build cgo

package cpu

/*
// With the full debug information that cgo asks for, compiling takes a half longer:
// lines are enough for traces and profiles.
#cgo CFLAGS: -g1 -std=c11 -fno-strict-aliasing
#cgo !race CFLAGS: -O3
// The race detector sees Go only: compiling that C takes less than half as long.
#cgo race CFLAGS: -O1
#cgo !windows LDFLAGS: -lm
#include <stdlib.h>
#include "fold.h"
#include "tier0.h"
#include "run.h"
*/
import "C"

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// nativeCode is a block program in C memory: an mr_t0_code, then what it points
// to. The memory goes when the collector finds that nobody has the nativeCode:
// whoever passes p to C keeps it alive until C has returned.
type nativeCode struct {
	p    unsafe.Pointer
	drop goruntime.Cleanup
}

// Both sides read the same structs.
var (
	_ [unsafe.Sizeof(t0Instr{})]byte = [C.sizeof_mr_t0_instr]byte{}
	_ [unsafe.Sizeof(t0Store{})]byte = [C.sizeof_mr_t0_store]byte{}
)

// nativeLevel is the best ISA level whose functions give the right bits, -1
// and the reason where none does.
var nativeLevel = sync.OnceValues(func() (int, error) {
	var refused error
	for level := len(levelNames) - 1; level >= 0; level-- {
		if C.mr_t0_level(C.int(level)) == nil {
			continue
		}
		err := probe(nativeCall(level))
		if err == nil {
			useFolds(level)
			return level, nil
		}
		refused = fmt.Errorf("cpu: the %s functions are compiled with flags that change results: %w", levelNames[level], err)
	}
	return -1, refused
})

// useFolds chooses the ISA level of folds, one that this processor has.
func useFolds(level int) { C.mr_folds_use(C.int(level)) }

// translate copies the program to C memory.
func (t *tier0Code) translate() error {
	level, _ := nativeLevel()
	if level < 0 {
		return nil
	}
	instrBytes := len(t.instrs) * int(unsafe.Sizeof(t0Instr{}))
	storeBytes := len(t.stores) * int(unsafe.Sizeof(t0Store{}))
	head := align64(int(unsafe.Sizeof(C.mr_t0_code{})))
	p := C.calloc(1, C.size_t(head+instrBytes+storeBytes+1)) // zeros: see arena
	if p == nil {
		return errors.New("tier 0: no memory for a block program")
	}
	blockPrograms.Add(1)
	instrs, stores := unsafe.Add(p, head), unsafe.Add(p, head+instrBytes)
	copy(unsafe.Slice((*t0Instr)(instrs), len(t.instrs)), t.instrs)
	copy(unsafe.Slice((*t0Store)(stores), len(t.stores)), t.stores)
	*(*C.mr_t0_code)(p) = C.mr_t0_code{
		instrs: (*C.mr_t0_instr)(instrs), stores: (*C.mr_t0_store)(stores), fns: C.mr_t0_level(C.int(level)),
		ninstrs: C.mr_i64(len(t.instrs)), nstores: C.mr_i64(len(t.stores)), nops: C.mr_i64(t.nops),
		block: C.mr_i64(t.block), list: C.mr_i64(t.listAt()), flags: C.mr_i64(t.flagsAt()),
		uniforms: C.mr_i64(t.uniformsAt()), regs: C.mr_i64(t.regsAt()),
	}
	t.native = &nativeCode{p: p}
	t.native.drop = goruntime.AddCleanup(t.native, freeBlocks, p)
	return nil
}

// blockPrograms counts those in C memory, for tests.
var blockPrograms atomic.Int64

func freeBlocks(p unsafe.Pointer) {
	C.free(p)
	blockPrograms.Add(-1)
}

// evaluator is the C evaluator and the program it takes in mr_args.code; code is
// nil where this process has no usable C block functions. The caller keeps t alive
// as long as C has it.
func (t *tier0Code) evaluator() (eval, code unsafe.Pointer) {
	if t.native != nil {
		code = t.native.p
	}
	return unsafe.Pointer(C.mr_tier0_eval), code
}

// refused reports a program that should run in C and does not.
func (t *tier0Code) refused() bool { return t.native == nil }

// free gives the C memory back without waiting for the collector. The program must
// not run again.
func (t *tier0Code) free() {
	n := t.native
	if n == nil {
		return
	}
	t.native = nil
	n.drop.Stop()
	freeBlocks(n.p)
	goruntime.KeepAlive(n) // else it may be found dead, and freed twice
}
