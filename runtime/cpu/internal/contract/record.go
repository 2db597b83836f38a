package contract

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/replay"
)

func (c *Contraction) lose() {
	if c.Tape != nil {
		c.Tape.Lose()
	}
}

func (c *Contraction) region(p unsafe.Pointer, n int64) {
	if c.Tape != nil {
		c.Tape.Region(p, n)
	}
}

// The recorded frames: their numbers of words.
const (
	tileWords      = int(unsafe.Sizeof(native.TileFrame{})) / 8
	alongWords     = int(unsafe.Sizeof(native.AlongFrame{})) / 8
	panelsWords    = int(unsafe.Sizeof(native.PanelsFrame{})) / 8
	transposeWords = int(unsafe.Sizeof(native.TransposeFrame{})) / 8
)

// recordCall records the call of a function at an offset.
func (j *job) recordCall(offset int, frame unsafe.Pointer, words int, addresses ...replay.Address) {
	j.c.Tape.Call(j.f.at(offset), j.mxcsr, unsafe.Slice((*uint64)(frame), words), addresses)
}

// recordTile records a call with a TileFrame or an AlongFrame, which begins with a TileFrame.
func (j *job) recordTile(offset int, frame unsafe.Pointer, words int) {
	var f native.AlongFrame
	list := []replay.Address{
		{At: int(unsafe.Offsetof(f.X)), Operand: j.x.Operand}, {At: int(unsafe.Offsetof(f.Y)), Operand: j.y.Operand},
		{At: int(unsafe.Offsetof(f.C)), Operand: j.c.Out.Operand}, {At: int(unsafe.Offsetof(f.Acc)), Operand: operands.NoOperand},
	}
	for i := 0; words == alongWords && i < int(j.lanes); i++ {
		list = append(list, replay.Address{At: int(unsafe.Offsetof(f.Columns)) + 8*i, Operand: j.y.Operand})
	}
	j.recordCall(offset, frame, words, list...)
}

// transposeRows calls the function of TransposeFrame. Its rows may be in an operand, or be the
// zeros of missing columns.
func (j *job) transposeRows(f *native.TransposeFrame, operand int) {
	if j.c.Tape != nil {
		list := []replay.Address{{At: int(unsafe.Offsetof(f.Dst)), Operand: operands.NoOperand}}
		for i := range int(j.lanes) {
			if at := uintptr(f.Rows[i]) - uintptr(unsafe.Pointer(&zeros)); at >= unsafe.Sizeof(zeros) {
				list = append(list, replay.Address{At: int(unsafe.Offsetof(f.Rows)) + 8*i, Operand: operand})
			}
		}
		j.recordCall(j.f.Transpose, unsafe.Pointer(f), transposeWords, list...)
	}
	j.f.call(j.f.Transpose, unsafe.Pointer(f), j.mxcsr)
}

// recordRows records the copy of rows of so many bytes between an operand and working memory.
func (j *job) recordRows(to operands.Pointer, toStep int64, from operands.Pointer, fromStep, rows, bytes int64) {
	j.c.Tape.Do(func(p *operands.Pointers) {
		for r := range rows {
			memory.Copy(unsafe.Add(p[0], r*toStep), unsafe.Add(p[1], r*fromStep), bytes)
		}
	}, to, from)
}

// recordTurn records turnSlowly.
func (j *job) recordTurn(dst unsafe.Pointer, dr, dc int64, src operands.Pointer, sr, sc, rows, cols int64) {
	size := j.size
	j.c.Tape.Do(func(p *operands.Pointers) { turnOf(size, p[0], dr, dc, p[1], sr, sc, rows, cols) }, operands.Own(dst), src)
}

func (c *Contraction) recordZero(at unsafe.Pointer, ld, rows, n int64) {
	c.Tape.Do(func(p *operands.Pointers) { zero(p[0], ld, rows, n) }, operands.Own(at))
}

// record records a copy between a block and a batch's memory.
func (w *Walk) record(c *Contraction, memory unsafe.Pointer, o walkOver, load bool) {
	mine, f, size, block := *w, c.code, int64(c.DT.Size()), o.block
	mine.Base, mine.Batch, o.block = nil, nil, nil
	c.Tape.Do(func(p *operands.Pointers) {
		o.block = p[1]
		mine.copy(p[0], f, size, &o, load)
	}, operands.Pointer{P: memory, Operand: w.Operand}, operands.Own(block))
}
