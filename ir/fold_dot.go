package ir

// DotBlock is the length of the runs of a contraction: products r of block
// r/DotBlock are added one by one, blocks in order. It is part of what users are
// promised. Nothing else enters the order: neither the other dims of the
// operands nor the number of threads, so an element of a product of matrices is
// the same alone and in any batch.
const DotBlock = 256

// dotFold is the order of a contraction: a chain of fused multiply-adds from +0
// in each block, and the blocks' sums added to a total from +0. Integers
// multiply and add, wrapping.
type dotFold struct {
	dt    DType
	n     int
	block uint64
	total uint64
}

func newDotFold(dt DType) *dotFold { return &dotFold{dt: dt} }

func (f *dotFold) eval(op Op, args ...uint64) uint64 {
	dts := [3]DType{f.dt, f.dt, f.dt}
	return EvalPrim(Instr{Op: op, DT: f.dt}, dts[:len(args)], args)
}

func (f *dotFold) add(x, y uint64) {
	if f.n > 0 && f.n%DotBlock == 0 {
		f.endBlock()
	}
	if f.dt.IsFloat() {
		f.block = f.eval(FMA, x, y, f.block)
	} else {
		f.block = f.eval(Add, f.eval(Mul, x, y), f.block)
	}
	f.n++
}

func (f *dotFold) endBlock() {
	f.total, f.block = f.eval(Add, f.total, f.block), 0
}

func (f *dotFold) result() uint64 {
	if f.n > 0 {
		f.endBlock()
	}
	return f.total
}
