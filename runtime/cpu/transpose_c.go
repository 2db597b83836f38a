//go:build cgo && unix

package cpu

/*
#include "run.h"
*/
import "C"

import (
	"math/bits"
	"unsafe"
)

// transposeBytes is the arena memory that transpose takes.
func transposeBytes(r *ready) uintptr {
	if r.transposed.ops == 0 {
		return 0
	}
	return unsafe.Sizeof(C.mr_transpose{}) + uintptr(bits.OnesCount64(r.transposed.ops))*unsafe.Sizeof(C.struct_mr_transposed{})
}

// transpose tells which operands are transposed.
func (e *cExecutor) transpose(c *C.mr_launch, r *ready) {
	to := arenaSlice[C.mr_transpose](&e.arena, 1)
	ops := arenaSlice[C.struct_mr_transposed](&e.arena, bits.OnesCount64(r.transposed.ops))
	k := 0
	for i, o := range r.p.kernel.Operands {
		if r.transposed.has(i) {
			ops[k] = C.struct_mr_transposed{operand: C.mr_i32(i), size: C.mr_i32(o.DT.Size())}
			k++
		}
	}
	to[0] = C.mr_transpose{dim: C.mr_i64(r.transposed.dim), rows: C.mr_i64(r.transposed.rows), cols: C.mr_i64(r.transposed.cols),
		count: C.mr_i64(len(ops)), ops: unsafe.SliceData(ops)}
	c.transpose = &to[0]
}
