package cpu

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A chain's contraction may be asked for results that nobody sees: scores that
// the next launch multiplies by a number and adds a mask to, where the mask is
// -inf. Whatever finite number the score is, the sum is -inf. So such a score
// need not be computed, as long as it is known that neither it nor the product
// would have been infinite or NaN: the contraction looks at its operands.

// chainMask says which operand of the launch behind a contraction is such a
// mask.
type chainMask struct {
	found        bool
	result, mask int // operands of the next launch
}

// seenMask is the part of a mask that belongs to the results of a contraction,
// in memory; none where at is nil.
type seenMask struct {
	at    unsafe.Pointer
	rows  int64
	row   int64          // elements from one row to the next
	tails unsafe.Pointer // an int64 for each row, see tails
}

// maskRoom is what the factors between a contraction and its mask may multiply
// by: small sums, which are below 2^89, stay finite.
const maskRoom = 0x1p38

// masksOf finds, for each launch of a chain, the mask over its results.
func masksOf(ls []runtime.Launch) []chainMask {
	n := ls[0].Chain.N
	masks := make([]chainMask, n)
	for i := range n - 1 {
		if p, ok := ls[i].Prog.(*program); ok && p.parts != nil {
			masks[i] = maskBehind(ls[:n], i)
		}
	}
	return masks
}

// maskBehind finds the mask over the results of launch i, which nobody but the
// launch behind it must read.
func maskBehind(ls []runtime.Launch, i int) (m chainMask) {
	local := 0
	for _, slot := range outputsOf(&ls[i]) {
		if local != 0 || ls[i].Args[slot].Local == 0 {
			return m
		}
		local = ls[i].Args[slot].Local
	}
	next, ok := ls[i+1].Prog.(*program)
	if !ok || local == 0 {
		return m
	}
	m.result = -1
	for j := range ls[i+1:] {
		l := &ls[i+1+j]
		for slot := range l.Args {
			if l.Args[slot].Local != local {
				continue
			}
			reads := l.Prog.(*program).kernel.Operands[slot].Kind == codegen.Input
			switch {
			case j == 0 && reads && m.result < 0:
				m.result = slot
			case j == 0 && reads, j > 0 && reads && !rewrites(&ls[i+1], local):
				return m
			}
		}
	}
	if m.result < 0 {
		return m
	}
	m.mask, m.found = maskedBy(next.kernel, m.result, ls[i+1].Scalars)
	m.found = m.found && ls[i+1].Args[m.mask].Local == 0
	return m
}

// rewrites reports a launch that hands on another result in a local memory.
func rewrites(l *runtime.Launch, local int) bool {
	for _, slot := range outputsOf(l) {
		if l.Args[slot].Local == local {
			return true
		}
	}
	return false
}

// maskedBy follows what a kernel does with an operand, and finds the operand that
// is added to it after nothing but multiplications by numbers.
func maskedBy(k *codegen.Kernel, operand int, scalars []uint64) (mask int, found bool) {
	at := ir.None
	for i, in := range k.Body {
		if in.Op == ir.Load && int(uint32(in.Imm)) == operand {
			if at != ir.None || in.Args[0] != ir.None {
				return 0, false
			}
			at = ir.Ref(i)
		}
	}
	if at == ir.None {
		return 0, false
	}
	factor := 1.0
	for {
		user, ok := onlyUse(k, at)
		if !ok {
			return 0, false
		}
		in := &k.Body[user]
		if in.DT != k.Body[at].DT {
			return 0, false
		}
		var other ir.Ref
		switch {
		case in.Op == ir.Neg:
			at = user
			continue
		case in.Op != ir.Mul && in.Op != ir.Div && in.Op != ir.Add:
			return 0, false
		case in.Args[0] == at:
			other = in.Args[1]
		case in.Op == ir.Div:
			return 0, false
		default:
			other = in.Args[0]
		}
		o := &k.Body[other]
		if in.Op == ir.Add {
			plain := o.Op == ir.Load && o.Args[0] == ir.None && o.DT == in.DT
			return int(uint32(o.Imm)), plain && factor <= maskRoom
		}
		f, ok := finiteNumber(o, scalars)
		if !ok {
			return 0, false
		}
		if in.Op == ir.Div {
			f = 1 / f
		}
		// What makes the product larger stays below maskRoom even if what makes it
		// smaller comes last.
		factor = float64(factor * max(math.Abs(f), 1))
		at = user
	}
}

