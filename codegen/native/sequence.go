package native

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A sequence is a function of several launches that run one after another, with so few elements
// that all is one straight line of code. It has no counters; sizes, offsets and scalars are in the
// code. If a launch leaves a value in a register, the next one need not load it. Results that only
// launches of the sequence read are not stored. The only loop repeats the whole sequence.

// ErrNoSequence says that a list of launches cannot be a sequence.
var ErrNoSequence = errors.New("codegen/native: launches that are no sequence")

// Launch is an elementwise launch of a sequence.
type Launch struct {
	Kernel  *codegen.Kernel // lowered
	Scalars []uint64
	Dims    []int64
	Args    []Arg
}

// Arg gives the place of an operand of a Launch, in elements of a buffer. Buffers have numbers.
type Arg struct {
	Buffer int
	Offset int64
	Stride []int64
}

// mostItems limits the instructions of a sequence, which then runs for a few microseconds and stays
// in a cache.
const mostItems = 4000

// CompileSequence makes code of launches on len(private) buffers. The contents of private buffers
// are not read afterwards. The frame has the buffers' addresses in place of scalars, and in rows
// the number of times to run the sequence.
func CompileSequence(list []Launch, private []bool, isa *ISA, text bool) (*Func, error) {
	if isa.A64 {
		return nil, fmt.Errorf("%w: none of arm64 yet", ErrNoSequence)
	}
	s := &sequence{code: newCode(isa), private: private, stored: make([]bool, len(private)), heads: map[[2]int]value{}}
	if text {
		s.lines = &listing{}
	}
	if err := s.shape(list); err != nil {
		return nil, err
	}
	for i := range list {
		l := list[i]
		l.Kernel = folded(&l)
		if err := s.chunks(&l, i); err != nil {
			return nil, err
		}
	}
	s.findStored()
	s.frame = newFrame(0, len(private))
	s.known = s.known[:0]
	for i := range s.runs {
		s.chunk(&s.runs[i])
		if len(s.items) > mostItems {
			return nil, fmt.Errorf("%w: more than %d instructions", ErrNoSequence, mostItems)
		}
	}
	work := len(s.items) + s.slow
	again := s.newLabel()
	s.load(rcx, at(rdi, FrameRows))
	s.asm.place(again)
	s.emitItems()
	s.opImm(sub, ofGPR(rcx), 1)
	s.jumpIf(notEqual, again)
	s.ret()
	for len(s.cold) > 0 {
		cold := s.cold
		s.cold = nil
		for _, f := range cold {
			f()
		}
	}
	code, err := s.finish()
	if err != nil {
		return nil, err
	}
	return &Func{Frame: *s.frame, Code: code, Work: work, Lanes: s.lanes, text: s.lines}, nil
}

// sequence is a sequence that is being made.
type sequence struct {
	*code
	private []bool
	stored  []bool // private buffers that are written because a load needs them from memory
	runs    []run
	known   []inRegisters
	heads   map[[2]int]value // masks of the first lanes, by number of lanes and bytes of a lane
}

// run is a vector of neighbouring points of a launch, or its last, partial vector.
type run struct {
	launch *Launch
	number int
	points int
	at     []span // by operand
}

// span is the place of a run's elements in a buffer, in bytes. still says that all points use the
// same element.
type span struct {
	buffer, offset, points, size int
	dt                           ir.DType
	still                        bool
}

func (p span) overlaps(q span) bool {
	return p.buffer == q.buffer && p.offset < q.offset+q.bytes() && q.offset < p.offset+p.bytes()
}

func (p span) bytes() int {
	if p.still {
		return p.size
	}
	return p.points * p.size
}

// inRegisters is a place whose contents are known as a value.
type inRegisters struct {
	span
	v value
}

