// Package millrace is a tensor library: a program calls one operation at a time, as ordinary Go,
// and the package runs these operations as a few fused kernels, like those that a specialist
// would write by hand.
//
//	x := millrace.FromSlice([]float32{-1, 0, 1, 2})
//	y := x.Mul(x.Sigmoid()).AddScalar(1)        // recorded, not computed
//	v, err := millrace.Values[float32](y)        // one kernel runs, here
//
// # How it computes
//
// An op returns at once, with a [*Tensor] that remembers the op and its operands. The op waits in
// the queue of a [Stream] until a value is needed. [Values], [ReadInto], [Item], [Equal],
// [AllClose], String, Eval and Sync need values, and so does an op whose result has a size that
// depends on values, such as [NonZero]. A queue that has become long runs as well. The package
// then compares the recorded ops with those that it has seen before. For ops that are new it
// searches for the best kernels, once. Every later pass over the same code runs these kernels
// again, at any batch size. Control flow may depend on values that the program has read.
//
// On the CPU the results are the same, bit for bit, whether ops are fused or not, whether kernels
// are compiled or interpreted, and with any number of threads. Kernels run as machine code that
// the process makes itself, or as code that C compilers make in the background. A kernel without
// code is interpreted. See [CompileMode] for how to wait for code or forbid it.
//
// # Shapes and dtypes
//
// Tensors have 0 to 8 dimensions. Their elements are float16, bfloat16, float32 or float64,
// signed or unsigned integers of 8 to 64 bits, or bool; in Go the 16-bit floats are [F16] and
// [BF16]. Operands broadcast as in NumPy: shapes are aligned at the last dimension, and a
// dimension of size 1 fits any other. Dtypes are never promoted: the operands of an op have the
// same one, and [Tensor.Cast] converts. An op that takes a number in place of a tensor has Scalar
// in its name. Data is row-major.
//
// Functions that take or return Go values have a type parameter. Functions that make tensors from
// nothing take a [DType].
//
// # Errors
//
// No op panics on bad input. An op on bad input returns a tensor that carries the error, and so
// does every op on that tensor. Reading such a tensor, [Tensor.Err] and [Stream.Sync] return the
// error. It is an [*OpError], which names the op, the shapes and the line of the program, and
// wraps [ErrShape], [ErrDType], [ErrReleased] or another cause. Shape, DType and String are
// defined for such a tensor. Faults that only running kernels finds, such as [ErrOutOfMemory],
// are reported the same way.
//
// # Lifetimes
//
// A program does not need to free anything: Go's collector finds tensors that are garbage, and
// their memory is reused. A program that wants memory back at once calls [Tensor.Release], or
// uses a [Scope], which releases what was computed from tensors made on it. [Tensor.Set] gives a
// handle a new value and releases the old one, as a training loop does with its weights. A result
// that kernels consumed without writing it is computed again if it is needed later.
//
// # Places
//
// A [Place] says where tensors are made: a [Device], a [Stream]s, or in a [Scope].
// Without a place it is the default device, which is the CPU unless MILLRACE_DEVICE says
// otherwise. Other devices need an import of their driver:
//
//	import _ "github.com/millrace-go/millrace/runtime/webgpu"
//
// # Environment
//
//	MILLRACE_DEVICE   default device, such as "webgpu" or "cpu:threads=2"
//	MILLRACE_COMPILE  "native" forbids C compilers, "c" forbids machine code of kernels, "off" all code
//	MILLRACE_LEVEL    limits the instructions in the machine code that the process makes: "avx2" or "none";
//	                  "neon" requests NEON code on linux/arm64
//	MILLRACE_CACHE    directory for plans and compiled kernels, or "off"
//	MILLRACE_DEBUG    keys for debugging and profiling; "help" lists them
//
// Of the source, read tensor.go first.
package millrace

import (
	_ "github.com/millrace-go/millrace/runtime/cpu" // the device that is always there
)
