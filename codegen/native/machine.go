package native

import "github.com/millrace-go/millrace/ir"

// ISA is a target: what the emitter asks of an instruction set before it makes code. The rest are the
// methods of a machine, which New makes for one function or one list of functions.
type ISA struct {
	Name  string
	Bytes int  // bytes of a vector register
	Regs  int  // number of vector registers
	Masks bool // masks of lanes have registers of their own; otherwise a mask is a vector

	Prefetches  bool // has instructions that prefetch, and they pay
	Bypasses    bool // has stores that bypass the caches
	Reciprocals bool // divides by a divisor of many elements with its reciprocal
	Extremes    bool // maximum and minimum of floats treat NaN and the sign of zero in a way of their own
	Sequences   bool // has code of sequences
	LeastLanes  int  // lanes of the smallest vectors that can be joined

	TileRows   int // most rows of a tile that is two vectors wide
	AlongRows  int // most rows of a tile whose columns run along k
	LinePieces int // pieces of 16 bytes of a row that are transposed together

	Trap     byte            // an instruction that consists of it traps
	Bytewise map[ir.Op]Op    // instructions that join vectors of bytes
	Ops      [ir.NumOps]bool // primitives that the target has instructions for

	New func(b *Buffer, c *Builder) Machine // c is nil for code without virtual registers
}

// Spells reports that the target has code for an op. Targets may have code for float ops that
// [codegen.Lower] would expand: joins of two elements use them.
func (t *ISA) Spells(o ir.Op) bool {
	return t.Ops[o] || o == ir.Convert || o == ir.Bitcast || o == ir.Lookup || o == ir.Rare
}

// PassesCaches reports whether the target has stores that bypass the caches. Without them,
// [Variant.Past] has no effect.
func (t *ISA) PassesCaches() bool { return t.Bypasses }

// Machine is an instruction set that makes code: the one interface between the emitter and its
// targets.
type Machine interface {
	assembler
	selector
	tiler
}

// assembler has the instructions on registers that every target has. General registers have the names
// of amd64's, vectors have numbers.
type assembler interface {
	Settle(f Fix, d int32) // fills in a distance

	Load(r GPR, m Mem)
	Load32(r GPR, m Mem)                          // clears the upper half
	LoadSize(size int, signed bool, r GPR, m Mem) // extends to 64 bits from four bytes on, else to 32
	Store(m Mem, r GPR)
	StoreSize(size int, m Mem, r GPR) // the lowest bytes
	Copy(to, from GPR)
	Clear(r GPR)
	Set(r GPR, imm uint32) // keeps the flags
	Lea(r GPR, m Mem)
	LeaLabel(r GPR, l Label)
	Op(o Arith, r GPR, x RM)      // r = r o x
	OpTo(o Arith, m Mem, r GPR)   // m = m o r
	OpImm(o Arith, x RM, imm int) // x = x o imm, of 64 bits
	Imul(r GPR, x RM)             // r *= x
	Shift(kind uint8, wide bool, r GPR, by int)
	Negate(r GPR)
	Jump(l Label)
	JumpIf(c Cond, l Label)
	JumpTo(m Mem) // the address in memory
	Ret()
	Nop(most int) int           // one instruction of at most so many bytes, if there is one; returns its bytes
	Prefetch(m Mem, first bool) // a line of memory into the first cache, or the second; it never faults
	Fence()                     // orders stores past the caches before later ones

	LoadVec(r uint8, size int, m Mem)
	StoreVec(m Mem, size int, r uint8)
	StorePast(m Mem, size int, r uint8) // past the caches
	CopyVec(to, from uint8, size int)
	ClearVec(r uint8, size int)
	SplatVec(r uint8, size, elem int, m Mem)   // an element in memory into all lanes
	Spread(r uint8, size, elem int, g GPR)     // a general register into all lanes
	VecOp(o Arith, size int, d, x uint8, y RM) // and, or, xor, or add of 32-bit lanes

	// Targets with masks only.
	LoadMask(r uint8, m Mem)
	StoreMask(m Mem, r uint8)
	SetMask(r uint8, all bool) // all lanes or none
	MaskFrom(r uint8, g GPR)
	MaskTo(g GPR, r uint8)
	FirstLanes(r uint8, spare, count GPR) // so many lanes
	TestBit(word, bit GPR)                // "below" if the bit is set
}

