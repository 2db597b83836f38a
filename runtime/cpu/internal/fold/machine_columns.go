package fold

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// Folds of columns stored side by side in memory. Memory bandwidth limits them. Rows are read
// once, several at a time and each in order, a pattern that hardware prefetchers recognize. First
// the rows of each lane are joined, then the lanes. If there are no more rows than lanes, the rows
// are joined directly from their memory. Partial sums stay in cache.

// rowJoins is the code that joins rows, compiled on first use; a function returns nil if there is
// no such code.
type rowJoins struct {
	size        int64
	tree        [native.TreeRows + 1]func() *jit.Code
	chain, onto func() *jit.Code
	mxcsr       uint32
}

const (
	// laneRows is how many rows of a lane are joined at a time. treePart is the bytes of each row
	// that a tree joins: its sums stay in the first-level cache.
	laneRows = 4
	treePart = 4 << 10
	// lineAhead is the prefetch distance in bytes within a row that continues.
	lineAhead = 512
	// callRowBytes bounds the bytes that one call processes.
	callRowBytes = 128 << 10
)

func newRowJoins(f native.Fold, size int64, isa *native.ISA, mxcsr uint32) *rowJoins {
	j := &rowJoins{size: size, mxcsr: mxcsr}
	make := func(how native.RowJoin) func() *jit.Code {
		return sync.OnceValue(func() *jit.Code { return joinCode(native.CompileRowJoin(f, how, isa)) })
	}
	for rows := 1; rows <= native.TreeRows; rows++ {
		j.tree[rows] = make(native.RowJoin{Tree: rows})
	}
	j.chain, j.onto = make(native.RowJoin{}), make(native.RowJoin{Onto: true})
	return j
}

// rowsToJoin describes rows in memory: step is the bytes between two rows, ahead the bytes from a
// read position to the prefetched one.
type rowsToJoin struct {
	at          unsafe.Pointer
	step, ahead int64
}

// run joins rows of so many columns. A frame serves many calls.
func (j *rowJoins) run(frame *jit.Frame, c *jit.Code, to unsafe.Pointer, from rowsToJoin, columns, rows int64) {
	least := int64(c.Func.Lanes)
	most := max(callRowBytes/(rows*j.size)/least, 1) * least
	for at := int64(0); at < columns; {
		some := columns - at
		if some >= most+least {
			some = most
		}
		next := rowsToJoin{unsafe.Add(from.at, at*j.size), from.step, from.ahead}
		j.units(frame, c, unsafe.Add(to, at*j.size), next, some, rows, 1, 0, 0)
		at += some
	}
}

// units joins rows of so many columns several times. toStep and fromStep are the bytes to the next
// results and to their rows.
func (j *rowJoins) units(frame *jit.Frame, c *jit.Code, to unsafe.Pointer, from rowsToJoin, columns, rows, units, toStep, fromStep int64) {
	for most := max(callRowBytes/(rows*columns*j.size), 1); units > 0; {
		some := min(units, most)
		frame.Operand(0, to, 0, toStep)
		frame.Operand(1, from.at, from.ahead, from.step)
		frame[(native.FrameArgs+native.OperandBytes+native.IndexStep)/8] = uint64(fromStep)
		frame[native.FrameUnits/8] = uint64(some)
		frame.Run(c, columns, rows, j.mxcsr)
		if units -= some; units > 0 {
			to, from.at = unsafe.Add(to, some*toStep), unsafe.Add(from.at, some*fromStep)
		}
	}
}

// fold folds m rows of n columns, at most a block, ld elements apart, to out, which may be acc.
// acc has room for the lanes and for native.TreeRows rows more. fold returns false if it cannot do
// this.
func (j *rowJoins) fold(out, acc, values unsafe.Pointer, m, n, ld int64) bool {
	last := j.tree[min(m, native.TreeRows)]()
	if m < 2 || last == nil || n < int64(last.Func.Lanes) {
		return false
	}
	var frame jit.Frame
	row := n * j.size
	if m <= native.TreeRows {
		j.run(&frame, last, out, rowsToJoin{values, ld * j.size, lineAhead}, n, m)
		return true
	}
	most, less := j.tree[min((m+native.TreeRows-1)/native.TreeRows, native.TreeRows)](), j.tree[max(min(m/native.TreeRows, native.TreeRows), 1)]()
	if most == nil || less == nil {
		return false
	}
	parts := unsafe.Add(acc, row) // out may be in front of it
	if m > ir.FoldLanes {
		chain, onto := j.chain(), j.onto()
		if chain == nil || onto == nil {
			return false
		}
		j.lanes(&frame, chain, onto, acc, values, m, n, ld)
		values, parts, m, ld = acc, unsafe.Add(acc, ir.FoldLanes*row), ir.FoldLanes, n
	}
	more := m % native.TreeRows // number of trees with one more row
	if ld == n {                // adjacent rows are joined as one row
		from := rowsToJoin{values, native.TreeRows * row, lineAhead}
		if more > 0 {
			j.run(&frame, most, parts, from, more*n, m/native.TreeRows+1)
		}
		from.at = unsafe.Add(values, more*row)
		j.run(&frame, less, unsafe.Add(parts, more*row), from, (native.TreeRows-more)*n, m/native.TreeRows)
		j.run(&frame, last, out, rowsToJoin{parts, row, lineAhead}, n, native.TreeRows)
		return true
	}
	part := treePart / j.size
	for at := int64(0); at < n; {
		some := n - at
		if some >= part+int64(last.Func.Lanes) {
			some = part
		}
		for l := range int64(native.TreeRows) {
			from := rowsToJoin{unsafe.Add(values, (l*ld+at)*j.size), native.TreeRows * ld * j.size, ld * j.size}
			if l == native.TreeRows-1 {
				from.ahead = (some - l*ld) * j.size
			}
			c, rows := less, m/native.TreeRows
			if l < more {
				c, rows = most, rows+1
			}
			j.run(&frame, c, unsafe.Add(parts, l*some*j.size), from, some, rows)
		}
		j.run(&frame, last, unsafe.Add(out, at*j.size), rowsToJoin{parts, some * j.size, lineAhead}, some, native.TreeRows)
		at += some
	}
	return true
}

// Lanes joins the rows of every lane, if there are more rows than lanes.
func (j *rowJoins) lanes(frame *jit.Frame, chain, onto *jit.Code, acc, values unsafe.Pointer, m, n, ld int64) {
	for r := int64(0); r < m; {
		lanes, rows := min(m-r, ir.FoldLanes), min(max((m-r)/ir.FoldLanes, 1), laneRows)
		c := onto
		if r == 0 {
			c = chain
		}
		from := rowsToJoin{unsafe.Add(values, r*ld*j.size), ir.FoldLanes * ld * j.size, lineAhead}
		switch {
		case ld == n: // adjacent rows are joined as one row
			j.run(frame, c, acc, from, lanes*n, rows)
		default:
			if n*j.size <= treePart {
				from.ahead = ld * j.size
			}
			j.units(frame, c, acc, from, n, rows, lanes, n*j.size, ld*j.size)
		}
		r += rows * ir.FoldLanes
	}
}
