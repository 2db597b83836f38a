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
// meaning of Sum and Max, slow and obvious.
type Fold struct {
	elem    DType // of the elements and the result
	dt      DType // what is folded: elem's Compute
	combine Op
	start   uint64
	lanes   [FoldLanes]uint64
	n       int    // elements so far
	total   uint64 // of the finished blocks
}

// NewFold starts a reduction by op, which is Sum or Max, in dtype dt.
func NewFold(op Op, dt DType) *Fold {
	f := &Fold{elem: dt, dt: dt.Compute(), combine: Add}
	f.start = FoldStart(op, f.dt)
	if op == Max {
		f.combine = Maximum
	}
	f.reset()
	return f
}

// FoldStart is the value every lane starts from: it changes no element. A sum
// of floats starts from -0, because +0 would turn a sum of -0 into +0.
func FoldStart(op Op, dt DType) uint64 {
	switch {
	case op == Max && dt == Float32:
		return 0xff800000
	case op == Max && dt == Float64:
		return 0xfff0000000000000
	case op == Max && !dt.IsSigned():
		return 0
	case op == Max, dt.IsFloat():
		return 1 << (dt.Bits() - 1)
	}
	return 0
}

func (f *Fold) reset() {
	for l := range f.lanes {
		f.lanes[l] = f.start
	}
}

func (f *Fold) join(a, b uint64) uint64 {
	return EvalOp(f.combine, f.dt, []DType{f.dt, f.dt}, []uint64{a, b})
}

// Add takes the next element.
func (f *Fold) Add(bits uint64) {
	if f.n > 0 && f.n%FoldBlock == 0 {
		f.endBlock()
	}
	l := f.n % FoldLanes
	f.lanes[l] = f.join(f.lanes[l], f.cast(f.dt, f.elem, bits))
	f.n++
}

// endBlock adds the lanes to the total; f.n counts the block's last element.
func (f *Fold) endBlock() {
	for w := FoldLanes / 2; w > 0; w /= 2 {
		for l := range w {
			f.lanes[l] = f.join(f.lanes[l], f.lanes[l+w])
		}
	}
	if f.n <= FoldBlock {
		f.total = f.lanes[0]
	} else {
		f.total = f.join(f.total, f.lanes[0])
	}
	f.reset()
}

// Result is the value after the last element; nothing may be added after it.
// The sum of no elements is +0.
func (f *Fold) Result() uint64 {
	if f.n == 0 {
		return 0
	}
	f.endBlock()
	if f.elem.Storage() && f.elem.IsInt() {
		return f.total & widthMask(f.elem) // wraps
	}
	return f.cast(f.elem, f.dt, f.total)
}

// cast brings a value of a storage dtype to what it is folded in, and back:
// 16-bit floats are rounded once, at the end.
func (f *Fold) cast(to, from DType, bits uint64) uint64 {
	if to == from {
		return bits
	}
	return EvalOp(Cast, to, []DType{from}, []uint64{bits})
}
