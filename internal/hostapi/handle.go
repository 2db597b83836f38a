package hostapi

import "github.com/millrace-go/millrace/ir"

// Drop releases a tensor, a *millrace.Tensor, that only the caller has. Unlike Release it does not
// record the line, which is most of Release's cost.
var Drop func(tensor any)

// Shares reports whether a device, a *millrace.Device, can have tensors of dt in Go's memory.
var Shares func(device any, dt ir.DType) bool

// Share makes a tensor of zeros on a device, in memory of Go's heap that the caller reads and
// writes: see stream.Share for the conditions.
var Share func(device any, dt ir.DType, shape []int) (tensor any, data []byte, err error)

// Shared is the memory of a tensor if Share made it, nil for others; alone says that no other
// tensor uses the memory, and that it holds the elements in order.
var Shared func(tensor any) (data []byte, alone bool)

// Lend computes a tensor and passes its memory on its device to use, as a runtime.Device and a
// runtime.Buffer. The elements are in row-major order from element off on, and may be read until
// use returns.
var Lend func(tensor any, use func(dev, buf any, off int64) error) error

// Value is the value that a tensor names at this moment; after each Set it differs, as compared by
// ==.
var Value func(tensor any) any

// Fail makes a tensor, a *millrace.Tensor, that carries an error with the line of the program, like
// an op's result: the error of the first operand that carries one, else err.
var Fail func(op string, err error, operands []any) (tensor any)

// Site sets a text that errors and reports name in place of the caller's line, for the ops that are
// recorded in a scope, a *millrace.Scope, from now on; "" ends that. See stream.Scope.SetSite.
var Site func(scope any, text string)

// Beside is a millrace.Place: the place of the result of an op on tensors of one device. See
// stream.Beside.
var Beside func(tensors []any) (place any, ok bool)

// HostLane makes a lane for [HostOp] on tensors of a device, a *millrace.Device.
var HostLane func(device any) any

// HostOp makes a tensor that a function computes from an operand, as a job of the lane. See
// stream.HostOp for begin, which is called once for each run of the op. It does not wait for the
// operand or the function. Errors are stored in the tensor.
var HostOp func(lane any, name string, operand any, dt ir.DType, shape []int, begin func() func(dst, src []byte, fault error) error) (tensor any)
