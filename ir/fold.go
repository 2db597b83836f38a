package ir

// The order of every reduction, on every exact device. Element r of the reduced dims, counted in
// row-major order, goes to lane r%FoldLanes of block r/FoldBlock. The lanes of a block are folded
// in halves, and blocks are joined in order. These numbers are promised to users.
const (
	FoldLanes = 64
	FoldBlock = 4096
)

// Fold computes one result of a reduction in the promised order. It defines every op of
// ClassReduce, and is slow and simple. Elements and result have the dtype of the tensors. A storage
// dtype is folded in the dtype that computes, see [DType.Compute], and rounded once at the end.
type Fold struct {
	dt  DType // of the elements
	op  *Info
	acc accumulator
}

// accumulator is one way to fold, in a dtype that computes. y is the second operand of ops with
// two, and as long as x.
type accumulator interface {
	add(x, y []uint64)
	result() uint64
}

// NewFold starts a reduction by op, of ClassReduce, of elements of dtype dt.
func NewFold(op Op, dt DType) *Fold { return KeepDenormals.NewFold(op, dt) }

// NewFold is the function NewFold with denormals treated as d says.
func (d Denormals) NewFold(op Op, dt DType) *Fold {
	f := &Fold{dt: dt, op: op.Info()}
	carry := dt.Compute()
	switch {
	case op == Dot:
		f.acc = newDotFold(carry, d)
	case f.op.Position:
		f.acc = &argFold{dt: carry, least: op == ArgMin}
	default:
		f.acc = newLaneFold(op, carry, d)
	}
	return f
}

// Add takes the next elements, any number of them: one row per operand, all of the same length.
func (f *Fold) Add(rows ...[]uint64) {
	var in [2][]uint64
	for i, row := range rows {
		in[i] = widenRow(f.dt, row)
	}
	f.acc.add(in[0], in[1])
}

// Result is the value after the last element; Add must not be called after it. For a reduction to a
// position it is the position, counted from 0. The sum of no elements is +0; other reductions of no
// elements give their start.
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

func newLaneFold(op Op, dt DType, d Denormals) *laneFold {
	f := &laneFold{join: newJoiner(op.Info().Combine, dt, d), start: FoldStart(op, dt)}
	if op != Sum { // -0 is neutral, but the sum of no elements is +0
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

func (f *laneFold) add(x, _ []uint64) {
	for len(x) > 0 {
		if f.n > 0 && f.n%FoldBlock == 0 {
			f.endBlock()
		}
		l := f.n % FoldLanes
		n := min(len(x), FoldLanes-l)
		f.join.rows(f.lanes[l:l+n], x[:n])
		f.n, x = f.n+n, x[n:]
	}
}

// endBlock adds the lanes to the total; f.n counts the block's last element.
func (f *laneFold) endBlock() {
	for w := FoldLanes / 2; w > 0; w /= 2 {
		f.join.rows(f.lanes[:w], f.lanes[w:2*w])
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

// argFold finds the position of the greatest or least element: the first NaN, else the first of
// equals, with -0 below +0. Positions decide between equals, so the result does not depend on any
// order of joining.
type argFold struct {
	dt    DType
	least bool
	n     int
	best  uint64 // sort key of the best so far
	at    int
}

func (f *argFold) add(x, _ []uint64) {
	for _, x := range x {
		if key := SortKey(f.dt, x, f.least); f.n == 0 || key > f.best {
			f.best, f.at = key, f.n
		}
		f.n++
	}
}

func (f *argFold) result() uint64 { return uint64(f.at) }

// joiner is an elementwise op of two operands of one dtype, looked up once.
type joiner struct {
	prim prim
	prog *Prog // if the op is not a primitive
	d    Denormals
}

func newJoiner(op Op, dt DType, d Denormals) joiner {
	if op.Info().Prim {
		return joiner{prim: d.primOf(op, dt, dt)}
	}
	return joiner{prog: Expansion(op, dt, []DType{dt, dt}), d: d}
}

func (j *joiner) do(a, b uint64) uint64 {
	if j.prog != nil {
		return j.d.evalFirst(j.prog, []uint64{a, b})
	}
	return j.prim(a, b, 0)
}

// rows joins each element of b to the corresponding element of a.
func (j *joiner) rows(a, b []uint64) {
	if j.prog != nil {
		j.d.evalRows(j.prog, [][]uint64{a, b}, a)
		return
	}
	for i := range a {
		a[i] = j.prim(a[i], b[i], 0)
	}
}

// widenRow is [widenBits] of every element.
func widenRow(dt DType, row []uint64) []uint64 {
	if !dt.Storage() {
		return row
	}
	wide := make([]uint64, len(row))
	for i, x := range row {
		wide[i] = widenBits(dt, x)
	}
	return wide
}

// widenBits converts an element to the dtype in which it is folded.
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

// narrowBits converts a result back: floats round, integers wrap.
func narrowBits(dt DType, x uint64) uint64 {
	switch {
	case dt.Compute() == dt:
		return x
	case dt.IsFloat():
		return FloatBits(dt, BitsFloat(dt.Compute(), x))
	}
	return x & widthMask(dt)
}