// selector chooses instructions for values.
type selector interface {
	// one emits an item of one instruction; it gives the operands and the result registers.
	One(it *Item)
	// primitive appends the items of an op of Ops.
	Primitive(in ir.Instr, x []Value, dts []ir.DType) Value
	// change converts between dtypes of which one has 64 bits or is a float.
	Change(from, to ir.DType, v Value) Value
	// choiceOp is an instruction that gives the smaller or the larger of two values with the bits of
	// a Where, or opNone.
	ChoiceOp(dt ir.DType, smaller bool) Op
	// constantOf says how a constant of n bytes is stored: as so many copies of its element, and
	// whether a load spreads the one copy.
	ConstantOf(elem, n int) (count int, one bool)

	BitAnd(n int, x, y Value) Value
	Extended(n int, x Value, by int16) Value        // 32-bit lanes shifted left and back, which extends their sign
	SignExtended(n int, v Value) Value              // 32-bit lanes to 64
	Halved(v Value) Value                           // the low 32 bits of each 64-bit lane
	Choice(m Value, n, elem int, bits uint64) Value // bits where a mask is set, 0 elsewhere
	TestMask(n int, v Value) Value                  // a mask of the lanes that are not 0; targets with masks only

	// Memory. partial reports that a vector of which only some lanes are valid can be loaded and
	// stored at once, with elements of so many bytes.
	Partial(size int) bool
	LoadItem(it Item) Value
	StoreItem(it Item)
	LoadDense(d Dense, guard Value) Value // 0 if it must be done lane by lane
	StoreDense(d Dense, v Value, past bool)
	LoadApart(d Dense) Value // d.pre leaves the first address in rax and the step in rsi
	LoadPart(r uint8, d Dense, tail bool, mask uint8)
	LoadIfAll(r *Regs, d Dense, done Label)
	StoreValid(v, before Value, d Dense)
	StoreOne(v Value, d Dense)
	Upper(v Value, bytes int) Value
	JumpIfSet(mask uint8, n, elem int, to Label)
	Merge(d, mask, x uint8, n, elem int, m Mem)

	// Targets with Reciprocals, Extremes and Sequences.
	ReciprocalOf(dt ir.DType, y Value) Value
	SpanOf(dt ir.DType, y Value) Value
	DivideBy(dt ir.DType, x, y, reciprocal, span Value) Value
	JoinExtreme(a *Accumulator, k Kind, least bool, v Value, u, n int)
	ExtremeOf(a *Accumulator, k Kind, least bool) Value
	LoadPoints(d Dense, points int, still bool, mask Value) Value
	StorePoints(d Dense, v Value, points int, mask Value)
}

// tiler makes the parts of contractions.
type tiler interface {
	Elements(dt ir.DType) (size int, pairs bool)
	LoadWhole(r uint8, m Mem)
	StoreWhole(m Mem, r uint8)
	Unroll(lanes int) int
	Bases(t *TileForm)
	Steps(t *TileForm, n int)
	AlongSteps(t *TileForm, y []uint8, temp uint8, offset GPR)
	Multiply(t *TileForm, to, x uint8, y RM, temp uint8)
	Results(t *TileForm, done Label)
	LoadPieces(in []uint8, n, row, pieces int, offset GPR)
	Square(s []uint8, t uint8)
	PartMasks(columns, temp GPR)
	PartPanel(from, to, rest GPR)
	JumpIfAny(r, bits uint8, to Label)
	JoinGreater(sum, x, limit uint8)
	TestGreater(sum uint8)
}
