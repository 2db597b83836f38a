package cpu

import (
	"fmt"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// dotParts lists the operands that each part of a contraction's kernel touches: the two factors
// and the work on the results.
type dotParts [3][]int

// The parts of a contraction, which are also its phases.
const (
	partA = iota
	partB
	partEnd
)

// partsOf returns the parts of a kernel, nil if it has no contraction. The kernel is not lowered
// yet: lowering never adds operands to a part.
func partsOf(k *codegen.Kernel) *dotParts {
	s := codegen.Phases(k, codegen.PhaseOptions{})
	if !k.HasRows() || !s.Contraction() {
		return nil
	}
	var parts dotParts
	for i := range s.Phases {
		parts[i] = touched(s.Phases[i].Kernel, len(k.Operands))
	}
	return &parts
}

// touched lists which of the first n operands a phase loads from or stores to.
func touched(ph *codegen.Kernel, n int) (list []int) {
	seen := make([]bool, len(ph.Operands))
	for _, in := range ph.Body {
		switch in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
			seen[uint32(in.Imm)] = true
		}
	}
	for _, st := range ph.Stores {
		seen[st.Operand] = true
	}
	for slot, yes := range seen[:n] {
		if yes {
			list = append(list, slot)
		}
	}
	return list
}

// dotOrder is the order in which the dims of a contraction's launch are visited. The engine
// multiplies x, by rows, with y, by columns; part A may be either of them.
type dotOrder struct {
	batch, rows, cols, k []int // dims of the launch, outermost first, without those of size 1
	m, n, depth          int64
	batches              int64
	views                [3]dotView // of x, of y, of the results

	room [4][runtime.MaxRank]int // memory of the lists of dims
}

// dotOrders reuses dotOrder values: making one takes as long as a small contraction.
var dotOrders = sync.Pool{New: func() any { return new(dotOrder) }}

// dotView is the domain of a part: the dims of the batch, then an outer and an inner group of
// dims. Neighbouring dims that all operands of the part walk as one dim are merged.
type dotView struct {
	part         int // the part, which is also its phase
	lead, rank   int // number of dims of the batch, and of all dims
	innerAt      int // first dim of the inner group
	dim          [runtime.MaxRank]int
	size         [runtime.MaxRank]int64
	outer, inner int64
	flat         bool // each group is one dim, and no output is guarded
	alongK       bool // for sides: k is the inner group
}

// noDim stands for the dim of a group without dims.
const noDim = -1

// still reports that no operand of a part moves along a dim.
func (r *ready) still(part, dim int) bool {
	for _, i := range r.p.parts[part] {
		if r.l.Args[i].Stride[dim] != 0 {
			return false
		}
	}
	return true
}

// orderDot sorts the dims of a launch: only part A moves along rows, only part B along columns,
// both along the batch.
func (r *ready) orderDot() error {
	l := r.l
	if l.Rank > runtime.MaxRank-2 {
		return fmt.Errorf("a contraction has %d dims, at most %d are possible", l.Rank, runtime.MaxRank-2)
	}
	o := dotOrders.Get().(*dotOrder)
	r.mode, r.dot = modeDot, o
	a, b := o.room[0][:0], o.room[1][:0]
	o.k, o.batch = o.room[2][:0], o.room[3][:0]
	for d := range l.Rank {
		switch {
		case l.Dims[d] == 1:
		case d >= l.Kept:
			o.k = append(o.k, d)
		case r.still(partB, d):
			a = append(a, d)
		case r.still(partA, d):
			b = append(b, d)
		default:
			o.batch = append(o.batch, d)
		}
	}
	x, y := partA, partB
	o.rows, o.cols = a, b
	if r.rowsInner(a, b) {
		x, y, o.rows, o.cols = partB, partA, b, a
	}
	o.m, o.n, o.depth, o.batches = r.count(o.rows), r.count(o.cols), r.count(o.k), r.count(o.batch)
	for d := l.Kept; d < l.Rank; d++ {
		if l.Dims[d] == 0 {
			o.depth = 0
		}
	}
	o.views[0] = r.side(x, o.rows, true)
	o.views[1] = r.side(y, o.cols, false)
	o.views[2] = r.view(partEnd, o.rows, o.cols)
	return nil
}