// shape chooses the number of lanes. If all values have one size, vectors are as short as the
// launches allow, since unused lanes cost as much as used ones. Otherwise vectors are whole,
// because conversions between sizes do not exist for all lengths.
func (s *sequence) shape(list []Launch) error {
	var sizes [2]bool // 4, 8
	most := int64(1)
	look := func(code []ir.Instr) {
		for _, in := range code {
			if in.DT != ir.Bool {
				sizes[sizeOf(in.DT)/8] = true
			}
		}
	}
	for i := range list {
		l := &list[i]
		if len(l.Kernel.Reduces) > 0 || len(l.Args) != len(l.Kernel.Operands) {
			return fmt.Errorf("%w: launch %d folds", ErrNoSequence, i)
		}
		look(l.Kernel.Body)
		for j, in := range l.Kernel.Body {
			switch in.Op {
			case ir.LoadAt, ir.IndexLo, ir.IndexHi:
				return fmt.Errorf("%w: value %d of launch %d is %v", ErrNoSequence, j, i, in.Op)
			case ir.Load:
				if in.Args[0] != ir.None {
					return fmt.Errorf("%w: value %d of launch %d is loaded behind a guard", ErrNoSequence, j, i)
				}
			case ir.Rare:
				if p := ir.SubByID(in.Imm); p != nil {
					look(p.Code)
				}
			}
		}
		if n := len(l.Dims); n > 0 {
			most = max(most, l.Dims[n-1])
		}
	}
	if s.width = 4; sizes[1] {
		s.width = 8
	}
	s.lanes = s.isa.Bytes / s.width
	if sizes[0] != sizes[1] {
		for n := s.lanes; n >= 16/s.width && int64(n) >= most; n /= 2 {
			s.lanes = n
		}
	}
	return nil
}

// chunks appends the runs of a launch.
func (s *sequence) chunks(l *Launch, number int) error {
	rank := len(l.Dims)
	inner := int64(1)
	if rank > 0 {
		inner = l.Dims[rank-1]
	}
	outer := make([]int64, max(rank-1, 0))
	for {
		for from := int64(0); from < inner; from += int64(s.lanes) {
			r := run{launch: l, number: number, points: int(min(int64(s.lanes), inner-from))}
			for i, a := range l.Args {
				o := &l.Kernel.Operands[i]
				p := span{buffer: a.Buffer, points: r.points, size: o.DT.Size(), dt: o.DT}
				at, step := a.Offset, int64(1)
				for d, n := range outer {
					at += n * a.Stride[d]
				}
				if rank > 0 {
					step = a.Stride[rank-1]
					at += from * step
				}
				p.offset, p.still = int(at)*p.size, step == 0 && r.points > 1
				switch {
				case p.size < 4:
					return fmt.Errorf("%w: operand %d of launch %d is %v", ErrNoSequence, i, number, o.DT)
				case r.points > 1 && step != 0 && step != 1:
					return fmt.Errorf("%w: elements of operand %d of launch %d lie apart", ErrNoSequence, i, number)
				case o.Kind == codegen.Output && s.stands(l, &a):
					return fmt.Errorf("%w: result %d of launch %d stands still", ErrNoSequence, i, number)
				}
				r.at = append(r.at, p)
			}
			if s.runs = append(s.runs, r); len(s.runs) > mostItems {
				return fmt.Errorf("%w: too many elements", ErrNoSequence)
			}
		}
		d := len(outer) - 1
		for ; d >= 0; d-- {
			if outer[d]++; outer[d] < l.Dims[d] {
				break
			}
			outer[d] = 0
		}
		if d < 0 {
			return nil
		}
	}
}

// stands reports an operand that uses one element for several points.
func (s *sequence) stands(l *Launch, a *Arg) bool {
	for d, n := range l.Dims {
		if n > 1 && a.Stride[d] == 0 {
			return true
		}
	}
	return false
}

// find returns the value of a place, or 0 if it is not known. findStored uses -1 for any value.
func (s *sequence) find(p span) value {
	for i := range s.known {
		if s.known[i].span == p {
			return s.known[i].v
		}
	}
	return 0
}

// put records that a place has value v; values of overlapping places are forgotten. The caller
// writes the memory if it is read later.
func (s *sequence) put(p span, v value) {
	left := s.known[:0]
	for _, k := range s.known {
		if !k.overlaps(p) {
			left = append(left, k)
		}
	}
	s.known = append(left, inRegisters{p, v})
}

// findStored finds the private buffers that loads read from memory.
func (s *sequence) findStored() {
	for i := range s.runs {
		r := &s.runs[i]
		s.enter(r)
		for j, in := range s.k.Body {
			if in.Op != ir.Load || !s.need[j] {
				continue
			}
			if p := r.at[in.Imm]; s.find(p) == 0 {
				s.stored[p.buffer] = true
				s.known = append(s.known, inRegisters{p, -1})
			}
		}
		for _, st := range s.k.Stores {
			s.put(r.at[st.Operand], -1)
		}
	}
}

// enter makes the kernel of a run the present one.
func (s *sequence) enter(r *run) {
	k := r.launch.Kernel
	if s.k != k {
		s.kernel = kernel{k: k, v: Variant{Class: make([]codegen.AccessClass, len(k.Operands))}}
		s.levels()
	}
}

