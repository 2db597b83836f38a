package cpu

import (
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A chain's contraction may be asked for results that nobody sees: scores that
// the next launch adds -inf to, or puts another number in the place of. Such a
// score need not be computed: zeros stand for them. Where the mask is added that
// holds of small finite scores only, so the contraction looks at its operands.

// seenMask is the part of a mask that belongs to the results of a contraction,
// in memory; none where at is nil.
type seenMask struct {
	at     unsafe.Pointer
	rows   int64
	row    int64 // elements from one row to the next
	kind   maskKind
	small  bool
	plain  bool           // it is the operand of the next launch that hides them
	tails  unsafe.Pointer // an int64 for each row, see rowTails
	hidden unsafe.Pointer // the int64 that results which are left out are counted in
	spans  maskSpans
}

// masksOf finds, for each launch of a chain, what hides its results from the
// others; nil where nothing does.
func (d *device) masksOf(ls []runtime.Launch) []*hiding {
	n := ls[0].Chain.N
	masks := make([]*hiding, n)
	for i := range n - 1 {
		if p, ok := ls[i].Prog.(*program); ok && p.parts != nil && p.contractsInTiles() {
			masks[i] = maskBehind(ls[:n], i)
		}
	}
	return masks
}

// maskBehind finds what hides the results of launch i, which nobody but the
// launch behind it must read.
func maskBehind(ls []runtime.Launch, i int) *hiding {
	local := 0
	for _, slot := range outputsOf(&ls[i]) {
		if local != 0 || ls[i].Args[slot].Local == 0 {
			return nil
		}
		local = ls[i].Args[slot].Local
	}
	next, ok := ls[i+1].Prog.(*program)
	if !ok || local == 0 {
		return nil
	}
	result := -1
	for j := range ls[i+1:] {
		l := &ls[i+1+j]
		for slot := range l.Args {
			if l.Args[slot].Local != local {
				continue
			}
			reads := l.Prog.(*program).kernel.Operands[slot].Kind == codegen.Input
			switch {
			case j == 0 && reads && result < 0:
				result = slot
			case j == 0 && reads, j > 0 && reads && !rewrites(&ls[i+1], local):
				return nil
			}
		}
	}
	if result < 0 {
		return nil
	}
	h := next.hides.of(next, result, ls[i+1].Scalars)
	if h == nil || slices.ContainsFunc(h.reads, func(slot int) bool { return ls[i+1].Args[slot].Local > 0 }) {
		return nil
	}
	return h
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

// seen finds the part of a mask that lies over the results of launch i of a
// tile, which is r, and has it computed where it does not lie in memory. The
// launch behind it is as the chain has it: its dims are not merged yet.
func (s *solo) seen(h *hiding, i int, r *ready, whole *runtime.Launch, lead int) (m seenMask, err error) {
	plan := r.plan()
	slot := r.sink(plan)
	if h == nil || slot < 0 || r.dot.batches != 1 {
		return m, nil
	}
	l, size := &s.tile[i+1], int64(plan.Temps[0].DT.Size())
	out, result := &r.l.Args[slot], &l.Args[h.operand]
	v, row, col := &r.dot.views[2], lead-1, columnOf(l, lead)
	switch {
	case col == noDim || len(result.Stages) > 0 || result.Stride[col] != 1:
		return m, nil
	case l.Dims[row] != r.dot.m || l.Dims[col] != r.dot.n:
		return m, nil
	case v.stride(out, v.lead) != s.pitch[whole.Args[slot].Local-1]/size:
		return m, nil // rows are not those of the next launch
	}
	m = seenMask{rows: r.dot.m, kind: h.kind, small: h.small, tails: s.tails.p, hidden: unsafe.Pointer(s.hidden())}
	if h.inPlace(l, col) {
		mask := &l.Args[h.mask]
		elem := int64(l.Prog.(*program).kernel.Operands[h.mask].DT.Size())
		m.at, m.row, m.plain = unsafe.Add(mask.Buf.(*buffer).p, mask.Offset*elem), mask.Stride[row], true
		m.spans = s.spans
	} else {
		m.kind, m.row = maskTrue, r.dot.n
		if m.at, err = s.compute(r.p.dev, &s.masks[i], h, l, row, col); m.at == nil {
			return seenMask{}, err
		}
	}
	for i := range m.rows {
		unsafe.Slice((*int64)(m.tails), m.rows)[i] = r.dot.n // nothing is left out, until the contraction says so
	}
	return m, nil
}

// rowTails are what a launch behind a masked contraction knows of its rows: from
// tails[i] on all points of row i have one score and one mask, and so all that a
// phase computes from them is the same.
type rowTails struct {
	at           unsafe.Pointer // an int64 for each row; nil where nothing is known
	result, mask int            // the operands that are the same
}

// tailsOf passes them on to the launch behind a contraction.
func (r *ready) tailsOf(h *hiding, seen seenMask) {
	if seen.plain && r.dot == nil && r.mode == modeRows && !r.split && r.outputs == seen.rows && r.l.Rank == r.l.Kept+1 {
		r.tails = rowTails{seen.tails, h.operand, h.mask}
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
