package ir

// Op is an operation: one that a user records on tensors, a mark of a stream, or a primitive of
// which expansions are made. The order inside a section has no meaning; ops are stored by name,
// never by number.
type Op uint8

const (
	OpInvalid Op = iota

	// 1. Creation: no tensor operand, elements from scalars and their position.
	Full    // value
	Iota    // start + step*i, i the row-major position, converted first
	Uniform // [0,1) from Philox4x32-10(seed, i)
	Normal  // standard normal, Box-Muller over Philox4x32-10(seed, i)

	// 2. Elementwise, one operand.
	Neg
	Abs
	Sign
	Sqrt
	Rsqrt
	Recip
	Square
	Exp
	Exp2
	Expm1
	Log
	Log2
	Log1p
	Sin
	Cos
	Tan
	Tanh
	Sinh
	Cosh
	Asin
	Acos
	Atan
	Sigmoid
	Erf
	Relu
	Gelu
	GeluTanh
	Silu
	Softplus
	Floor
	Ceil
	Round // half to even
	Trunc
	Not // bool: logical; integers: every bit
	IsNaN
	IsInf
	IsFinite
	Cast // to the result's dtype; saturates, NaN to 0

	Reinterpret // the bits as those of a dtype of the same width; all NaNs get the same bits

	// 3. Elementwise, two operands.
	Add
	Sub
	Mul
	Div // IEEE on floats; truncates toward zero on integers, x/0 = 0
	FloorDiv
	Rem // sign of the divisor: FloorDiv(x,y)*y + Rem(x,y) = x
	Pow
	Maximum // NaN propagates; -0 < +0
	Minimum
	Atan2
	And // bool and integers
	Or
	Xor
	Shl // shifts past the width are defined: 0, or the sign for Shr of signed
	Shr
	MulHigh // the half of the product that Mul drops

	// 4. Comparisons: operands of one dtype, result Bool.
	Eq
	Ne
	Lt
	Le
	Gt
	Ge

	// 5. Elementwise, three operands.
	Where // mask, x, y
	Clamp // x, lo, hi: Minimum(Maximum(x, lo), hi)

	Philox // counter, its high half, key: random bits

	// 6. Views: no arithmetic; they change only where elements are found.
	Reshape
	Permute // Attr.Axes: result dim i is operand dim Axes[i]
	Slice   // Attr.Start, Attr.Step per dim (steps may be negative), extents from the shape
	Expand  // broadcast to the result's shape
	Window  // dim Attr.Axes[0] becomes (out, k) of the result's shape, element (o, j) at o*stride + j*dilation

	// 7. Reductions over Attr.Axes (sorted), kept as size 1 with Attr.Keep.
	Sum
	Prod
	Max
	Min
	Any    // bool
	All    // bool
	ArgMax // position of Max's element in the row; the call chooses Int32 or Int64
	ArgMin
	Dot // two operands of one shape: the sum of products, in a contraction's order

	// 8. Scans along Attr.Axes[0]: the result has the operand's shape.
	CumSum
	CumProd
	CumMax
	CumMin

	// 9. Sorts along Attr.Axes[0], stable: -0 before +0, NaN last.
	Sort
	ArgSort // the order as positions; the call chooses Int32 or Int64

	// 10. Data movement: an element's position decides from which operand it comes.
	Pad    // x, fill: Attr.Start elements before and Attr.Step-1 between neighbours, per dim
	Concat // x, y along Attr.Axes[0]
	Assign // x, u: x with its region at Attr.Start by Attr.Step replaced by u

	// 11. Indexed by data along Attr.Axes[0], as Attr.Mode says.
	Gather  // x, idx
	Scatter // x, idx, u: combined by Attr.Combine in u's row-major order. In a body without x: Imm: its operand slot, IndexMode, Combine from bits 32 and 40

	// 12. Marks of a stream: no value.
	Release
	Keep

	// 13. Primitives: only inside a Prog or a kernel body. Add, Sub, Mul, Neg, Abs, Sqrt, Floor,
	// Ceil, Round, Trunc, And, Or, Xor, Not, Where and the comparisons are primitives, too.
	Const   // Imm: bits in DT
	Param   // Imm: parameter of the Prog
	Load    // Imm: operand slot of the kernel; A, if any, a bool guard: if false, 0 and no read
	LoadAt  // Imm: operand slot, IndexMode in the high half; A: Int32 or Int64 index, B, if any, a guard as Load's
	IndexLo // Imm: operand slot; low 32 bits of the element's position, Uint32
	IndexHi // high 32 bits, Uint32
	Scalar  // Imm: run-time scalar slot of the kernel
	FMA     // a*b + c with one rounding
	FDiv    // IEEE quotient
	Flush   // zero of its sign for a denormal; see Denormals
	Quo     // integer quotient toward zero; divisor not 0, no overflow
	Mod     // integer remainder of Quo, likewise
	MulHi   // high half of the product, Uint32
	ShlRaw  // amount in [0, bits); amount has the operand's dtype
	ShrRaw  // arithmetic for signed types, logical for unsigned
	Convert // value conversion, in range; float to int truncates, NaN gives any value; Bool is 0 or 1
	Bitcast // same width
	Lookup  // Imm: table id; A: Int32 index in range
	Rare    // A cond, B fast, C, D: cond ? sub(C, D) : B; Imm: sub id. Lanes that need it are few.

	NumOps
)

