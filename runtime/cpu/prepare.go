package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/replay"
	"github.com/millrace-go/millrace/runtime/cpu/internal/scatter"
)

// ready is a launch that can run: checked, its order chosen, its code found.
type ready struct {
	l       *runtime.Launch
	p       *program
	sched   *schedule
	code    *compiled   // nil: tier 0
	lacks   *variant    // whose machine code must be made before the launch runs
	total   int64       // number of points
	outputs int64       // number of points of the kept dims
	index   int         // in the list of the Run
	wave    int32       // launches of one wave run at the same time; 0: runs alone
	fault   *indexFault // of the executor
	empty   bool        // there is nothing to do
	rowOrder
	dot     *dotOrder // for a contraction
	packed  packedSide
	mask    seenMask
	tails   rowTails
	scatter *scatter.Order // for a scatter
	transposed
	kept *replay.Launch // for a prepared list, else nil
	tape *tape          // set while the launch is recorded
}

// packedSide says that the next tile of a chain multiplies by the same side y, which then stays
// packed.
type packedSide struct {
	side *contract.Packed // nil: not kept
	same bool             // same y as in the previous tile
}

// plan returns the plan of the phases that will run.
func (r *ready) plan() *phasePlan {
	if r.code != nil {
		return r.code.phasePlan
	}
	return r.sched.plan
}

// prepareFor checks a launch and chooses how it runs on at most threads threads.
func (d *device) prepareFor(l *runtime.Launch, threads int64) (ready, error) {
	r, err := d.order(l, threads)
	if err != nil || r.empty {
		return r, err
	}
	d.account(&r)
	d.choose(&r)
	if r.lacks != nil {
		d.makeMachine(r.lacks)
		d.settle(&r)
	}
	return r, nil
}

// order checks a launch and chooses the order in which it runs.
func (d *device) order(l *runtime.Launch, threads int64) (ready, error) {
	r := ready{l: l}
	p, ok := l.Prog.(*program)
	if !ok || p.dev != d {
		return r, fmt.Errorf("the program belongs to another device")
	}
	r.p = p
	if err := r.check(); err != nil {
		return r, err
	}
	r.total, r.outputs, r.sched = 1, 1, p.sched
	for i, n := range l.Dims[:l.Rank] {
		r.total *= n
		if i < l.Kept {
			r.outputs *= n
		}
	}
	if r.outputs == 0 || r.total == 0 && !p.hasRows {
		r.empty = true
		return r, nil
	}
	r.threads = min(r.total*p.perItem/threadBytes+1, threads)
	switch {
	case p.parts != nil:
		if err := r.orderDot(); err != nil {
			return r, err
		}
	case p.scatter != nil:
		r.orderScatter()
	case p.hasRows:
		r.orderRows()
	default:
		r.orderTransposed()
		r.orderSwapped()
	}
	return r, nil
}

// threadBytes is the work, in bytes touched, that pays for one more thread: waking a thread and
// waiting for it costs a few microseconds.
const threadBytes = 64 << 10

func (r *ready) check() error {
	l, k := r.l, r.p.kernel
	switch {
	case len(l.Args) != len(k.Operands):
		return fmt.Errorf("the launch has %d args, the kernel has %d operands", len(l.Args), len(k.Operands))
	case len(l.Scalars) != len(k.Scalars):
		return fmt.Errorf("the launch has %d scalars, the kernel has %d", len(l.Scalars), len(k.Scalars))
	case l.Rank < 0 || l.Rank > runtime.MaxRank || l.Kept < 0 || l.Kept > l.Rank:
		return fmt.Errorf("a launch has rank %d and %d kept dims", l.Rank, l.Kept)
	case !r.p.hasRows && l.Kept != l.Rank:
		return fmt.Errorf("the launch has %d reduced dims, but the kernel reduces nothing", l.Rank-l.Kept)
	case r.p.hasRows && r.p.parts == nil && r.p.scatter == nil && l.Kept == l.Rank:
		return fmt.Errorf("the launch has no reduced dim, but the kernel reduces rows")
	}
	for i := range l.Args {
		if r.p.kernel.Operands[i].Row {
			for d := l.Kept; d < l.Rank; d++ {
				if l.Args[i].Stride[d] != 0 {
					return fmt.Errorf("operand %d has a value per row, but moves along the reduced dim %d", i, d)
				}
			}
		}
		if k.Operands[i].Kind == codegen.Index {
			continue
		}
		b, ok := l.Args[i].Buf.(*memory.Buffer)
		if !ok {
			return fmt.Errorf("the buffer of operand %d does not belong to this device", i)
		}
		if r.p.lanewise[i] {
			continue // reads are checked element by element
		}
		lo, hi := r.reach(i)
		if lo <= hi && (lo < 0 || hi >= b.Bytes()/int64(k.Operands[i].DT.Size())) {
			return fmt.Errorf("operand %d reaches from element %d to %d, past its buffer of %d bytes", i, lo, hi, b.Bytes())
		}
	}
	return nil
}

