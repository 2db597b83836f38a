package native

import (
	"slices"
	"sync"

	"github.com/millrace-go/millrace/ir"
)

// Value is the result of an instruction before it has a register: a number, from 1 on. 0 means
// none.
type Value int32

// home is memory that holds a value permanently, so the value is never spilled.
type home uint8

const (
	noHome   home = iota
	InPool        // a constant
	InFrame       // a value that is the same for the whole call, or for a row
	anywhere      // no memory needed: a mask of all lanes or of none
)

// Info describes a value.
type Info struct {
	Size   int // bytes of the vector
	Mem    Mem // of Home
	Spill  int32
	part   int32 // the part for which next and used hold, see settle
	next   int32 // the next item that uses it, or Forever
	used   int32 // how often items use it
	Reg    int16 // its register, -1: in memory
	Home   home
	Elem   uint8 // bytes of a constant's element
	Mask   bool  // in a mask register
	Pinned bool  // to its register, for a whole loop
	one    bool  // the memory of Home has one element for all lanes
}

// Op is an instruction of vectors by its number, which each target gives.
type Op uint16

const OpNone Op = 0

// Item is an instruction on values, or several that belong together.
type Item struct {
	O       Op
	Imm     int16
	D       Value
	S       [3]Value // vvvv, ModRM.rm, and the mask of vblendv or the addend of an fma
	K       Value
	after   [4]int32 // by operand, K last: the next item that uses it, or Forever
	Mem     Mem      // of an explicit operand in memory
	InMem   bool
	Zero    bool
	AtFirst bool  // D may not be the register of an operand
	Tmps    uint8 // number of vector registers that Emit may use
	Size    int
	Pre     func()
	Emit    func(r *Regs)
	note    string
}

// Regs are the registers of an item with an emit function.
type Regs struct {
	D   uint8
	S   [3]uint8
	K   uint8
	Tmp [2]uint8
}

// file is a set of registers.
type file struct {
	Owner []Value // 0: free, -1: not available
	Lock  []bool  // used by the present item
}

// tailMaskReg is the mask register that has the valid lanes of a row's last vector.
const tailMaskReg = 7

// newMasks is a file of mask registers. Register 0 means no mask.
func newMasks() file {
	f := newFile(8)
	f.Owner[0], f.Owner[tailMaskReg] = -1, -1
	return f
}

func newFile(n int) file { return file{Owner: make([]Value, n), Lock: make([]bool, n)} }

// Builder makes a function of values: the items of the present part, and the state of the registers
// after the instructions emitted so far.
type Builder struct {
	*Buffer
	m         Machine
	Lanes     int
	width     int // bytes of the widest value
	Denormals ir.Denormals
	Vals      []Info
	items     []Item
	planned   []Item // of a step of the loop, see plan
	part      int32  // number of the part whose items were settled last
	lists     *lists
	consts    map[Constant]Value
	Vecs      file
	Masks     file
	Pos       int32
	frame     *Frame
	Cold      []func()
	Tail      Value // mask of the valid lanes, 0: all are valid
	tail8     Value // the same for 8-byte lanes, if masks are vectors
	LaneReg   uint8 // scratch register of eachLane
	slow      int   // worst-case instructions of lane-by-lane items so far
}

// code is a builder with the kernel of which it makes a function.
type code struct {
	*Builder
	Machine
	kernel
	folds  []int          // by fold: place of its lanes in the frame
	accs   []*Accumulator // by fold: its accumulator in registers, nil if its lanes are in the frame
	turns  int            // turns of the loop that together cover all lanes; 0 if it is unknown which lanes a vector has
	inTurn bool           // the code being emitted is one of the turns
	turn   int            // its number
	subs   map[uint64]*routine
	tables map[uint64]Mem
	pins   []Value  // values that loops keep in registers
	step   int      // worst-case instructions of lane-by-lane items for one vector of the loop
	parts  []Value  // the memory of a part
	args   struct { // of the instruction that is being spelled
		x   [4]Value
		dts [4]ir.DType
	}
}

// scratch holds the lists of finished codes for reuse. Programs wait for Compile, and a third of
// its time was allocation.
var scratch = sync.Pool{New: func() any {
	return &lists{vals: make([]Info, 1, 1536), items: make([]Item, 0, 256), buf: make([]byte, 0, 8<<10), fixes: make([]Fix, 0, 256)}
}}

// lists are the longest lists of a code.
type lists struct {
	vals           []Info
	items, planned []Item
	buf            []byte
	fixes          []Fix
}

func newCode(isa *ISA) *code {
	l := scratch.Get().(*lists)
	b := &Builder{Buffer: &Buffer{ISA: isa, Buf: l.buf[:0], Fixes: l.fixes[:0]}, Vals: l.vals[:1], items: l.items[:0], planned: l.planned[:0], lists: l, consts: map[Constant]Value{}}
	b.m = isa.New(b.Buffer, b)
	c := &code{Builder: b, Machine: b.m, subs: map[uint64]*routine{}, tables: map[uint64]Mem{}}
	c.Vecs, c.Masks = newFile(isa.Regs), newMasks()
	return c
}