func (r *ready) count(dims []int) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= r.l.Dims[d]
	}
	return n
}

// rowsInner reports that results are dense along the last of dims a and not along the last of dims
// b. The engine writes runs of columns, so rows and columns are then swapped.
func (r *ready) rowsInner(a, b []int) bool {
	if len(a) == 0 {
		return false
	}
	votes := 0
	for _, i := range r.p.parts[partEnd] {
		acc := &r.l.Args[i]
		if r.p.kernel.Operands[i].Kind != codegen.Output {
			continue
		}
		if acc.Stride[a[len(a)-1]] == 1 {
			votes++
		}
		if len(b) > 0 && acc.Stride[b[len(b)-1]] == 1 {
			votes--
		}
	}
	return votes > 0 && len(b) > 0
}

// side chooses the direction in which the operands of a side are read in longer runs.
func (r *ready) side(part int, own []int, alongK bool) dotView {
	k := r.dot.k
	votes := int64(0)
	for _, i := range r.p.parts[part] {
		acc := &r.l.Args[i]
		votes += r.run(acc, k) - r.run(acc, own)
	}
	if votes > 0 || votes == 0 && alongK {
		v := r.view(part, own, k)
		v.alongK = true
		return v
	}
	return r.view(part, k, own)
}

// run returns how many neighbouring elements an access reads along dims, at most 64.
func (r *ready) run(acc *runtime.Access, dims []int) int64 {
	const enough = 64
	n := int64(1)
	for i := len(dims) - 1; i >= 0 && len(acc.Stages) == 0 && acc.Stride[dims[i]] == n; i-- {
		n *= r.l.Dims[dims[i]]
	}
	return min(n, enough)
}

func (r *ready) view(part int, outer, inner []int) dotView {
	v := dotView{part: part, outer: r.count(outer), inner: r.count(inner)}
	r.group(&v, r.dot.batch)
	v.lead = v.rank
	for _, dims := range [][]int{outer, inner} {
		v.innerAt = v.rank
		if r.group(&v, dims); v.rank == v.innerAt {
			v.dim[v.rank], v.size[v.rank] = noDim, 1
			v.rank++
		}
	}
	v.flat = v.rank == v.lead+2 && !r.guards(&v)
	return v
}

// group appends dims to a view and merges neighbours where possible.
func (r *ready) group(v *dotView, dims []int) {
	first := v.rank
	for _, d := range dims {
		if v.rank > first && r.joins(v.part, v.dim[v.rank-1], d) {
			v.rank--
			v.size[v.rank] *= r.l.Dims[d]
		} else {
			v.size[v.rank] = r.l.Dims[d]
		}
		v.dim[v.rank] = d
		v.rank++
	}
}

// joins reports that, for all operands of a part, one step along dim outer is a step over the
// whole of dim inner.
func (r *ready) joins(part, outer, inner int) bool {
	for _, i := range r.p.parts[part] {
		acc := &r.l.Args[i]
		if acc.Stride[outer] != acc.Stride[inner]*r.l.Dims[inner] {
			return false
		}
	}
	return true
}

// stride returns the stride of an operand along place d of a view.
func (v *dotView) stride(acc *runtime.Access, d int) int64 {
	if v.dim[d] == noDim {
		return 0
	}
	return acc.Stride[v.dim[d]]
}

// viewGuard returns the guard of an output in the places of a view.
func (r *ready) viewGuard(v *dotView, i int) uint32 {
	if v.part != partEnd || r.p.kernel.Operands[i].Kind != codegen.Output {
		return 0
	}
	var g uint32
	for d := range v.rank {
		if v.size[d] > 1 && v.stride(&r.l.Args[i], d) == 0 {
			g |= 1 << d
		}
	}
	return g
}

