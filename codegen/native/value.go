package native

import "sync"

// value is the result of an instruction before it has a register: a number, from 1 on. 0 means
// none.
type value int32

// home is memory that holds a value permanently, so the value is never spilled.
type home uint8

const (
	noHome   home = iota
	inPool        // a constant
	inFrame       // a value that is the same for the whole call, or for a row
	anywhere      // no memory needed: a mask of all lanes or of none
)

// info describes a value.
type info struct {
	mask   bool // in a mask register
	size   int  // bytes of the vector
	home   home
	mem    mem // of home
	spill  int32
	elem   uint8 // bytes of a constant's element
	reg    int16 // its register, -1: in memory
	pinned bool  // to its register, for a whole loop
	uses   []int32
	next   int // index of the next use in uses
}

// item is an instruction on values, or several that belong together.
type item struct {
	o       op
	size    int
	d       value
	s       [3]value // vvvv, ModRM.rm, and the mask of vblendv or the addend of an fma
	mem     mem      // of an explicit operand in memory
	inMem   bool
	pre     func()
	imm     int16
	k       value
	zero    bool
	tmps    int // number of vector registers that emit may use
	emit    func(r *regs)
	note    string
	atFirst bool // d may not be the register of an operand
}

// regs are the registers of an item with an emit function.
type regs struct {
	d   uint8
	s   [3]uint8
	k   uint8
	tmp [2]uint8
}

// file is a set of registers.
type file struct {
	owner []value // 0: free, -1: not available
	lock  []bool  // used by the present item
}

func newFile(n int) file { return file{owner: make([]value, n), lock: make([]bool, n)} }

// code is a function that is being made: the items of the present part, and the state of the
// registers after the instructions emitted so far.
type code struct {
	*asm
	kernel
	lanes   int
	width   int // bytes of the widest value
	vals    []info
	items   []item
	folds   []int          // by fold: place of its lanes in the frame
	accs    []*accumulator // by fold: its accumulator in registers, nil if its lanes are in the frame
	turns   int            // turns of the loop that together cover all lanes; 0 if it is unknown which lanes a vector has
	inTurn  bool           // the code being emitted is one of the turns
	turn    int            // its number
	lists   *lists
	consts  map[constant]value
	vecs    file
	masks   file
	pos     int32
	frame   *Frame
	cold    []func()
	subs    map[uint64]*routine
	tail    value // mask of the valid lanes, 0: all are valid
	tail8   value // the same for 8-byte lanes, if masks are vectors
	tables  map[uint64]mem
	pins    []value // values that loops keep in registers
	laneReg uint8   // scratch register of eachLane
	slow    int     // worst-case instructions of lane-by-lane items so far
	step    int     // the same for one vector of the loop
}

// scratch holds the lists of finished codes for reuse. Programs wait for Compile, and a third of
// its time was allocation.
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

// recycle puts the code's lists back; the code is not used any more. Objects to which the unused
// rest of the lists points are freed when the collector empties the pool.
func (c *code) recycle() {
	c.lists.vals, c.lists.items = c.vals, c.items
	scratch.Put(c.lists)
	c.lists, c.vals, c.items = nil, nil, nil
}

func (c *code) newValue(v info) value {
	v.reg, v.spill = -1, -1
	if n := len(c.vals); n < cap(c.vals) {
		v.uses = c.vals[:n+1][n].uses[:0] // reuse the list of an earlier value
	}
	c.vals = append(c.vals, v)
	return value(len(c.vals) - 1)
}

// vec makes a value of n bytes.
func (c *code) vec(n int) value { return c.newValue(info{size: n}) }

// item appends an item and returns its result.
func (c *code) item(it item) value {
	c.items = append(c.items, it)
	return it.d
}

// op3 is an instruction with two operands.
func (c *code) op3(o op, size int, x, y value) value {
	return c.item(item{o: o, size: size, d: c.vec(size), s: [3]value{x, y}, imm: noImm})
}

func (c *code) op3i(o op, size int, x, y value, imm int16) value {
	return c.item(item{o: o, size: size, d: c.vec(size), s: [3]value{x, y}, imm: imm})
}

// op2 is an instruction with one operand. size is the size of the instruction, out that of the
// result.
func (c *code) op2(o op, size, out int, x value) value {
	return c.item(item{o: o, size: size, d: c.vec(out), s: [3]value{0, x}, imm: noImm})
}

func (c *code) op2i(o op, size, out int, x value, imm int16) value {
	return c.item(item{o: o, size: size, d: c.vec(out), s: [3]value{0, x}, imm: imm})
}

// toMask is an instruction whose result is in a mask register.
func (c *code) toMask(o op, size int, x, y value, imm int16) value {
	return c.item(item{o: o, size: size, d: c.newValue(info{mask: true, size: size}), s: [3]value{x, y}, imm: imm})
}

// splat is a vector of n bytes with the same element in all lanes.
func (c *code) splat(elem int, bits uint64, n int) value {
	key := constant{bits: bits, size: uint8(elem), count: uint8(n / elem)}
	if v, ok := c.consts[key]; ok {
		return v
	}
	m := mem{}
	if c.isa.EVEX && n == 16 && elem == 8 { // no broadcast instruction has this form
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

// settle records at which items each value is used.
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

// pressure returns the largest number of live vectors, without those that have a home.
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