// setKernel makes a kernel the present one.
func (c *code) setKernel(k kernel) { c.kernel, c.Denormals = k, k.k.Denormals }

// recycle puts the code's lists back; the code is not used any more. Objects to which the unused
// rest of the lists points are freed when the collector empties the pool.
func (c *Builder) recycle() {
	*c.lists = lists{c.Vals, c.items, c.planned, c.Buf, c.Fixes}
	scratch.Put(c.lists)
	c.lists, c.Vals, c.items, c.planned, c.Buf, c.Fixes = nil, nil, nil, nil, nil, nil
}

// finished finishes the buffer and returns a copy of the code, because another code reuses the memory.
func (c *Builder) finished(m Machine) ([]byte, error) {
	code, err := c.Buffer.Finish(m)
	return slices.Clone(code), err
}

func (c *Builder) NewValue(v Info) Value {
	v.Reg, v.Spill = -1, -1
	c.Vals = append(withRoom(c.Vals), v)
	return Value(len(c.Vals) - 1)
}

// withRoom returns a list with room for one more. A full list doubles: append would let long lists
// grow by a quarter, and so allocate five times as much as they need.
func withRoom[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	return slices.Grow(list, max(len(list), 64))
}

// Vec makes a value of n bytes.
func (c *Builder) Vec(n int) Value { return c.NewValue(Info{Size: n}) }

// Item appends an item and returns its result.
func (c *Builder) Item(it Item) Value {
	c.items = append(withRoom(c.items), it)
	return it.D
}

// Op3 is an instruction with two operands.
func (c *Builder) Op3(o Op, size int, x, y Value) Value {
	return c.Item(Item{O: o, Size: size, D: c.Vec(size), S: [3]Value{x, y}, Imm: NoImm})
}

func (c *Builder) Op3i(o Op, size int, x, y Value, imm int16) Value {
	return c.Item(Item{O: o, Size: size, D: c.Vec(size), S: [3]Value{x, y}, Imm: imm})
}

// Op2 is an instruction with one operand. size is the size of the instruction, out that of the
// result.
func (c *Builder) Op2(o Op, size, out int, x Value) Value {
	return c.Item(Item{O: o, Size: size, D: c.Vec(out), S: [3]Value{0, x}, Imm: NoImm})
}

func (c *Builder) Op2i(o Op, size, out int, x Value, imm int16) Value {
	return c.Item(Item{O: o, Size: size, D: c.Vec(out), S: [3]Value{0, x}, Imm: imm})
}

// Splat is a vector of n bytes with the same element in all lanes.
func (c *Builder) Splat(elem int, bits uint64, n int) Value {
	key := Constant{Bits: bits, Size: uint8(elem), Count: uint8(n / elem)}
	if v, ok := c.consts[key]; ok {
		return v
	}
	count, one := c.m.ConstantOf(elem, n)
	m := c.Constant(Constant{bits, uint8(elem), uint8(count)})
	v := c.NewValue(Info{Size: n, Home: InPool, Mem: m, Elem: uint8(elem), one: one})
	c.consts[key] = v
	return v
}

// settle begins a part: it links the items that use the same value.
func (c *Builder) settle() {
	c.part++
	for i := len(c.items) - 1; i >= 0; i-- {
		it := &c.items[i]
		for j, v := range it.operands() {
			if v <= 0 {
				continue
			}
			x := &c.Vals[v]
			if x.part != c.part {
				x.part, x.next, x.used = c.part, Forever, 0
			}
			if x.used++; x.next != int32(i) { // else it is used twice here
				it.after[j], x.next = x.next, int32(i)
			}
		}
	}
}

// operands are the values that an item uses, or 0.
func (it *Item) operands() [4]Value { return [4]Value{it.S[0], it.S[1], it.S[2], it.K} }

// Swap exchanges the first two operands, which differ.
func (it *Item) Swap() {
	it.S[0], it.S[1], it.after[0], it.after[1] = it.S[1], it.S[0], it.after[1], it.after[0]
}

// next returns the next item that uses operand v.
func (it *Item) next(v Value) int32 {
	for j, s := range it.operands() {
		if s == v {
			return it.after[j]
		}
	}
	return Forever
}

// uses counts the uses of a value in this part.
func (c *Builder) uses(v Value) int {
	if x := &c.Vals[v]; x.part == c.part {
		return int(x.used)
	}
	return 0
}

// pressure returns the largest number of live vectors, without those that have a home.
func (c *Builder) pressure() int {
	c.settle()
	live, most := 0, 0
	for i := range c.items {
		it := &c.items[i]
		most = max(most, live+int(it.Tmps))
		for j, s := range it.S {
			if s > 0 && (j == 0 || it.S[0] != s) && (j < 2 || it.S[1] != s) && c.counts(s) && it.next(s) == Forever {
				live--
			}
		}
		if it.D > 0 && c.counts(it.D) && c.uses(it.D) > 0 {
			live++
		}
		most = max(most, live+int(it.Tmps))
	}
	return most
}

func (c *Builder) counts(v Value) bool { return !c.Vals[v].Mask && c.Vals[v].Home == noHome }