// onlyUse is the one instruction that takes a value, if nothing else does.
func onlyUse(k *codegen.Kernel, v ir.Ref) (user ir.Ref, ok bool) {
	uses := 0
	for i, in := range k.Body {
		for _, a := range in.Args {
			if a == v {
				user = ir.Ref(i)
				uses++
			}
		}
	}
	for _, s := range k.Stores {
		if s.Value == v {
			uses++
		}
	}
	return user, uses == 1
}

// finiteNumber is the value of a scalar or constant, if it is a finite one of float32
// or float64.
func finiteNumber(in *ir.Instr, scalars []uint64) (float64, bool) {
	var bits uint64
	switch in.Op {
	case ir.Scalar:
		bits = scalars[in.Imm]
	case ir.Const:
		bits = in.Imm
	default:
		return 0, false
	}
	f := math.Float64frombits(bits)
	switch in.DT {
	case ir.Float32:
		f = float64(math.Float32frombits(uint32(bits)))
	case ir.Float64:
	default:
		return 0, false
	}
	return f, !math.IsInf(f, 0) && !math.IsNaN(f)
}

// seen finds the part of a mask that lies over the results of launch i of a
// tile, which is r. The launch behind it is as the chain has it: its dims are not
// merged yet.
func (s *solo) seen(m chainMask, i int, r *ready, whole *runtime.Launch, lead int) (none seenMask) {
	plan := r.plan()
	slot := r.sink(plan)
	if !m.found || slot < 0 || r.dot.batches != 1 {
		return none
	}
	l, size := &s.tile[i+1], int64(plan.Temps[0].DT.Size())
	out, mask := &r.l.Args[slot], &l.Args[m.mask]
	v, row, col := &r.dot.views[2], lead-1, noDim
	for d := lead; d < l.Rank; d++ {
		if l.Dims[d] > 1 {
			if col != noDim {
				return none
			}
			col = d
		}
	}
	switch {
	case col == noDim || len(mask.Stages) > 0 || len(l.Args[m.result].Stages) > 0:
		return none
	case l.Dims[row] != r.dot.m || l.Dims[col] != r.dot.n:
		return none
	case mask.Stride[col] != 1 || l.Args[m.result].Stride[col] != 1:
		return none
	case v.stride(out, v.lead) != s.pitch[whole.Args[slot].Local-1]/size:
		return none // rows are not those of the next launch
	}
	tails := s.tails.p
	for i := range r.dot.m {
		unsafe.Slice((*int64)(tails), r.dot.m)[i] = r.dot.n // nothing is left out, until the contraction says so
	}
	return seenMask{unsafe.Add(mask.Buf.(*buffer).p, mask.Offset*size), r.dot.m, mask.Stride[row], tails}
}

// rowTails are what a launch behind a masked contraction knows of its rows: from
// tails[i] on all points of row i have one score and one mask, and so all that a
// phase computes from them is the same.
type rowTails struct {
	at           unsafe.Pointer // an int64 for each row; nil where nothing is known
	result, mask int            // the operands that are the same
}

// tailsOf passes them on to the launch behind a contraction.
func (r *ready) tailsOf(m chainMask, seen seenMask) {
	if seen.at != nil && r.dot == nil && r.mode == modeRows && !r.split && r.outputs == seen.rows && r.l.Rank == r.l.Kept+1 {
		r.tails = rowTails{seen.tails, m.result, m.mask}
	}
}

// even reports a phase that computes the same at all points of a row's tail, and
// folds it by an op that a value can be given to twice.
func (r *ready) even(ph *codegen.Phase) bool {
	if r.tails.at == nil || ph.Level != codegen.Point {
		return false
	}
	inner := r.l.Rank - 1
	for _, in := range ph.Body {
		switch in.Op {
		case ir.LoadAt, ir.IndexLo, ir.IndexHi:
			return false
		case ir.Load:
			slot := int(uint32(in.Imm))
			known := slot >= len(r.l.Args) || slot == r.tails.result || slot == r.tails.mask ||
				r.l.Args[slot].Stride[inner] == 0 && len(r.l.Args[slot].Stages) == 0
			if !known || in.Args[0] != ir.None {
				return false
			}
		}
	}
	for _, red := range ph.Reduces {
		dt := ph.Body[red.Value].DT
		if red.Op != ir.Sum && red.Op != ir.Max && red.Op != ir.Min || dt != ir.Float32 && dt != ir.Float64 {
			return false
		}
	}
	for _, st := range ph.Stores {
		if st.Operand < len(r.l.Args) && (r.l.Args[st.Operand].Stride[inner] != 1 || len(r.l.Args[st.Operand].Stages) > 0) {
			return false
		}
	}
	return true
}
