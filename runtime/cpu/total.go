package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Totals are folds of all points of a launch with rows, in the order of docs/numerics/order.md,
// which is the order of the points. A thread processes the points of its share in order, phase by
// phase, so it folds the blocks that are completely in its share. The elements of other blocks are
// kept, and folded when all shares are done.

// edgeBytes is the bytes that shares keep of one block, for one total.
const edgeBytes = 8 * ir.FoldBlock

// totalAt returns the element that a total's access refers to.
func totalAt(a *runtime.Access, l *runtime.Launch) int64 {
	var point [runtime.MaxRank]int64
	return codegen.Position(a, point[:l.Rank])
}

func (x *rowJob) pointBlocks() int64 { return (x.points + ir.FoldBlock - 1) / ir.FoldBlock }

// blockPoints returns the number of points of block b.
func (x *rowJob) blockPoints(b int64) int64 { return min(x.points-b*ir.FoldBlock, ir.FoldBlock) }

// openTotals allocates the memory of a launch's totals; it returns false if memory is refused.
func (x *rowJob) openTotals() bool {
	shares, n := (x.tiles+x.grain-1)/x.grain, int64(x.plan.totals)
	sums := n * x.sumBytes()
	x.sums = x.e.memory[x.e.threads].reserve(sums + shares*n*edgeBytes + 64)
	if x.sums == nil {
		return false
	}
	x.edges = unsafe.Add(x.sums, sums)
	return true
}

// sumBytes returns the bytes of the results of a total's blocks.
func (x *rowJob) sumBytes() int64 { return aligned(x.pointBlocks() * 8) }

// edge returns the memory for the elements of block b, which begins in one share and ends in a
// later one.
func (x *rowJob) edge(total int, b int64) unsafe.Pointer {
	return unsafe.Add(x.edges, (b*ir.FoldBlock/x.part*int64(x.plan.totals)+int64(total-1))*edgeBytes)
}

func (x *rowJob) sum(total int, b int64) unsafe.Pointer {
	return unsafe.Add(x.sums, int64(total-1)*x.sumBytes()+b*8)
}

// takeTotal takes m elements, from point p of the launch on.
func (t *rowTile) takeTotal(o *rowOp, f *folder, values unsafe.Pointer, p, m int64) {
	x := t.x
	lanes := unsafe.Add(t.open, int64(o.total-1)*openBytes)
	for done := int64(0); done < m; {
		b, at := (p+done)/ir.FoldBlock, (p+done)%ir.FoldBlock
		n := x.blockPoints(b)
		some := min(n-at, m-done)
		from := unsafe.Add(values, done*f.size)
		if b*ir.FoldBlock < t.from || b*ir.FoldBlock+n > t.to {
			copyMemory(unsafe.Add(x.edge(o.total, b), at*f.size), from, some*f.size)
		} else {
			if at == 0 {
				f.start(lanes)
			}
			f.add(lanes, from, at, some, 1, 1)
			if at+some == n {
				f.finish(lanes, n, 1)
				copyMemory(x.sum(o.total, b), lanes, f.size)
			}
		}
		done += some
	}
}

// closeTotals writes the totals after all shares are done.
func (x *rowJob) closeTotals() {
	for _, list := range x.plan.rowOps {
		for k := range list {
			if list[k].total > 0 {
				x.closeTotal(&list[k])
			}
		}
	}
}

func (x *rowJob) closeTotal(o *rowOp) {
	to, dt, f := &x.args.ops[o.temp], &x.f.dtype[o.dt], x.f.of(o.op, o.dt)
	out := unsafe.Add(to.base, to.offset*o.size)
	if x.points == 0 {
		storeElement(out, int32(o.size), o.empty)
		return
	}
	var lanes [ir.FoldLanes]uint64
	acc := unsafe.Pointer(&lanes)
	sum := x.sum(o.total, 0)
	for b := range x.pointBlocks() {
		n := x.blockPoints(b)
		if b*ir.FoldBlock/x.part != (b*ir.FoldBlock+n-1)/x.part { // no share has the whole block
			f.start(acc)
			f.add(acc, x.edge(o.total, b), 0, n, 1, 1)
			f.finish(acc, n, 1)
			copyMemory(x.sum(o.total, b), acc, f.size)
		}
		if b > 0 {
			f.combine(sum, x.sum(o.total, b), 1)
		}
	}
	if dt.narrow != nil {
		dt.narrow(out, sum, 1)
	} else {
		f.result(out, o.size, sum, 1)
	}
}