// guards reports that a part has a guarded output: one in which not every result is stored.
func (r *ready) guards(v *dotView) bool {
	for _, i := range r.p.parts[v.part] {
		if r.viewGuard(v, i) != 0 {
			return true
		}
	}
	return false
}

// tempStride returns the stride of the result, a row of a tile, along place d.
func (v *dotView) tempStride(d int) int64 {
	if d < v.innerAt {
		return 0
	}
	dense := int64(1)
	for _, n := range v.size[d+1 : v.rank] {
		dense *= n
	}
	return dense
}

// inMemory returns the operand that a flat side is read from unchanged, or -1. plan is the plan
// that runs.
func (r *ready) inMemory(v *dotView, plan *phasePlan) int {
	if !v.flat {
		return -1
	}
	return r.walked(v, plan)
}

// walked does the same as inMemory for a side whose groups may have several dims.
func (r *ready) walked(v *dotView, plan *phasePlan) int {
	ph := plan.Phases[v.part].Kernel
	if len(ph.Body) != 1 || ph.Body[0].Op != ir.Load || ph.Body[0].Args[0] != ir.None {
		return -1
	}
	slot := int(uint32(ph.Body[0].Imm))
	if len(r.l.Args[slot].Stages) > 0 {
		return -1
	}
	return slot
}

// sink returns the operand that takes the results unchanged, or -1.
func (r *ready) sink(plan *phasePlan) int {
	v := &r.dot.views[2]
	slot := r.walkedSink(plan)
	if slot < 0 || !v.flat || v.inner != 1 && v.stride(&r.l.Args[slot], v.rank-1) != 1 {
		return -1
	}
	return slot
}

// walkedSink does the same as sink for results that are stored along several dims, whose elements
// need not be neighbours.
func (r *ready) walkedSink(plan *phasePlan) int {
	v := &r.dot.views[2]
	ph := plan.Phases[partEnd].Kernel
	if len(ph.Body) != 1 || ph.Body[0].Op != ir.Load || len(ph.Stores) != 1 || r.guards(v) {
		return -1
	}
	slot := ph.Stores[0].Operand
	if int(uint32(ph.Body[0].Imm)) != len(r.l.Args) || len(r.l.Args[slot].Stages) > 0 {
		return -1
	}
	return slot
}

// plain reports a contraction from memory to memory: no phase is evaluated.
func (r *ready) plain() bool {
	plan := r.sched.plan
	return r.dot != nil && r.walked(&r.dot.views[0], plan) >= 0 && r.walked(&r.dot.views[1], plan) >= 0 && r.walkedSink(plan) >= 0
}

// short reports that the rows of results are short enough to be put together, see shortRow.
func (v *dotView) short() bool {
	return v.part == partEnd && v.flat && v.inner <= shortRow && v.outer >= shortRows
}

// along returns the dim along which a phase's points are neighbours. Rows of one point are treated
// as one row.
func (v *dotView) along() int {
	if v.short() && v.inner == 1 {
		return v.rank - 2
	}
	return v.rank - 1
}

// dotKey is the classKey of a contraction.
func (r *ready) dotKey() classKey {
	key := classKey{dot: true}
	for n := range r.dot.views {
		v := &r.dot.views[n]
		last := v.along()
		for i := range r.l.Args {
			acc := runtime.Access{Stages: r.l.Args[i].Stages}
			acc.Stride[0] = v.stride(&r.l.Args[i], last)
			c := codegen.Classify(&acc, 0, v.size[last])
			setClass([]*[maxOperands / 32]uint64{&key.points, &key.second, &key.rows}[v.part], i, c)
			if r.viewGuard(v, i)&^(1<<last) != 0 {
				key.guarded[1] = true
			}
		}
	}
	return key
}

// phaseWork returns the cost of evaluating a point of a phase, in multiplications of the engine.
func (r *ready) phaseWork(part int) int64 { return 8 * int64(r.sched.tier0[part].Work()) }