// Class groups ops by how the engine treats them.
type Class uint8

const (
	ClassNone Class = iota
	ClassCreate
	ClassElementwise
	ClassView
	ClassReduce // folds a row to one element
	ClassScan   // an element from the elements of its row up to it
	ClassSort   // orders a row
	ClassMove   // copies: guarded reads of the operands
	ClassGather // copies: reads at an index that is data
	ClassScatter
	ClassMark
	ClassPrim
)

var classNames = [...]string{"none", "create", "elementwise", "view", "reduce", "scan", "sort", "move", "gather", "scatter", "mark", "prim"}

func (c Class) String() string { return nameOf(classNames[:], int(c)) }

// OutRule says how the result dtype follows from the operands.
type OutRule uint8

const (
	OutSame OutRule = iota // as the operands, which have one dtype
	OutBool
	OutLast // as the last operand (Where: the first is a mask)
	OutAttr // chosen by the call: Cast and creation

	OutWidth // chosen by the call among the numbers of the operands' width
)

// Info is one row of the op table: everything the engine knows of an op.
type Info struct {
	Name  string // of the text form
	Arity int
	Class Class
	In    DTypeSet
	Out   OutRule
	// Prim marks ops that printers spell. Other scalar ops have an Expand, which appends the op to
	// b as primitives or other ops. dt is the result's dtype; args are the operands.
	Prim   bool
	Expand func(b *Builder, dt DType, args []Ref) Ref
	// Indexed creation ops get IndexLo and IndexHi before their scalars.
	Indexed bool
	// Attrs are the fields of Attr that the op has.
	Attrs AttrSet
	// Optional counts operands that may follow the Arity required ones.
	Optional int
	// Outside marks primitives whose value comes from outside of their program, such as loads: they
	// cannot be evaluated alone.
	Outside bool
	// RowOp marks reductions, scans, sorts and scatters: ops that use a whole row of their operand
	// (for a scatter: of its indices), which is the elements along Attr.Axes.
	RowOp bool
	// Combine joins two elements of a row, for row ops that are folds or scans by an op on elements.
	Combine Op
	// Position marks row ops whose result is a position in the row. The call chooses its dtype,
	// Int32 or Int64, independent of the operand's.
	Position bool
	// NeedsElement marks reductions that have no value for an empty row.
	NeedsElement bool
	// Commutes marks ops whose first two operands may be exchanged. All NaNs are equal, so sums and
	// products of floats commute.
	Commutes bool
	Tol      Tolerance
	Doc      string // one sentence for the generated op list in docs
}

// Info returns the op's row.
func (o Op) Info() *Info {
	if o >= NumOps {
		o = OpInvalid
	}
	return &table[o]
}

func (o Op) String() string { return o.Info().Name }

// Class is short for Info().Class.
func (o Op) Class() Class { return o.Info().Class }

// ParseOp reads the text of String.
func ParseOp(name string) (Op, bool) {
	op, ok := opByName[name]
	return op, ok
}

var opByName = func() map[string]Op {
	m := make(map[string]Op, NumOps)
	for o := Op(1); o < NumOps; o++ {
		if n := table[o].Name; n != "" {
			m[n] = o
		}
	}
	return m
}()
