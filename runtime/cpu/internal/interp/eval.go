package interp

import (
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// walkClass is how an operand's elements follow each other, during a whole call.
type walkClass uint8

const (
	walkUniform walkClass = iota // one element for every point
	walkLinear                   // the element of point p follows that of p-1
	walkStrided                  // anything else
)

// walkStep is an instruction to run for every block.
type walkStep struct {
	instr int32
	class walkClass // of its operand
	copy  bool      // a load that must be copied out of the operand's memory
}

// evaluation is one call of a block program.
type evaluation struct {
	t      *Program
	a      *operands.Args
	v      []value
	list   []walkStep
	class  []walkClass // of operands
	direct []bool      // stores whose values are computed in place in memory
	regs   unsafe.Pointer
	own    unsafe.Pointer // one group per value that is the same at every point
	begin  int64          // first point of the call
	p, n   int64          // points [p, p+n) are the current block
	groups int
	at     [runtime.MaxRank]int64 // position of p; not used if all operands are linear
	rows   bool                   // blocks stay inside a row
}

// Run computes points [begin, end) of the domain. Several threads may call it at once, each with
// its own scratch memory and room. It keeps no reference to a.
func (t *Program) Run(a *operands.Args, room *Room, begin, end int64) {
	scratch := unsafe.Pointer(unsafe.SliceData(a.Scratch))
	e := evaluation{t: t, a: a, begin: begin, p: begin,
		// Values are not in the scratch memory: they contain pointers, which the garbage collector
		// must see, and it does not scan the scratch memory.
		v:    room.take(len(t.instrs)),
		list: unsafe.Slice((*walkStep)(unsafe.Add(scratch, t.listAt())), len(t.instrs))[:0],
		regs: unsafe.Add(scratch, t.regsAt()), own: unsafe.Add(scratch, t.uniformsAt())}
	flags := unsafe.Add(scratch, t.flagsAt())
	e.class = unsafe.Slice((*walkClass)(flags), t.nops)
	e.direct = unsafe.Slice((*bool)(unsafe.Add(flags, t.nops)), len(t.stores))
	linear := true
	classify := func(slot int32) {
		e.class[slot] = classifyWalk(a, &a.Ops[slot])
		linear = linear && e.class[slot] != walkStrided
	}
	for i := range t.instrs {
		switch in := &t.instrs[i]; in.fn {
		case fnLoad, fnIndexLo, fnIndexHi:
			classify(in.slot)
		}
	}
	for i := range t.stores {
		if t.stores[i].reduce == 0 {
			classify(t.stores[i].slot)
		}
	}
	for i := range t.instrs {
		linear = linear && !laneLoad(t.instrs[i].fn) // lane loads need the position
	}
	e.prepare()
	for i := range e.direct {
		e.direct[i] = e.straight(i)
	}
	e.rows = !linear && a.Rank > 0 && a.Dims[a.Rank-1] >= minRow
	if !linear {
		e.advance(begin)
	}
	for ; e.p < end; e.p += e.n {
		e.n = min(end-e.p, int64(t.block))
		if e.rows {
			e.n = min(e.n, a.Dims[a.Rank-1]-e.at[a.Rank-1])
		}
		e.groups = int((e.n + GroupLen - 1) / GroupLen)
		e.block()
		if !linear {
			e.advance(e.n)
		}
	}
	clear(e.v) // keep nothing of a launch
}

// take returns memory for n values.
func (r *Room) take(n int) []value {
	if r == nil {
		return make([]value, n)
	}
	if cap(r.values) < n {
		r.values = make([]value, n+n/2)
	}
	return r.values[:n]
}

func classifyWalk(a *operands.Args, o *operands.Operand) walkClass {
	if len(o.Stages) > 0 || o.Guard != 0 {
		return walkStrided
	}
	dense, uniform, linear := int64(1), true, true
	for d := a.Rank - 1; d >= 0; d-- {
		if a.Dims[d] == 1 {
			continue
		}
		uniform = uniform && o.Stride[d] == 0
		linear = linear && o.Stride[d] == dense
		dense *= a.Dims[d]
	}
	switch {
	case uniform:
		return walkUniform
	case linear:
		return walkLinear
	}
	return walkStrided
}

// prepare evaluates the values that are the same at every point, and lists the other instructions.
func (e *evaluation) prepare() {
	for i := range e.t.instrs {
		in := &e.t.instrs[i]
		step := walkStep{instr: int32(i)}
		switch in.fn {
		case fnConst:
			e.uniform(in, in.imm)
			continue
		case fnScalar:
			e.uniform(in, e.a.Scalars[in.slot])
			continue
		case fnLoadIf, fnLoadAt:
		case fnLoad, fnIndexLo, fnIndexHi:
			o := &e.a.Ops[in.slot]
			step.class = e.class[in.slot]
			step.copy = in.fn == fnLoad && e.copies(in)
			if step.class == walkUniform {
				bits := uint64(o.Offset)
				switch in.fn {
				case fnLoad:
					bits = operands.Element(unsafe.Add(o.Base, o.Offset*int64(in.size)), in.size)
				case fnIndexHi:
					bits >>= 32
				}
				e.uniform(in, bits)
				continue
			}
		default:
			same := true
			for _, s := range in.src {
				same = same && (s < 0 || e.v[s].step == 0)
			}
			if same {
				e.v[i] = value{unsafe.Add(e.own, i*uniformBytes), 0}
				e.t.fns[in.fn-fnFirst](in, e.v, 1)
				continue
			}
		}
		e.v[i] = value{e.reg(in), int(in.size) * GroupLen}
		e.list = append(e.list, step)
	}
}

func (e *evaluation) reg(in *instr) unsafe.Pointer {
	return unsafe.Add(e.regs, int(in.reg)*e.t.block)
}

// uniform sets a value to one group that holds bits everywhere.
func (e *evaluation) uniform(in *instr, bits uint64) {
	p := unsafe.Add(e.own, int(in.dst)*uniformBytes)
	switch in.size {
	case 1:
		fillGroup((*[GroupLen]uint8)(p), uint8(bits))
	case 2:
		fillGroup((*[GroupLen]uint16)(p), uint16(bits))
	case 4:
		fillGroup((*[GroupLen]uint32)(p), uint32(bits))
	default:
		fillGroup((*[GroupLen]uint64)(p), bits)
	}
	e.v[in.dst] = value{p, 0}
}

func fillGroup[T uint8 | uint16 | uint32 | uint64](g *[GroupLen]T, x T) {
	for i := range g {
		g[i] = x
	}
}

// overwrites reports that an output is in the memory of a loaded operand. Both have the same
// Access then, so only the order inside a block matters.
func (e *evaluation) overwrites(s *store, load *instr) bool {
	return s.reduce == 0 && e.a.Ops[s.slot].Base == e.a.Ops[load.slot].Base
}

// copies reports that a loaded value is stored while another store overwrites its memory: the
// value must be copied out before.
func (e *evaluation) copies(load *instr) bool {
	if int(load.last) < len(e.t.instrs) {
		return false
	}
	for i := range e.t.stores {
		if e.overwrites(&e.t.stores[i], load) {
			return true
		}
	}
	return false
}

// straight reports that a store's value may be computed in place in memory: a block function
// computes it, no earlier store stores it, and no operand in the same memory is read later.
func (e *evaluation) straight(k int) bool {
	s := &e.t.stores[k]
	if e.t.instrs[s.value].fn < fnFirst || e.v[s.value].step == 0 {
		return false
	}
	for i := range k {
		if e.t.stores[i].value == s.value {
			return false
		}
	}
	for i := range e.t.instrs {
		in := &e.t.instrs[i]
		if in.fn == fnLoad && in.last > s.value && e.overwrites(s, in) {
			return false
		}
	}
	return true
}

// advance moves the position n points on.
func (e *evaluation) advance(n int64) {
	for d := e.a.Rank - 1; d >= 0 && n > 0; d-- {
		i := e.at[d] + n
		n = i / e.a.Dims[d]
		e.at[d] = i - n*e.a.Dims[d]
	}
}

// block runs the program for points [p, p+n).
func (e *evaluation) block() {
	for i := range e.direct {
		if s := &e.t.stores[i]; e.direct[i] {
			v := &e.v[s.value]
			if v.p = nil; e.n%GroupLen == 0 {
				v.p = e.target(s)
			}
			if v.p == nil {
				v.p = e.reg(&e.t.instrs[s.value])
			}
		}
	}
	for _, step := range e.list {
		in := &e.t.instrs[step.instr]
		switch {
		case in.fn >= fnFirst:
			e.t.fns[in.fn-fnFirst](in, e.v, e.groups)
		case in.fn == fnLoad:
			e.load(in, step)
		case laneLoad(in.fn):
			e.lanes(in, e.n, e.reg(in))
			e.pad(e.reg(in), int64(in.size))
		default:
			e.position(in, step)
		}
	}
	for i := range e.t.stores {
		e.store(&e.t.stores[i])
	}
}

// dense returns the address of the block's elements of an operand if they are step apart, else
// nil.
func (e *evaluation) dense(o *operands.Operand, class walkClass, size int64, step int64) unsafe.Pointer {
	if class == walkLinear {
		return unsafe.Add(o.Base, (o.Offset+e.p)*size)
	}
	last := e.a.Rank - 1
	if !e.rows || len(o.Stages) > 0 || o.Guard != 0 || o.Stride[last] != step {
		return nil
	}
	pos := o.Offset
	for d := range e.a.Rank {
		pos += e.at[d] * o.Stride[d]
	}
	return unsafe.Add(o.Base, pos*size)
}
