package ir

// The shape of every reduction, on every device that is exact: element r of
// the reduced dims, counted in row-major order, goes to lane r%FoldLanes of
// block r/FoldBlock. The lanes of a block are folded in halves, and blocks
// are joined in order. The numbers are part of what users are promised.
const (
	FoldLanes = 64
	FoldBlock = 4096
)

// Fold computes one result of a reduction in the promised order. It is the
// meaning of every op of ClassReduce, slow and obvious. Elements and result are
// of storage dtypes where the tensors are; between them the fold is carried in
// the dtype that computes, see [DType.Compute], and rounded once at the end.
type Fold struct {
	dt  DType // of the elements
	op  *Info
	n   int
	acc accumulator
}

// accumulator is one way to fold, in a dtype that computes. y is the second
// operand of those with two.
type accumulator interface {
	add(x, y uint64)
	result() uint64
}

// NewFold starts a reduction by op, of ClassReduce, of elements of dtype dt.
func NewFold(op Op, dt DType) *Fold {
	f := &Fold{dt: dt, op: op.Info()}
	carry := dt.Compute()
	switch {
	case op == Dot:
		f.acc = newDotFold(carry)
	case f.op.Position:
		f.acc = &argFold{dt: carry, least: op == ArgMin}
	default:
		f.acc = newLaneFold(op, carry)
	}
	return f
}

// Add takes the next element of a reduction of one operand.
func (f *Fold) Add(x uint64) {
	f.n++
	f.acc.add(widenBits(f.dt, x), 0)
}

// AddPair takes the next elements of a reduction of two operands.
func (f *Fold) AddPair(x, y uint64) {
	f.n++
	f.acc.add(widenBits(f.dt, x), widenBits(f.dt, y))
}

// Result is the value after the last element; nothing may be added after it.
// Where the reduction is one of positions it is the position, counted from 0.
// The sum of no elements is +0, other reductions of none have their start.
func (f *Fold) Result() uint64 {
	if f.op.Position {
		return f.acc.result()
	}
	return narrowBits(f.dt, f.acc.result())
}

// laneFold is the order of every reduction by an op on elements.
type laneFold struct {
	join  joiner
	start uint64
	lanes [FoldLanes]uint64
	n     int    // elements so far
	total uint64 // of the finished blocks
	empty uint64 // the result of no elements
}

func newLaneFold(op Op, dt DType) *laneFold {
	f := &laneFold{join: newJoiner(op.Info().Combine, dt), start: FoldStart(op, dt)}
	if op != Sum { // -0 changes no element, but +0 is the sum of none
		f.empty = f.start
	}
	f.reset()
	return f
}

func (f *laneFold) reset() {
	for l := range f.lanes {
		f.lanes[l] = f.start
	}
}

func (f *laneFold) add(x, _ uint64) {
	if f.n > 0 && f.n%FoldBlock == 0 {
		f.endBlock()
	}
	l := f.n % FoldLanes
	f.lanes[l] = f.join.do(f.lanes[l], x)
	f.n++
}

// endBlock adds the lanes to the total; f.n counts the block's last element.
func (f *laneFold) endBlock() {
	for w := FoldLanes / 2; w > 0; w /= 2 {
		for l := range w {
			f.lanes[l] = f.join.do(f.lanes[l], f.lanes[l+w])
		}
	}
	if f.n <= FoldBlock {
		f.total = f.lanes[0]
	} else {
		f.total = f.join.do(f.total, f.lanes[0])
	}
	f.reset()
}

func (f *laneFold) result() uint64 {
	if f.n == 0 {
		return f.empty
	}
	f.endBlock()
	return f.total
}

// argFold finds the position of the greatest or least element: the first NaN,
// else the first of equals, -0 being below +0. Positions settle ties, so the
// result does not depend on any order of joining.
type argFold struct {
	dt    DType
	least bool
	n     int
	best  uint64 // sort key of the best so far
	at    int
}

func (f *argFold) add(x, _ uint64) {
	if key := SortKey(f.dt, x, f.least); f.n == 0 || key > f.best {
		f.best, f.at = key, f.n
	}
	f.n++
}

func (f *argFold) result() uint64 { return uint64(f.at) }

// joiner is an elementwise op of two operands of one dtype, its expansion
// looked up once.
type joiner struct {
	in   Instr
	dts  [2]DType
	prog *Prog // nil for a primitive
}

func newJoiner(op Op, dt DType) joiner {
	j := joiner{in: Instr{Op: op, DT: dt}, dts: [2]DType{dt, dt}}
	if !op.Info().Prim {
		j.prog = Expansion(op, dt, j.dts[:])
	}
	return j
}

func (j *joiner) do(a, b uint64) uint64 {
	args := [2]uint64{a, b}
	if j.prog != nil {
		return evalFirst(j.prog, args[:])
	}
	return EvalPrim(j.in, j.dts[:], args[:])
}

// widenBits brings an element to the dtype that folds it.
func widenBits(dt DType, x uint64) uint64 {
	switch {
	case dt.Compute() == dt:
		return x
	case dt.IsFloat():
		return FloatBits(dt.Compute(), BitsFloat(dt, x))
	case dt.IsSigned():
		return uint64(signExtend(dt, x)) & widthMask(dt.Compute())
	}
	return x
}

// narrowBits brings a result back: floats round, integers wrap.
func narrowBits(dt DType, x uint64) uint64 {
	switch {
	case dt.Compute() == dt:
		return x
	case dt.IsFloat():
		return FloatBits(dt, BitsFloat(dt.Compute(), x))
	}
	return x & widthMask(dt)
}
