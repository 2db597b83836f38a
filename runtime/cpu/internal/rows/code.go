package rows

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// Code is a phase as machine code. A call computes points of several rows, and stores them or folds
// what it computes: then no value of a fold goes through memory.
type Code interface {
	// Points returns the most points of a row that a call may take, folding or not; 0 if the phase
	// has no such code.
	Points(folds bool) int64
	// Open prepares calls for the tile that the evaluator's Args describe. It returns false if the
	// code does not fit the operands' layout. By columns, rows of a call are ir.FoldLanes apart.
	Open(kept int, cols, folds bool) bool
	// Move moves to a point of a row, which by columns is a row of all columns.
	Move(row, point int64)
	// Rows returns how many rows of so many points a call may take from here.
	Rows(points int64) int64
	// Result sets the address of fold k's results, which are step bytes apart.
	Result(k int, p unsafe.Pointer, step int64)
	// Run is a call. By columns and without folding it stores the values at the results' addresses.
	Run(points, rows int64, folds bool)
	// Close notes an index out of range, and drops the pointers that would keep memory alive.
	Close()
}

// foldRows runs blocks [from, to) of all strips of a phase by code that folds; it returns false if
// there is none for it.
func (t *tile) foldRows(list []Op, phase int, from, to int64) bool {
	x := t.x
	code := x.host.Code(t.who, phase)
	if code == nil {
		return false
	}
	defer code.Close()
	most := code.Points(true)
	if most == 0 || !x.Cols && most < min(x.reduced, ir.FoldBlock) || !code.Open(x.Kept, x.Cols, true) {
		return false
	}
	switch {
	case x.Cols:
		t.foldColumns(code, list, from, to, most)
	case t.own && x.blocks == 1:
		t.foldWhole(code, list)
	default:
		for s := range t.strips {
			t.foldBlocks(code, list, s, from, to)
		}
	}
	return true
}

// foldWhole folds rows of at most a block, as many in one call as allowed.
func (t *tile) foldWhole(code Code, list []Op) {
	for s := int64(0); s < t.strips; {
		code.Move(t.first+s, 0)
		rows := min(t.strips-s, code.Rows(t.x.reduced))
		t.foldInto(code, list, s)
		code.Run(t.x.reduced, rows, true)
		s += rows
	}
}

// foldInto directs the folds of the rows from a strip on to the final places of the results.
func (t *tile) foldInto(code Code, list []Op, strip int64) {
	x := t.x
	for k := range list {
		o := &list[k]
		step := o.Size
		if !x.Plan.Temps[o.temp-x.nops].Row {
			step *= x.reduced
		}
		code.Result(k, t.resultAt(o, strip, 0), step)
	}
}

// foldBlocks folds the blocks of a strip one by one.
func (t *tile) foldBlocks(code Code, list []Op, strip, from, to int64) {
	for b := from; b < to; b++ {
		first := b * ir.FoldBlock
		code.Move(t.first+strip, first)
		for k := range list {
			code.Result(k, t.acc[k], 0)
		}
		code.Run(min(t.x.reduced-first, ir.FoldBlock), 1, true)
		for k := range list {
			t.joinBlock(list, k, strip, b, t.acc[k])
		}
	}
}
