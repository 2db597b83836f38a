//go:build cgo && unix

package cpu

/*
#include "fold.h"
#include "run.h"
*/
import "C"

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// cCombines are the ways to combine as C knows them.
var cCombines = [ir.NumCombines]C.mr_i32{
	ir.CombineSet: C.MR_FOLDS, ir.CombineAdd: C.MR_SUM, ir.CombineMax: C.MR_MAX, ir.CombineMin: C.MR_MIN, ir.CombineMul: C.MR_PROD,
}

// scatter writes what C must know of a scatter.
func (e *cExecutor) scatter(c *C.mr_launch, r *ready) {
	p, o := r.p.scatter, r.scatter
	s := arenaSlice[C.mr_scatter](&e.arena, 1)
	s[0] = C.mr_scatter{
		out: C.mr_i32(p.to), in: C.mr_i32(p.from), dt: C.mr_i32(p.in.DT), index: C.mr_i32(p.index),
		mode: C.mr_i32(codegen.ModeOf(p.in)), op: cCombines[codegen.CombineOf(p.in)],
		spread: flag(o.spread), copy: flag(o.copies), parts: C.mr_i64(o.parts),
	}
	c.scatter = &s[0]
}
