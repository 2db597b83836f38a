package native

import "sync"

// value is what an instruction makes, before it is known which register holds it: a
// number, from 1 on. 0 is none.
type value int32

// home is memory that holds a value for good, so that it need never be stored.
type home uint8

const (
	noHome   home = iota
	inPool        // a constant
	inFrame       // what is the same for the whole call, or for a row
	anywhere      // no memory: a mask of all lanes or of none
)

// info is what is known of a value.
type info struct {
	mask   bool // in a mask register
	size   int  // bytes of the vector
	home   home
	mem    mem // of home
	spill  int32
	elem   uint8 // bytes of a constant's element
	reg    int16 // where it is now, -1: in memory
	pinned bool  // for a whole loop
	uses   []int32
	next   int // of uses
}

// item is an instruction on values, or a few that belong together.
type item struct {
	o       op
	size    int
	d       value
	s       [3]value // vvvv, ModRM.rm, and a mask of vblendv or what fma adds
	mem     mem      // of an explicit operand in memory
	inMem   bool
	pre     func()
	imm     int16
	k       value
	zero    bool
	tmps    int // vector registers that emit may use
	emit    func(r *regs)
	note    string
	atFirst bool // d may not be the register of an operand
}

// regs are the registers of an item that emits by itself.
type regs struct {
	d   uint8
	s   [3]uint8
	k   uint8
	tmp [2]uint8
}

// file is a set of registers.
type file struct {
	owner []value // 0: free, -1: not to be had
	lock  []bool  // of the item at hand
}

func newFile(n int) file { return file{owner: make([]value, n), lock: make([]bool, n)} }

// code is a function in the making: the instructions on values of the part at hand, and
// the registers as they are after those that were emitted.
type code struct {
	*asm
	kernel
	lanes   int
	width   int // bytes of the widest value
	vals    []info
	items   []item
	folds   []int          // where the lanes of folds are in the frame
	accs    []*accumulator // of folds, nil where their lanes are there
	turns   int            // of the loop that take all lanes; 0 where it is not known which a vector has
	inTurn  bool           // what is emitted is one of them
	turn    int            // its number
	lists   *lists
	consts  map[constant]value
	vecs    file
	masks   file
	pos     int32
	frame   *Frame
	cold    []func()
	subs    map[uint64]*routine
	tail    value // mask of the lanes that count, 0: all
	tail8   value // the same for lanes of eight bytes, where masks are vectors
	tables  map[uint64]mem
	pins    []value // what loops keep in registers
	laneReg uint8   // of eachLane
	slow    int     // instructions of the items so far that are done lane by lane, at worst
	step    int     // those of a vector of the loop
}

// scratch is memory of codes that were made, for the next: compiling is what a program
// waits for, and allocating was a third of it.
var scratch = sync.Pool{New: func() any { return &lists{vals: make([]info, 1, 256)} }}

// lists are the longest lists of a code.
type lists struct {
	vals  []info
	items []item
}

func newCode(isa *ISA) *code {
	l := scratch.Get().(*lists)
	c := &code{asm: &asm{isa: isa}, vals: l.vals[:1], items: l.items[:0], lists: l, consts: map[constant]value{}, subs: map[uint64]*routine{}, tables: map[uint64]mem{}}
	c.vecs, c.masks = newFile(isa.Regs), newFile(8)
	c.masks.owner[0], c.masks.owner[7] = -1, -1
	return c
}

// recycle gives the code's lists back: nothing of it is used again. What their rest still
// points to goes when the collector empties the pool.
func (c *code) recycle() {
	c.lists.vals, c.lists.items = c.vals, c.items
	scratch.Put(c.lists)
	c.lists, c.vals, c.items = nil, nil, nil
}

func (c *code) newValue(v info) value {
	v.reg, v.spill = -1, -1
	if n := len(c.vals); n < cap(c.vals) {
		v.uses = c.vals[:n+1][n].uses[:0] // of one that was there before
	}
	c.vals = append(c.vals, v)
	return value(len(c.vals) - 1)
}

// vector is a new value of n bytes.
func (c *code) vec(n int) value { return c.newValue(info{size: n}) }

// add appends an item and returns what it makes.
func (c *code) item(it item) value {
	c.items = append(c.items, it)
	return it.d
}

// op3 is an instruction of two operands.
func (c *code) op3(o op, size int, x, y value) value {
	return c.item(item{o: o, size: size, d: c.vec(size), s: [3]value{x, y}, imm: noImm})
}

func (c *code) op3i(o op, size int, x, y value, imm int16) value {
	return c.item(item{o: o, size: size, d: c.vec(size), s: [3]value{x, y}, imm: imm})
}

// op2 is an instruction of one operand. size is that of the instruction, out of the result.
func (c *code) op2(o op, size, out int, x value) value {
	return c.item(item{o: o, size: size, d: c.vec(out), s: [3]value{0, x}, imm: noImm})
}

func (c *code) op2i(o op, size, out int, x value, imm int16) value {
	return c.item(item{o: o, size: size, d: c.vec(out), s: [3]value{0, x}, imm: imm})
}

// toMask is an instruction that leaves a mask register.
func (c *code) toMask(o op, size int, x, y value, imm int16) value {
	return c.item(item{o: o, size: size, d: c.newValue(info{mask: true, size: size}), s: [3]value{x, y}, imm: imm})
}

// constant is the same element in all lanes of a vector of n bytes.
func (c *code) splat(elem int, bits uint64, n int) value {
	key := constant{bits: bits, size: uint8(elem), count: uint8(n / elem)}
	if v, ok := c.consts[key]; ok {
		return v
	}
	m := mem{}
	if c.isa.EVEX && n == 16 && elem == 8 { // no instruction broadcasts it there
		m = c.asm.constant(constant{bits, 8, 2})
	} else if c.isa.EVEX {
		m = c.asm.constant(constant{bits, uint8(elem), 1})
	} else {
		m = c.asm.constant(constant{bits, uint8(elem), uint8(c.isa.Bytes / elem)})
	}
	v := c.newValue(info{size: n, home: inPool, mem: m, elem: uint8(elem)})
	c.consts[key] = v
	return v
}

// settle appends when the values of the part's items are used.
func (c *code) settle() {
	for i := range c.vals {
		c.vals[i].uses, c.vals[i].next = c.vals[i].uses[:0], 0
	}
	for i := range c.items {
		it := &c.items[i]
		for _, s := range [...]value{it.s[0], it.s[1], it.s[2], it.k} {
			if s > 0 {
				c.vals[s].uses = append(c.vals[s].uses, int32(i))
			}
		}
	}
}

// pressure is the most vectors that are alive at once, those of a home left out.
func (c *code) pressure() int {
	c.settle()
	live, most := 0, 0
	for i := range c.items {
		it := &c.items[i]
		most = max(most, live+it.tmps)
		for j, s := range it.s {
			if s > 0 && (j == 0 || it.s[0] != s) && (j < 2 || it.s[1] != s) && c.counts(s) && c.vals[s].uses[len(c.vals[s].uses)-1] == int32(i) {
				live--
			}
		}
		if it.d > 0 && c.counts(it.d) && len(c.vals[it.d].uses) > 0 {
			live++
		}
		most = max(most, live+it.tmps)
	}
	return most
}

func (c *code) counts(v value) bool { return !c.vals[v].mask && c.vals[v].home == noHome }
