package ir

// Ref names an earlier value of the same Prog by its index in Code.
type Ref int32

// None is the absent operand.
const None Ref = -1

// Instr is one scalar operation in SSA form. Its index names its value. DT is the result's dtype;
// operands have the dtypes of the instructions that Args name.
//
// Comparisons give Bool. Bool values are masks: there is no arithmetic on them.
type Instr struct {
	Op   Op
	DT   DType
	Args [4]Ref // unused ones are None
	Imm  uint64 // Const: bits, Lookup: table id, Rare: sub id, Param/Load/Index*/Scalar: slot
}

// Prog is a straight-line scalar program: the meaning of an op for one element. Expansions are
// Progs with parameters; a kernel's body is the same kind of list, with loads in place of
// parameters.
type Prog struct {
	Name    string
	Params  []DType
	Code    []Instr
	Results []Ref
}

// Table is a constant table in which expansions look up values.
type Table struct {
	Name string
	DT   DType
	Bits []uint64 // one entry per element, in DT's bits
}

// Builder appends instructions. Expansions are written with it.
type Builder struct {
	Code []Instr
}

// DT is the dtype of a value.
func (b *Builder) DT(r Ref) DType { return b.Code[r].DT }

// Emit appends one instruction and returns its value.
func (b *Builder) Emit(op Op, dt DType, imm uint64, args ...Ref) Ref {
	in := Instr{Op: op, DT: dt, Imm: imm, Args: [4]Ref{None, None, None, None}}
	copy(in.Args[:], args)
	b.Code = append(b.Code, in)
	return Ref(len(b.Code) - 1)
}
