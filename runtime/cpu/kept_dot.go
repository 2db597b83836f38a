package cpu

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
)

// The recorded frames of contractions: their numbers of words, and the offsets of addresses.
const (
	tileWords      = int(unsafe.Sizeof(native.TileFrame{})) / 8
	alongWords     = int(unsafe.Sizeof(native.AlongFrame{})) / 8
	panelsWords    = int(unsafe.Sizeof(native.PanelsFrame{})) / 8
	transposeWords = int(unsafe.Sizeof(native.TransposeFrame{})) / 8

	panelsSrc = int(unsafe.Offsetof(native.PanelsFrame{}.Src))
	panelsDst = int(unsafe.Offsetof(native.PanelsFrame{}.Dst))
)

// tapeTile records the call of a function at an offset, on a TileFrame or on an AlongFrame, which
// begins with a TileFrame.
func (j *dotJob) tapeTile(offset int, frame unsafe.Pointer, words int) {
	var f native.TileFrame
	t := j.c.tape
	t.call(j.f.at(offset), j.mxcsr, frame, words,
		tapeAddress{int(unsafe.Offsetof(f.X)), j.x.operand}, tapeAddress{int(unsafe.Offsetof(f.Y)), j.y.operand},
		tapeAddress{int(unsafe.Offsetof(f.C)), j.c.to}, tapeAddress{int(unsafe.Offsetof(f.Acc)), noOperand})
	for i := 0; !t.lost && words == alongWords && i < int(j.lanes); i++ {
		t.address(int(unsafe.Offsetof(native.AlongFrame{}.Columns))+8*i, j.y.operand)
	}
}

// transposeRows calls the function of TransposeFrame. Its rows may be in an operand, or be the
// zeros of missing columns.
func (j *dotJob) transposeRows(f *native.TransposeFrame, operand int) {
	if t := j.c.tape; t != nil {
		t.call(j.f.at(j.f.Transpose), j.mxcsr, unsafe.Pointer(f), transposeWords, tapeAddress{int(unsafe.Offsetof(f.Dst)), noOperand})
		for i := 0; !t.lost && i < int(j.lanes); i++ {
			if at := uintptr(f.Rows[i]) - uintptr(unsafe.Pointer(&zeros)); at >= unsafe.Sizeof(zeros) {
				t.address(int(unsafe.Offsetof(f.Rows))+8*i, operand)
			}
		}
	}
	j.f.call(j.f.Transpose, unsafe.Pointer(f), j.mxcsr)
}

// walk records a copy between a block and memory that dims walk over.
func (t *tape) walk(w walked, memory unsafe.Pointer, f *dotCode, o walkOver, load bool) {
	operand, block := w.operand, o.block
	w.base, w.batch, o.block = nil, nil, nil
	t.do(func(p *[keptPointers]unsafe.Pointer) {
		o.block = p[1]
		w.copy(p[0], f, &o, load)
	}, tapePointer{memory, operand}, tapePointer{block, noOperand})
}
