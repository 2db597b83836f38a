package native

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// pointers hold the addresses of the most used operands; other addresses are read from the frame
// when they are needed. rcx counts the points of a row, rdx is their number. rax, rbx, rsi and r15
// are free between items.
var pointers = [...]GPR{R8, R9, r10, r11, r12, R13}

// base returns the register that holds an operand's address. If none does, pre loads the address
// into spare.
func (c *code) base(i int, spare GPR) (g GPR, pre func()) {
	if g := c.pointer[i]; g != NoReg {
		return g, nil
	}
	return spare, func() { c.Load(spare, operandWord(i, Address)) }
}

// dense returns the address of a vector of neighbouring elements: vector u of a step.
func (c *code) dense(i, size, u int) (m Mem, pre func()) {
	g, pre := c.base(i, RAX)
	return Mem{Base: g, Index: RCX, Scale: uint8(size), Disp: int32(u * c.Lanes * size)}, pre
}

// operandValue loads the elements of operand i for vector u of a step. guard may be 0.
func (c *code) operandValue(i int, dt ir.DType, guard Value, u int) Value {
	switch c.v.Class[i] {
	case codegen.Splat:
		if guard == 0 {
			return c.splatLoad(i, dt)
		}
	case codegen.Contiguous:
		if v := c.denseLoad(i, dt, guard, u); v != 0 {
			return v
		}
	case codegen.Strided:
		if guard == 0 && c.Tail == 0 {
			return c.fromBytes(dt, c.apart(i, dt, u))
		}
	}
	return c.fromBytes(dt, c.laneLoad(i, dt, u, guard, nil))
}

// fromBytes converts a loaded vector: numbers to a mask for a Bool, else nothing.
func (c *code) fromBytes(dt ir.DType, v Value) Value {
	if dt != ir.Bool {
		return v
	}
	if c.ISA.Masks {
		return c.TestMask(c.Lanes*4, v)
	}
	return c.AsMask(c.spell(ir.Instr{Op: ir.Neg, DT: ir.Int32}, []Value{v}, nil))
}

func signedMemory(dt ir.DType) bool { return dt.Held() == ir.Int32 }

// AheadBytes is the distance from a load to the line that is prefetched with it. It is far enough
// for memory to answer in time, and near enough to stay in the first-level cache. Processors also
// prefetch themselves, but too little for a core that computes between its loads.
const AheadBytes = 2048

// askAhead prefetches the line that a later load needs. If several vectors share a line, only the
// first prefetches it.
func (c *code) askAhead(i int, m Mem) {
	if !c.v.Far || c.Tail != 0 || !c.ISA.Prefetches || c.pointer[i] == NoReg || m.Disp%cacheLine != 0 {
		return
	}
	m.Disp += AheadBytes
	c.Item(Item{Imm: NoImm, Emit: func(*Regs) { c.Prefetch(m, true) }})
}

// Dense is a vector of neighbouring elements in memory.
type Dense struct {
	Size   int // bytes of an element in memory
	Signed bool
	N      int // bytes of the vector in registers
	M      Mem
	Pre    func() // nil, or emits what must precede the access
}

// Before emits what must precede the access.
func (d *Dense) Before() {
	if d.Pre != nil {
		d.Pre()
	}
}

// neighbours returns vector u of a step of a dense operand.
func (c *code) neighbours(i int, dt ir.DType, u int) Dense {
	d := Dense{Size: dt.Size(), Signed: signedMemory(dt), N: c.Lanes * SizeOf(dt)}
	d.M, d.Pre = c.dense(i, d.Size, u)
	return d
}

// denseLoad loads neighbours. It returns 0 if they must be loaded lane by lane.
func (c *code) denseLoad(i int, dt ir.DType, guard Value, u int) Value {
	d := c.neighbours(i, dt, u)
	if guard == 0 {
		c.askAhead(i, d.M)
	}
	if v := c.LoadDense(d, guard); v != 0 {
		return c.fromBytes(dt, v)
	}
	return 0
}

// TailOf is the mask of the valid lanes, if masks are vectors.
func (c *Builder) TailOf(size int) Value {
	if size == 8 {
		return c.tail8
	}
	return c.Tail
}

// splatLoad reads one element into all lanes.
func (c *code) splatLoad(i int, dt ir.DType) Value {
	size := dt.Size()
	n := c.Lanes * SizeOf(dt)
	return c.fromBytes(dt, c.Item(Item{D: c.Vec(n), Imm: NoImm, Emit: func(r *Regs) {
		g, pre := c.base(i, RAX)
		if pre != nil {
			pre()
		}
		switch size {
		case 4, 8:
			c.SplatVec(r.D, n, size, At(g, 0))
		default:
			c.LoadSize(size, signedMemory(dt), RAX, At(g, 0))
			c.Spread(r.D, n, 4, RAX)
		}
	}}))
}

// along sets r to the address of the first point of vector u of a step, for an operand whose points
// are not neighbours. It changes spare.
func (c *code) along(i, u int, r, spare GPR) {
	c.Lea(r, At(RCX, u*c.Lanes))
	c.Imul(r, InMem(operandWord(i, Step)))
	if g := c.pointer[i]; g != NoReg {
		c.Op(Add, r, OfGPR(g))
	} else {
		c.Op(Add, r, InMem(operandWord(i, Address)))
	}
}

// apart reads a whole vector of elements that are a step apart.
func (c *code) apart(i int, dt ir.DType, u int) Value {
	d := Dense{Size: dt.Size(), Signed: signedMemory(dt), N: c.Lanes * SizeOf(dt), Pre: func() {
		c.along(i, u, RAX, RBX)
		c.Load(RSI, operandWord(i, Step))
	}}
	return c.LoadApart(d)
}

// storeValue writes a value through operand i.
func (c *code) storeValue(i int, dt ir.DType, v Value, u int) {
	v = c.toBytes(dt, v)
	size := dt.Size()
	if i < len(c.v.Class) && c.v.Class[i] == codegen.Strided || c.Tail != 0 && !c.Partial(size) {
		c.laneStore(i, size, v, u)
		return
	}
	c.StoreDense(c.neighbours(i, dt, u), v, c.v.Past>>i&1 != 0)
}

// toBytes converts a mask to numbers.
func (c *code) toBytes(dt ir.DType, v Value) Value {
	if dt != ir.Bool {
		return v
	}
	return c.Choice(v, c.Lanes*4, 4, 1)
}
