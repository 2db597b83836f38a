// Package codegen defines Kernel IR: the computation of one device launch. Fusion writes kernels;
// machine code (codegen/native), printers (codegen/cgo, codegen/shader) and the interpreters read
// them. It knows ir and nothing of streams, plans or devices.
//
// # Model
//
// A kernel runs its Body once for every point of an iteration domain. The domain's rank and sizes
// are not part of the kernel. They come with a launch, together with one Access per operand, which
// says where a point's element is. So a kernel serves every size, broadcast pattern and layout; a
// device may build variants of it for classes of accesses ([AccessClass]).
//
// The domain is split: the first Kept dims of the launch are kept, the others are reduced. A row is
// the points of the reduced dims under one point of the kept ones, in row-major order. Row ops of
// the table (reductions, scans, sorts, contractions) are instructions of Body like any other. They
// use a whole row of their operand, in the combine order of docs/numerics/order.md. A kernel
// without row ops has no reduced dims. Imm of a sort is 1 if it is descending.
//
// A scatter is the only row op of its kernel, and its result is the only thing stored. Its operand
// and the output are row operands. The axis that the indices name is given by IndexStride and
// IndexSize of their Access. The domain is that of the indices and of the scattered values. The
// output begins as a copy of the operand; if both have one buffer, it is the operand.
//
// A kernel with rows may also fold all of its points: its Reduces are totals, each of a reduction,
// over all points of the launch in row-major order, kept dims first. The result of a total is
// stored in an output with stride 0, and nowhere else.
//
// Values have levels ([Kernel.Levels]): uniform values are the same everywhere, row values exist
// once per row, point values once per point.
//
// Printers and block interpreters do not know rows. [Phases] splits a kernel into elementwise
// kernels, the phases, with temporaries between them. The code that runs the phases does the
// folding.
//
// Input: kernels as fusion writes them, or as text. Output: their key, their [Schedule] of phases,
// their instructions lowered to primitives, and their results by the interpreter. Read kernel.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package codegen
