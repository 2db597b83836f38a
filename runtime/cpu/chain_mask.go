package cpu

import (
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// A contraction in a chain may produce results that are never used: scores to which the next
// launch adds -inf, or which it replaces by another number. Such scores need not be computed;
// zeros take their place. Where the mask is added, this is valid only for small finite scores, so
// the contraction then checks the size of its operands.

// seenMask is the part of a mask that belongs to the results of a contraction.
type seenMask struct {
	contract.Mask
	rows  int64
	plain bool // the mask is the operand itself of the next launch
}

// masksOf finds the mask that hides results, for each launch of a chain; nil where there is none.
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

// maskBehind finds the mask that hides the results of launch i. It returns nil unless the next
// launch is the only reader of these results.
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

// rewrites reports that a launch writes another result into a local memory.
func rewrites(l *runtime.Launch, local int) bool {
	for _, slot := range outputsOf(l) {
		if l.Args[slot].Local == local {
			return true
		}
	}
	return false
}

// seen finds the part of a mask that covers the results of launch i of a tile, which is r. If the
// mask is not in memory, seen arranges its computation. The dims of the next launch are not merged
// yet: they are those of the chain.
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
		return m, nil // its rows are not the rows of the next launch
	}
	m.Mask = contract.Mask{Kind: h.kind, Small: h.small, Tails: s.tails.P, Hidden: unsafe.Pointer(s.hidden())}
	m.rows = r.dot.m
	if h.inPlace(l, col) {
		mask := &l.Args[h.mask]
		elem := int64(l.Prog.(*program).kernel.Operands[h.mask].DT.Size())
		m.At, m.Row, m.plain = unsafe.Add(mask.Buf.(*memory.Buffer).P, mask.Offset*elem), mask.Stride[row], true
		m.Spans = s.spans
	} else {
		m.Kind, m.Row = contract.ByTrue, r.dot.n
		if m.At, err = s.compute(r.p.dev, &s.masks[i], h, l, row, col); m.At == nil {
			return seenMask{}, err
		}
	}
	for i := range m.rows {
		unsafe.Slice((*int64)(m.Tails), m.rows)[i] = r.dot.n // nothing is skipped until the contraction lowers this
	}
	return m, nil
}

// rowTails describes the rows of the launch after a masked contraction: from tails[i] on, all
// points of row i have the same score and the same mask value, so a phase computes the same from
// them.
type rowTails struct {
	at           unsafe.Pointer // an int64 for each row; nil if unknown
	result, mask int            // the operands that are constant from there on
}

// tailsOf sets r.tails from the mask of the contraction before r, where r can use it.
func (r *ready) tailsOf(h *hiding, seen seenMask) {
	if seen.plain && r.dot == nil && r.mode == modeRows && !r.split && r.outputs == seen.rows && r.l.Rank == r.l.Kept+1 {
		r.tails = rowTails{seen.Tails, h.operand, h.mask}
	}
}

// even reports that a phase computes the same value at all points of a row's tail, and folds it by
// sum, max or min of floats. Folding the same value again may then change nothing: see even.go in
// internal/rows.
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
