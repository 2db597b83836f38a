package cpu

import "unsafe"

// Recorded work of scatters between evaluations: see kept_do.go.

func (t *tape) noteIndices(x indexRange, operand int, indices unsafe.Pointer, n int64) {
	k := t.k
	t.do(func(p *[keptPointers]unsafe.Pointer) { x.note(k.fault, operand, p[0], n) }, tapePointer{indices, noOperand})
}

// stop marks that the launch ends here if an index was out of range: nothing is written then.
func (t *tape) stop() {
	if t != nil && !t.lost {
		t.k.steps[len(t.k.steps)-1].stops = true
	}
}

func (t *tape) resolveIndices(x indexRange, at []int64, indices unsafe.Pointer) {
	n := int64(len(at))
	t.do(func(p *[keptPointers]unsafe.Pointer) { x.resolve(elements[int64](p[0], n), p[1]) },
		tapePointer{unsafe.Pointer(unsafe.SliceData(at)), noOperand}, tapePointer{indices, noOperand})
}

func (t *tape) joinEach(joins *scatterJoins, base unsafe.Pointer, to int, at []int64, step int64, values unsafe.Pointer, of int) {
	n := int64(len(at))
	t.do(func(p *[keptPointers]unsafe.Pointer) { joins.each(p[0], elements[int64](p[1], n), step, p[2]) },
		tapePointer{base, to}, tapePointer{unsafe.Pointer(unsafe.SliceData(at)), noOperand}, tapePointer{values, of})
}

func (t *tape) joinAlong(j neighbourJoin, base unsafe.Pointer, to int, at []int64, step int64, values unsafe.Pointer, of int, frame unsafe.Pointer) {
	n := int64(len(at))
	t.do(func(p *[keptPointers]unsafe.Pointer) { j.join(p[0], elements[int64](p[1], n), step, p[2], p[3]) },
		tapePointer{base, to}, tapePointer{unsafe.Pointer(unsafe.SliceData(at)), noOperand}, tapePointer{values, of}, tapePointer{frame, noOperand})
}

// copyApart records the copy of rows of the operand to the output.
func (t *tape) copyApart(c rowCopy, to, from int, begin, end int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) {
		c.dst, c.src = p[0], p[1]
		c.rows(begin, end)
	}, tapePointer{c.dst, to}, tapePointer{c.src, from})
}