// reach returns the lowest and the highest element that operand i may touch; lo is above hi if it
// touches none.
func (r *ready) reach(i int) (lo, hi int64) {
	if s := r.p.scatter; s != nil && (i == s.From || i == s.To) { // indices address its rows
		return rowReach(&r.l.Args[i], r.l.Dims[:r.l.Kept])
	}
	return reach(&r.l.Args[i], r.l.Dims[:r.l.Rank])
}

// reach returns the lowest and the highest element that an access may touch; lo is above hi if it
// touches none.
func reach(a *runtime.Access, dims []int64) (lo, hi int64) {
	lo, hi = bounds(a.Offset, dims, a.Stride[:len(dims)])
	for i := range a.Stages {
		if lo > hi {
			break
		}
		s := &a.Stages[i]
		lo, hi = bounds(s.Offset, s.Dims, s.Stride)
	}
	return lo, hi
}

func bounds(off int64, dims, stride []int64) (lo, hi int64) {
	lo, hi = off, off
	for i, n := range dims {
		if n == 0 {
			return 0, -1
		}
		if step := stride[i] * (n - 1); step < 0 {
			lo += step
		} else {
			hi += step
		}
	}
	return lo, hi
}

// guard returns a word with bit d set if, along place d, only the output's points at position 0
// store. Where rows are stored, a row counts as a point.
func (r *ready) guard(i int) uint32 {
	l, o := r.l, &r.p.kernel.Operands[i]
	if o.Kind != codegen.Output || r.p.total(i) {
		return 0
	}
	var g uint32
	for d := range l.Rank {
		dim := r.dim(d)
		if l.Args[i].Stride[dim] == 0 && l.Dims[dim] > 1 && !(o.Row && dim >= l.Kept) {
			g |= 1 << d
		}
	}
	return g
}

// classKey returns the access classes of the launch in the order in which it runs.
func (r *ready) classKey() classKey {
	if r.dot != nil {
		return r.dotKey()
	}
	key := classKey{cols: r.mode == modeCols}
	l := r.l
	inner, n := r.innermost(l.Rank)
	rowInner, rows := inner, n // for phases over rows
	if r.mode == modeRows {
		rowInner, rows = r.innermost(l.Kept)
	}
	for i, o := range r.p.kernel.Operands {
		if !o.Row || o.Kind != codegen.Output {
			class := codegen.Classify(&l.Args[i], inner, n)
			if r.transposed.has(i) {
				class = codegen.Contiguous
			}
			setClass(&key.points, i, class)
		}
		if r.p.hasRows && o.Row { // the operands that phases over rows touch
			setClass(&key.rows, i, codegen.Classify(&l.Args[i], rowInner, rows))
		}
		g := r.guard(i)
		if o.Row {
			key.guarded[1] = key.guarded[1] || g&^(1<<max(r.rowRank()-1, 0)) != 0
		} else {
			key.guarded[0] = key.guarded[0] || g&^(1<<max(l.Rank-1, 0)) != 0
		}
	}
	return key
}

// innermost returns the last of the first rank places, as a dim of the launch, and its size; 0 and
// 1 if there is none.
func (r *ready) innermost(rank int) (dim int, n int64) {
	if rank == 0 {
		return 0, 1
	}
	dim = r.dim(rank - 1)
	return dim, r.l.Dims[dim]
}

// rowRank is the number of places of a phase over rows.
func (r *ready) rowRank() int {
	if r.mode == modeCols {
		return r.l.Rank
	}
	return r.l.Kept
}

// choose finds compiled code, or starts its compile. If machine code must be made first, the launch
// lacks a variant, and waits for settle.
func (d *device) choose(r *ready) {
	if r.plain() {
		return // there is nothing to compile
	}
	if !d.runsCode(r) {
		d.interpreted(r)
		return
	}
	key := r.classKey()
	v := r.sched.variantFor(&key)
	if r.code = v.code.Load(); r.code != nil {
		return
	}
	r.lacks = v
	if r.l.Copies {
		// The interpreter copies whole rows.
	} else if d.machine {
		if d.wantsMachine(v, r.total*r.p.perItem, r.l.Provisional) {
			return
		}
	} else if d.comp != nil {
		_, has := r.otherwise()
		d.wantC(v, r.total*r.p.perItem, r.l.Provisional, !has && (d.waitsForCode() && !r.oneShort() || r.longInterpreted()))
	}
	d.settle(r)
}

// settle takes the code that exists now: of the variant that the launch lacked, of the other order of
// rows, or none.
func (d *device) settle(r *ready) {
	v := r.lacks
	r.lacks = nil
	other, has := r.otherwise()
	switch r.code = v.code.Load(); {
	case r.code != nil:
	case has:
		*r = other
	default:
		d.interpreted(r)
		if v.failed.Load() {
			d.count.fallbacks.Add(1)
		}
	}
}

// runsCode reports that a launch may run compiled code.
func (d *device) runsCode(r *ready) bool {
	switch {
	case d.cfg.Tier < 0:
		return false
	case d.machine:
		return !r.p.soft || jit.Flushes()
	}
	return d.runsC(r.p.kernel.Denormals)
}

// interpreted counts a launch in tier 0.
func (d *device) interpreted(r *ready) {
	d.count.tier0.Add(1)
	r.p.interpreted.Add(1)
	if !r.l.Copies {
		d.count.tier0Points.Add(r.interpretedPoints())
	}
}
