// Package gomlxbackend runs GoMLX programs on Millrace. Importing it registers
// a backend named "millrace" with github.com/gomlx/compute:
//
//	import _ "github.com/millrace-go/millrace/gomlxbackend"
//
// and GOMLX_BACKEND=millrace in the environment, or compute.NewWithConfig of
// that text, selects it. What follows a colon picks the device and its options,
// as in "millrace:cpu,threads=2" or "millrace:webgpu"; see millrace.Options for
// the keys. A device other than the CPU needs its driver's import:
//
//	import _ "github.com/millrace-go/millrace/runtime/webgpu"
//
// A program that asks GoMLX for its own backend by name, "go", without a choice runs on
// Millrace after Replace("go", "").
//
// # How it runs
//
// A graph is kept as it was built, without nodes that nobody needs and with
// equal ones merged. Execute records it as Millrace ops on a stream of its own
// and waits for the results, so that Millrace finds the kernels, and plans and
// compiled kernels are shared by all graphs of the process and kept in
// Millrace's cache. On amd64 with AVX2 the process makes machine code of them
// in a fraction of a millisecond. Other processors interpret kernels; a build
// with cgo compiles them in the background if the machine has a C compiler.
// Fused ops are the nodes of their decomposed form, which Millrace fuses
// itself; those not in Backend.Capabilities are declined, and GoMLX builds
// that form.
//
// Executables, buffers and the backend may be used by several goroutines at
// once; a builder belongs to one. Buffers that are never finalised are found by
// Go's collector.
//
// # Dynamic axes
//
// Parameters may have axes without a size but with a name, and a graph is built
// once for all sizes of them. What Execute recorded at the first size is run at
// others, too: the graph is gone through again only where a size is 0 or 1 for the first
// time, or where sizes within it do not follow from the axes' as sums of products.
// Nothing is planned or compiled for a size that there is from one like it, since plans
// and kernels hold no sizes.
// Sizes may be numbers that the program computes, also from inputs: then the graph is
// made at each Execute, as far as is needed to know them, and kept for the last 64 sizes. Axes of no elements
// are sizes as any others. What an op says about sizes that do not fit is found with
// made-up sizes when the graph is built, and with those of the inputs when it is
// executed. Closures may not have dynamic axes, nor complex numbers.
//
// # Shared buffers
//
// On the CPU buffers can be shared with the program: Backend.NewSharedBuffer
// and Buffer.Data give slices that are their memory. A slice may be written to at
// any time at which no Execute that reads the buffer is under way: what
// Execute computes is done when it returns, and the next one sees the elements as
// they are then. The memory is that buffer's alone: results that would lie
// there too, such as a parameter that is returned, are copies. Its
// address does not change until the buffer is finalised or donated; a donated
// one's memory may become a result's. It is zeroed memory of Go's heap, so that a
// slice outlives its buffer, and the backend, and is freed by the collector
// only; it counts towards the device's memory limit until the buffer is gone.
//
// Results lie in the device's own memory. The first Data of one copies
// it, as ToFlatData would; later calls, and runs, use that memory. Complex and
// packed elements lie otherwise on the device: each Execute copies their slices.
// Other devices have no shared buffers: Backend.HasSharedBuffers is false, and
// NewSharedBuffer and Data return compute.ErrNotImplemented.
//
// # What ops mean
//
// Values are those of Millrace (docs/numerics.md), and where GoMLX asks for
// something else, GoMLX's: integers are converted by dropping high bits, and the
// remainder has the sign of the dividend. An integer divided by zero is 0 and
// leaves itself as the remainder.
//
// A complex value is a pair of real tensors, complex64 of float32 and complex128
// of float64, so a device that lacks float64 has no complex128. Elements are
// split and joined where buffers meet Go slices. There are all ops that move
// elements, sums and products, Add, Sub, Mul, Div, Pow, Neg, Abs, Sign, Conj, Real,
// Imag, Exp, Expm1, Log, Log1p, Sqrt, Rsqrt, Sin, Cos, Tanh, Logistic, comparisons
// for equality, conversions, bitcasts, DotGeneral and ConvGeneral. Ops that need
// an order, such as Max, are errors. Conversion to a real dtype drops the
// imaginary part. FFT takes axes of any length from 1;
// docs/numerics/libraries.md has its errors, and those of the functions.
//
// Values may have any number of axes. An op takes neighbours with which it does the
// same as one, and tells at most eight apart, but Transpose, the reductions and
// DotGeneral, which take more in several steps. Others, such as Gather, Pad, Sort and
// windows, take at most eight axes, and so do complex and packed dtypes.
//
// Ops that are not in Backend.Capabilities
// return compute.ErrNotImplemented, and so do dtypes that the device lacks and
// what needs more axes than there are.
package gomlxbackend
