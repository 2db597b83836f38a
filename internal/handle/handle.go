// Package handle is for the modules and packages of this repository: what they do with
// tensors that the public API has no word for. Package millrace sets all of it.
//
// Engine part: no compatibility promise; use package millrace.
package handle

import "github.com/millrace-go/millrace/ir"

// Drop releases a tensor, a *millrace.Tensor, that nobody else has. Unlike
// Release it does not take down where that was, which is most of what Release
// costs.
var Drop func(tensor any)

// Shares reports that tensors of a device, a *millrace.Device, can lie in Go's
// memory.
var Shares func(device any, dt ir.DType) bool

// Share makes a tensor of zeros on a device, in memory of Go's heap that the
// caller reads and writes: see stream.Share for what that asks of it.
var Share func(device any, dt ir.DType, shape []int) (tensor any, data []byte, err error)

// Shared is the memory of a tensor that lies in what Share made, nil for others;
// alone says that no other tensor is there, and that it holds the elements in order.
var Shared func(tensor any) (data []byte, alone bool)

// Lend computes a tensor and gives use its memory on its device, a runtime.Device and a
// runtime.Buffer, with its elements in row-major order from element off on: to be read
// until use returns.
var Lend func(tensor any, use func(dev, buf any, off int64) error) error

// Value is the value that a tensor names at this moment: another one, as == tells, after
// each Set.
var Value func(tensor any) any

// Fail is a tensor, a *millrace.Tensor, that carries an error with the line of the
// program, as an op's result does: the error of the first operand, each of them a tensor,
// that carries one, else err.
var Fail func(op string, err error, operands []any) (tensor any)

// Beside is a millrace.Place, where the result of an op on tensors that are on one device
// goes: see stream.Beside.
var Beside func(tensors []any) (place any, ok bool)
