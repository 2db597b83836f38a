package cpu

import "unsafe"

// Recorded Go work between calls of machine code. Each kind has its own function: its closure then
// only takes memory if it is recorded.

func (t *tape) start(f *folder, acc unsafe.Pointer) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { f.start(p[0]) }, tapePointer{acc, noOperand})
}

// fold records a folder's add; the values may be in an operand.
func (t *tape) fold(f *folder, acc, values unsafe.Pointer, operand int, r, m, n, ld int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { f.add(p[0], p[1], r, m, n, ld) }, tapePointer{acc, noOperand}, tapePointer{values, operand})
}

func (t *tape) finish(f *folder, acc unsafe.Pointer, elements, n int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { f.finish(p[0], elements, n) }, tapePointer{acc, noOperand})
}

func (t *tape) combine(f *folder, total, block unsafe.Pointer, n int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { f.combine(p[0], p[1], n) }, tapePointer{total, noOperand}, tapePointer{block, noOperand})
}

func (t *tape) result(f *folder, out unsafe.Pointer, size int64, total unsafe.Pointer, n int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { f.result(p[0], size, p[1], n) }, tapePointer{out, noOperand}, tapePointer{total, noOperand})
}

func (t *tape) foldColumns(f *folder, out, acc, values unsafe.Pointer, operand int, m, n, ld int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { f.columns(p[0], p[1], p[2], m, n, ld) },
		tapePointer{out, noOperand}, tapePointer{acc, noOperand}, tapePointer{values, operand})
}

func (t *tape) foldRows(f *folder, out unsafe.Pointer, outStep int64, values unsafe.Pointer, operand int, step, m, n int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { f.rows(p[0], outStep, p[1], step, m, n) }, tapePointer{out, noOperand}, tapePointer{values, operand})
}

// copyRows records the copy of rows of so many bytes between the thread's memory and an operand.
func (t *tape) copyRows(to unsafe.Pointer, toOperand int, toStep int64, from unsafe.Pointer, fromOperand int, fromStep, rows, bytes int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) {
		for r := range rows {
			copyMemory(unsafe.Add(p[0], r*toStep), unsafe.Add(p[1], r*fromStep), bytes)
		}
	}, tapePointer{to, toOperand}, tapePointer{from, fromOperand})
}

// turn records dotJob.turnSlowly for elements of size bytes.
func (t *tape) turn(size int64, dst unsafe.Pointer, dr, dc int64, src unsafe.Pointer, operand int, sr, sc, rows, cols int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { turnOf(size, p[0], dr, dc, p[1], sr, sc, rows, cols) }, tapePointer{dst, noOperand}, tapePointer{src, operand})
}

func (t *tape) zero(p unsafe.Pointer, ld, rows, n int64) {
	t.do(func(p *[keptPointers]unsafe.Pointer) { zero(p[0], ld, rows, n) }, tapePointer{p, noOperand})
}
