package ir

// DotBlock is the length of the blocks of a contraction: the products r of block r/DotBlock are
// added one by one, and the blocks in order. It is promised to users. The order depends on nothing
// else, neither on the other dims of the operands nor on the number of threads. So an element of a
// product of matrices is the same alone and in any batch.
const DotBlock = 256

// dotFold is the order of a contraction: in each block a chain of fused multiply-adds starting at
// +0, and a total, starting at +0, to which the blocks' sums are added. Integers multiply and add,
// wrapping.
type dotFold struct {
	mulAdd prim
	sum    prim
	n      int
	block  uint64
	total  uint64
}

func newDotFold(dt DType, d Denormals) *dotFold {
	f := &dotFold{sum: d.primOf(Add, dt, dt)}
	if dt.IsFloat() {
		f.mulAdd = d.primOf(FMA, dt, dt)
	} else {
		mul := d.primOf(Mul, dt, dt)
		f.mulAdd = func(x, y, z uint64) uint64 { return f.sum(mul(x, y, 0), z, 0) }
	}
	return f
}

func (f *dotFold) add(x, y []uint64) {
	for i := range x {
		if f.n > 0 && f.n%DotBlock == 0 {
			f.endBlock()
		}
		f.block = f.mulAdd(x[i], y[i], f.block)
		f.n++
	}
}

func (f *dotFold) endBlock() {
	f.total, f.block = f.sum(f.total, f.block, 0), 0
}

func (f *dotFold) result() uint64 {
	if f.n > 0 {
		f.endBlock()
	}
	return f.total
}
