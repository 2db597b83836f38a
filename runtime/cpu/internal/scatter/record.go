package scatter

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// Recorded work between evaluations. Each kind has its own function: its closure then only takes
// memory if it is recorded.

func distances(at []int64) operands.Pointer {
	return operands.Own(unsafe.Pointer(unsafe.SliceData(at)))
}

func (w *walk) recordNote(x indexRange, n int64) {
	operand := w.s.To
	w.s.Recorder.Check(func(p *operands.Pointers, fault *operands.IndexFault) { x.note(fault, operand, p[0], n) }, operands.Own(w.indices))
}

func (w *walk) recordResolve(x indexRange, at []int64) {
	n := int64(len(at))
	w.s.Recorder.Do(func(p *operands.Pointers) { x.resolve(memory.Elements[int64](p[0], n), p[1]) }, distances(at), operands.Own(w.indices))
}

func (w *walk) recordEach(at []int64, step int64, values unsafe.Pointer) {
	n, joins := int64(len(at)), w.s.joins
	w.s.Recorder.Do(func(p *operands.Pointers) { joins.Each(p[0], memory.Elements[int64](p[1], n), step, p[2]) },
		operands.Pointer{P: w.base, Operand: w.s.To}, distances(at), operands.Pointer{P: values, Operand: w.s.Values})
}

func (w *walk) recordAlong(j fold.Neighbours, at []int64, step int64, values unsafe.Pointer) {
	n := int64(len(at))
	w.s.Recorder.Do(func(p *operands.Pointers) { j.Join(p[0], memory.Elements[int64](p[1], n), step, p[2], p[3]) },
		operands.Pointer{P: w.base, Operand: w.s.To}, distances(at), operands.Pointer{P: values, Operand: w.s.Values}, operands.Own(w.frame))
}

// recordRows records the copy of rows of the operand to the output.
func (s *Job) recordRows(begin, end int64) {
	if s.Recorder == nil {
		return
	}
	c := s.copying
	s.Recorder.Do(func(p *operands.Pointers) {
		c.dst, c.src = p[0], p[1]
		c.rows(begin, end)
	}, operands.Pointer{P: c.dst, Operand: s.To}, operands.Pointer{P: c.src, Operand: s.From})
}

// recordBytes records the copy of bytes of the operand to the output.
func (s *Job) recordBytes(begin, end int64) {
	if s.Recorder == nil {
		return
	}
	n := end - begin
	s.Recorder.Do(func(p *operands.Pointers) { memory.Copy(p[0], p[1], n) },
		operands.Pointer{P: unsafe.Add(s.copying.dst, begin), Operand: s.To}, operands.Pointer{P: unsafe.Add(s.copying.src, begin), Operand: s.From})
}
