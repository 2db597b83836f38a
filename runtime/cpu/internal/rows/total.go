package rows

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Totals are folds of all points of a launch with rows, in the order of docs/numerics/order.md,
// which is the order of the points. A thread processes the points of its share in order, phase by
// phase, so it folds the blocks that are completely in its share. The elements of other blocks are
// kept, and folded when all shares are done.

// edgeBytes is the bytes that shares keep of one block, for one total.
const edgeBytes = 8 * ir.FoldBlock

func (x *Job) pointBlocks() int64 { return (x.Points + ir.FoldBlock - 1) / ir.FoldBlock }

// blockPoints returns the number of points of block b.
func (x *Job) blockPoints(b int64) int64 { return min(x.Points-b*ir.FoldBlock, ir.FoldBlock) }

// openTotals allocates the memory of a launch's totals; it returns false if memory is refused.
func (x *Job) openTotals() bool {
	shares, n := (x.count+x.grain-1)/x.grain, int64(x.Plan.totals)
	sums := n * x.sumBytes()
	x.sums = x.host.Reserve(operands.Shared, sums+shares*n*edgeBytes+64)
	if x.sums == nil {
		return false
	}
	x.edges = unsafe.Add(x.sums, sums)
	return true
}

// sumBytes returns the bytes of the results of a total's blocks.
func (x *Job) sumBytes() int64 { return memory.Aligned(x.pointBlocks() * 8) }

// edge returns the memory for the elements of block b, which begins in one share and ends in a
// later one.
func (x *Job) edge(total int, b int64) unsafe.Pointer {
	return unsafe.Add(x.edges, (b*ir.FoldBlock/x.part*int64(x.Plan.totals)+int64(total-1))*edgeBytes)
}

func (x *Job) sum(total int, b int64) unsafe.Pointer {
	return unsafe.Add(x.sums, int64(total-1)*x.sumBytes()+b*8)
}

// takeTotal takes m elements, from point p of the launch on.
func (t *tile) takeTotal(o *Op, f *fold.Folder, values unsafe.Pointer, p, m int64) {
	x := t.x
	lanes := unsafe.Add(t.open, int64(o.total-1)*openBytes)
	for done := int64(0); done < m; {
		b, at := (p+done)/ir.FoldBlock, (p+done)%ir.FoldBlock
		n := x.blockPoints(b)
		some := min(n-at, m-done)
		from := unsafe.Add(values, done*f.Size)
		if b*ir.FoldBlock < t.from || b*ir.FoldBlock+n > t.to {
			memory.Copy(unsafe.Add(x.edge(o.total, b), at*f.Size), from, some*f.Size)
		} else {
			if at == 0 {
				f.Start(lanes)
			}
			f.Add(lanes, from, at, some, 1, 1)
			if at+some == n {
				f.Finish(lanes, n, 1)
				memory.Copy(x.sum(o.total, b), lanes, f.Size)
			}
		}
		done += some
	}
}

// closeTotals writes the totals after all shares are done.
func (x *Job) closeTotals() {
	for _, list := range x.Plan.Ops {
		for k := range list {
			if list[k].total > 0 {
				x.closeTotal(&list[k])
			}
		}
	}
}

func (x *Job) closeTotal(o *Op) {
	to, dt, f := &x.Args.Ops[o.temp], &x.Folds.DTypes[o.DT], x.Folds.Of(o.Fold, o.DT)
	out := unsafe.Add(to.Base, to.Offset*o.Size)
	if x.Points == 0 {
		operands.SetElement(out, int32(o.Size), o.empty)
		return
	}
	var lanes [ir.FoldLanes]uint64
	acc := unsafe.Pointer(&lanes)
	sum := x.sum(o.total, 0)
	for b := range x.pointBlocks() {
		n := x.blockPoints(b)
		if b*ir.FoldBlock/x.part != (b*ir.FoldBlock+n-1)/x.part { // no share has the whole block
			f.Start(acc)
			f.Add(acc, x.edge(o.total, b), 0, n, 1, 1)
			f.Finish(acc, n, 1)
			memory.Copy(x.sum(o.total, b), acc, f.Size)
		}
		if b > 0 {
			f.Combine(sum, x.sum(o.total, b), 1)
		}
	}
	if dt.Narrow != nil {
		dt.Narrow(out, sum, 1)
	} else {
		f.Result(out, o.Size, sum, 1)
	}
}