// chunk appends the items of a run.
func (s *sequence) chunk(r *run) {
	s.enter(r)
	p := &part{at: [][]value{make([]value, len(s.k.Body))}}
	first := len(s.items)
	for i, in := range s.k.Body {
		if !s.need[i] || in.Op == ir.Const {
			continue
		}
		begin := len(s.items)
		switch in.Op {
		case ir.Load:
			at := r.at[in.Imm]
			v := s.find(at)
			if v == 0 {
				v = s.read(at)
				s.known = append(s.known, inRegisters{at, v})
			}
			p.at[0][i] = v
		default:
			p.at[0][i] = s.instr(p, in, 0)
		}
		if s.lines != nil && len(s.items) > begin {
			s.items[begin].note = describe(i, in)
		}
	}
	for _, st := range s.k.Stores {
		at, v := r.at[st.Operand], s.valueOf(p, st.Value, 0)
		if s.put(at, v); !s.private[at.buffer] || s.stored[at.buffer] {
			s.write(at, v)
		}
	}
	if s.lines != nil && len(s.items) > first {
		s.items[first].note = fmt.Sprintf("launch %d, %d points\n\t; %s", r.number, r.points, s.items[first].note)
	}
}

// memory returns the address of a place; pre loads its buffer's address.
func (s *sequence) memory(p span) (m mem, pre func()) {
	word := at(rdi, s.frame.Scalars+8*p.buffer)
	return at(rax, p.offset), func() { s.load(rax, word) }
}

// read loads a place.
func (s *sequence) read(p span) value {
	n := s.lanes * p.size
	m, pre := s.memory(p)
	it := item{size: n, d: s.vec(n), mem: m, inMem: true, pre: pre, imm: noImm}
	one, whole, some := vmovss, vmovups, vmaskmovps
	if p.size == 8 {
		one, whole, some = vmovsd, vmovupd, vmaskmovpd
	}
	switch {
	case p.points == 1:
		it.o, it.size = one, 16
	case p.still:
		it.inMem, it.pre = false, nil
		it.emit = func(r *regs) {
			pre()
			switch {
			case p.size == 4:
				s.vector(vbroadcastss, n, args{reg: r.d, rm: inMem(m), imm: noImm})
			case n > 16:
				s.vector(vbroadcastsd, n, args{reg: r.d, rm: inMem(m), imm: noImm})
			default:
				s.vector(vmovsd, 16, args{reg: r.d, rm: inMem(m), imm: noImm})
				s.vector(vpinsrq, 16, args{reg: r.d, v: r.d, rm: inMem(m), imm: 1})
			}
		}
	case p.points == s.lanes:
		it.o = whole
	case s.isa.EVEX:
		it.o, it.k, it.zero = whole, s.first(p.points, p.size), true
	default:
		it.o, it.s[0] = some, s.first(p.points, p.size)
	}
	return s.item(it)
}

// write stores a value in a place.
func (s *sequence) write(p span, v value) {
	n := s.lanes * p.size
	m, pre := s.memory(p)
	it := item{size: n, s: [3]value{v}, mem: m, inMem: true, pre: pre, imm: noImm}
	one, whole, some := vmovssTo, vmovupsTo, vmaskmovpsTo
	if p.size == 8 {
		one, whole, some = vmovsdTo, vmovupdTo, vmaskmovpdTo
	}
	switch {
	case p.points == 1:
		it.o, it.size = one, 16
	case p.points == s.lanes:
		it.o = whole
	case s.isa.EVEX:
		it.o, it.k = whole, s.first(p.points, p.size)
	default:
		it.o, it.s[2] = some, s.first(p.points, p.size)
	}
	s.item(it)
}

// first is a mask of the first lanes.
func (s *sequence) first(points, size int) value {
	key := [2]int{points, size}
	if s.isa.EVEX {
		key[1] = 0
	}
	if v := s.heads[key]; v != 0 {
		return v
	}
	var v value
	if s.isa.EVEX {
		v = s.item(item{d: s.newValue(info{mask: true, size: s.lanes * size}), imm: noImm, emit: func(r *regs) {
			s.set(rbx, uint32(1)<<points-1)
			s.vector(kmovwR, 16, args{reg: r.d, rm: ofGPR(rbx), imm: noImm})
		}})
	} else {
		b := make([]byte, s.lanes*size)
		for i := range points * size {
			b[i] = 0xff
		}
		v = s.newValue(info{size: len(b), home: inPool, mem: s.data(b)})
	}
	s.heads[key] = v
	return v
}
