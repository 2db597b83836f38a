// Package millrace computes with tensors one operation at a time, as ordinary
// Go, and runs what a program wrote as the few fused kernels a specialist
// would have written by hand.
//
//	x := millrace.FromSlice([]float32{-1, 0, 1, 2})
//	y := x.Mul(x.Sigmoid()).AddScalar(1)        // recorded, not computed
//	v, err := millrace.Values[float32](y)        // one kernel runs, here
//
// # How it computes
//
// An op returns at once with a [*Tensor] that remembers what to do. The ops
// wait in a [Stream] until a value is needed: by [Values], [ReadInto], [Item],
// [Equal], [AllClose], String, Eval, Sync, by an op whose result has a size that
// depends on values, such as [NonZero], or because many are waiting. Then
// the stretch of ops is matched against those seen before; a new one is
// searched for the best kernels, once, and every later pass over the same code
// replays them, at any batch size. Control flow may depend on values read.
//
// On the CPU the numbers are the same bits fused or not, compiled or
// interpreted, with one thread or many. Code of kernels is machine code that the
// process makes itself, or what C compilers make in the background; what there is
// none of runs interpreted. See [CompileMode] for how to wait for code or forbid it.
//
// # Shapes and dtypes
//
// Tensors have 0 to 8 dimensions and elements of float16, bfloat16, float32 or
// float64, of the signed and unsigned integers of 8 to 64 bits, or bool; in Go
// the 16-bit floats are [F16] and [BF16]. Operands broadcast as in NumPy: shapes are aligned at
// the last dimension, and a dimension of size 1 fits any other. Dtypes are
// never promoted: operands of an op have the same one, and [Tensor.Cast]
// converts. An op that takes a number in place of a tensor has Scalar in its
// name. Data is row-major.
//
// Functions that take or return Go values have a type parameter; those that
// make tensors from nothing take a [DType].
//
// # Errors
//
// No op panics on bad input. A bad one gives a tensor that carries the error,
// as does everything computed from it: reading, [Tensor.Err] and
// [Stream.Sync] return it. It is an [*OpError] that names the op, the shapes
// and the line of the program, and wraps [ErrShape], [ErrDType],
// [ErrReleased] or another cause. Shape, DType and String of such a tensor
// are defined. Faults found only when kernels run, such as [ErrOutOfMemory],
// arrive the same way.
//
// # Lifetimes
//
// Nothing needs to be freed: memory that only garbage held is found with Go's
// collector. A program that wants it back at once says so: with
// [Tensor.Release], or with a [Scope], which releases what was computed from
// tensors made on it. [Tensor.Set] gives a handle a new value and releases the
// old one, as a training loop does with its weights. What is never written
// because it was consumed inside a kernel is computed again if it is needed
// later.
//
// # Places
//
// A [Place] is where tensors are made: a [Device], a [Stream] of one, or a
// [Scope]. Without one it is the default device, which is the CPU unless
// MILLRACE_DEVICE says otherwise. Other devices need their driver's import:
//
//	import _ "github.com/millrace-go/millrace/runtime/webgpu"
//
// # Environment
//
//	MILLRACE_DEVICE   default device, such as "webgpu" or "cpu:threads=2"
//	MILLRACE_COMPILE  "native" forbids C compilers, "c" machine code of kernels, "off" all code
//	MILLRACE_LEVEL    "avx2" or "none" lowers the instructions that machine code made in the process has,
//	                  "neon" asks for it on linux/arm64
//	MILLRACE_CACHE    directory for plans and compiled kernels, or "off"
//	MILLRACE_DEBUG    keys for debugging and profiling; "help" lists them
package millrace

import (
	_ "github.com/millrace-go/millrace/runtime/cpu" // the device that is always there
)
