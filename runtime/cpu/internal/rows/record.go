package rows

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Recorded folds between calls of machine code. Each kind has its own function: its closure then
// only takes memory if it is recorded.

func recordStart(r operands.Recorder, f *fold.Folder, acc unsafe.Pointer) {
	r.Do(func(p *operands.Pointers) { f.Start(p[0]) }, operands.Own(acc))
}

// recordAdd records a folder's Add; the values may be in an operand.
func recordAdd(rec operands.Recorder, f *fold.Folder, acc, values unsafe.Pointer, operand int, r, m, n, ld int64) {
	rec.Do(func(p *operands.Pointers) { f.Add(p[0], p[1], r, m, n, ld) }, operands.Own(acc), operands.Pointer{P: values, Operand: operand})
}

func recordFinish(r operands.Recorder, f *fold.Folder, acc unsafe.Pointer, elements, n int64) {
	r.Do(func(p *operands.Pointers) { f.Finish(p[0], elements, n) }, operands.Own(acc))
}

func recordCombine(r operands.Recorder, f *fold.Folder, total, block unsafe.Pointer, n int64) {
	r.Do(func(p *operands.Pointers) { f.Combine(p[0], p[1], n) }, operands.Own(total), operands.Own(block))
}

func recordResult(r operands.Recorder, f *fold.Folder, out unsafe.Pointer, size int64, total unsafe.Pointer, n int64) {
	r.Do(func(p *operands.Pointers) { f.Result(p[0], size, p[1], n) }, operands.Own(out), operands.Own(total))
}

func recordColumns(r operands.Recorder, f *fold.Folder, out, acc, values unsafe.Pointer, operand int, m, n, ld int64) {
	r.Do(func(p *operands.Pointers) { f.Columns(p[0], p[1], p[2], m, n, ld) }, operands.Own(out), operands.Own(acc), operands.Pointer{P: values, Operand: operand})
}

func recordRows(r operands.Recorder, f *fold.Folder, out unsafe.Pointer, outStep int64, values unsafe.Pointer, operand int, step, m, n int64) {
	r.Do(func(p *operands.Pointers) { f.Rows(p[0], outStep, p[1], step, m, n) }, operands.Own(out), operands.Pointer{P: values, Operand: operand})
}
