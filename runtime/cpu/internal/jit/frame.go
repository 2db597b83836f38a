package jit

import (
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
)

// Frame is a frame for functions of a few operands. It has room for the arguments, and for the
// values for which AVX2's 16 registers are too few when denormals are flushed.
type Frame [192]uint64

// FrameBytes is the size of a Frame.
const FrameBytes = int64(unsafe.Sizeof(Frame{}))

// Fits reports that a function needs no more memory than a Frame.
func Fits(f *native.Func) bool { return int64(f.Bytes) <= FrameBytes }

// Operand sets the address of operand i, and the bytes from point to point and from row to row.
func (f *Frame) Operand(i int, p unsafe.Pointer, step, row int64) {
	w := f[(native.FrameArgs+i*native.OperandBytes)/8:]
	w[native.Address/8], w[native.Step/8], w[native.RowStep/8] = uint64(uintptr(p)), uint64(step), uint64(row)
}

// Number makes operand i a position that is constant along a row.
func (f *Frame) Number(i int, at, row int64) {
	w := f[(native.FrameArgs+i*native.OperandBytes)/8:]
	w[native.Address/8], w[native.Step/8], w[native.RowStep/8] = uint64(at), 0, uint64(row)
}

// Run runs code on the operands.
func (f *Frame) Run(c *Code, points, rows int64, mxcsr uint32) {
	f[native.FramePoints/8], f[native.FrameRows/8] = uint64(points), uint64(rows)
	c.Call(unsafe.Pointer(f), mxcsr)
}
