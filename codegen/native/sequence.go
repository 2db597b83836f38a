package native

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A sequence is a function of several launches that run one after another, with so few elements
// that all is one straight line of code. It has no counters; sizes, offsets and scalars are in the
// code. If a launch leaves a value in a register, the next one need not load it. Results that only
// launches of the sequence read are not stored. The only loop repeats the whole sequence.

// ErrNoSequence says that a list of launches cannot be a sequence.
var ErrNoSequence = errors.New("codegen/native: these launches cannot be a sequence")

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
	if !isa.Sequences {
		return nil, fmt.Errorf("%w: sequences for %s are not supported", ErrNoSequence, isa.Name)
	}
	s := &sequence{code: newCode(isa), list: slices.Clone(list), private: private, stored: make([]bool, len(private)), heads: map[[2]int]Value{}}
	if text {
		s.Lines = &Listing{}
	}
	for _, p := range sequencePasses {
		if err := p.run(s); err != nil {
			return nil, err
		}
	}
	code, err := s.finished(s.m)
	if err != nil {
		return nil, err
	}
	return &Func{Frame: *s.frame, Code: code, Work: s.work, Lanes: s.Lanes, text: s.Lines}, nil
}

// sequencePasses make the function of a sequence, in this order. Passes 1 to 4 decide and emit nothing.
// Their errors are ErrNoSequence.
var sequencePasses = [...]struct {
	name, does string
	run        func(s *sequence) error
}{
	{"1 lanes", "checks that the launches are elementwise and chooses the length of vectors", (*sequence).chooseLanes},
	{"2 constants", "turns scalars into constants and computes values of constants", (*sequence).makeConstants},
	{"3 runs", "cuts the points of each launch into vectors", (*sequence).cut},
	{"4 stores", "finds private buffers that loads read from memory", (*sequence).findStored},
	{"5 line", "appends the values of all runs, one after another", (*sequence).appendRuns},
	{"6 loop", "emits the line as often as the frame says", (*sequence).emitRuns},
	{"7 cold", "emits slow paths behind the line", func(s *sequence) error { s.emitCold(); return nil }},
}

// sequence is a sequence that is being made.
type sequence struct {
	*code
	list    []Launch
	private []bool
	stored  []bool // private buffers that are written because a load needs them from memory
	runs    []run
	known   []inRegisters
	heads   map[[2]int]Value // masks of the first lanes, by number of lanes and bytes of a lane
	work    int              // rough number of vector instructions
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
	Buffer, offset, points, size int
	dt                           ir.DType
	still                        bool
}

func (p span) overlaps(q span) bool {
	return p.Buffer == q.Buffer && p.offset < q.offset+q.bytes() && q.offset < p.offset+p.bytes()
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
	v Value
}

// chooseLanes chooses the number of lanes, and refuses launches that are no part of a sequence. If all values have one size, vectors are as short as the
// launches allow, since unused lanes cost as much as used ones. Otherwise vectors are whole,
// because conversions between sizes do not exist for all lengths.
func (s *sequence) chooseLanes() error {
	var sizes [2]bool // 4, 8
	most := int64(1)
	look := func(code []ir.Instr) {
		for _, in := range code {
			if in.DT != ir.Bool {
				sizes[SizeOf(in.DT)/8] = true
			}
		}
	}
	for i := range s.list {
		l := &s.list[i]
		if len(l.Kernel.Reduces) > 0 || len(l.Args) != len(l.Kernel.Operands) {
			return fmt.Errorf("%w: launch %d folds, or has the wrong number of args", ErrNoSequence, i)
		}
		look(l.Kernel.Body)
		for j, in := range l.Kernel.Body {
			switch in.Op {
			case ir.LoadAt, ir.IndexLo, ir.IndexHi:
				return fmt.Errorf("%w: value %d of launch %d is computed by %v", ErrNoSequence, j, i, in.Op)
			case ir.Load:
				if in.Args[0] != ir.None {
					return fmt.Errorf("%w: value %d of launch %d is loaded under a guard", ErrNoSequence, j, i)
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
	s.Lanes = s.ISA.Bytes / s.width
	if sizes[0] != sizes[1] {
		for n := s.Lanes; n >= 16/s.width && int64(n) >= most; n /= 2 {
			s.Lanes = n
		}
	}
	return nil
}

// makeConstants puts the launches' scalars into their kernels.
func (s *sequence) makeConstants() error {
	for i := range s.list {
		s.list[i].Kernel = folded(&s.list[i], s.ISA)
	}
	return nil
}

// cut lists the runs of all launches.
func (s *sequence) cut() error {
	for i := range s.list {
		if err := s.cutLaunch(&s.list[i], i); err != nil {
			return err
		}
	}
	return nil
}

// cutLaunch appends the runs of a launch.
func (s *sequence) cutLaunch(l *Launch, number int) error {
	rank := len(l.Dims)
	inner := int64(1)
	if rank > 0 {
		inner = l.Dims[rank-1]
	}
	outer := make([]int64, max(rank-1, 0))
	for {
		for from := int64(0); from < inner; from += int64(s.Lanes) {
			r := run{launch: l, number: number, points: int(min(int64(s.Lanes), inner-from))}
			for i, a := range l.Args {
				o := &l.Kernel.Operands[i]
				p := span{Buffer: a.Buffer, points: r.points, size: o.DT.Size(), dt: o.DT}
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
					return fmt.Errorf("%w: operand %d of launch %d has dtype %v, whose elements are too small", ErrNoSequence, i, number, o.DT)
				case r.points > 1 && step != 0 && step != 1:
					return fmt.Errorf("%w: the elements of operand %d of launch %d are not adjacent", ErrNoSequence, i, number)
				case o.Kind == codegen.Output && s.stands(l, &a):
					return fmt.Errorf("%w: several points of launch %[3]d write one element of result %[2]d", ErrNoSequence, i, number)
				}
				r.at = append(r.at, p)
			}
			if s.runs = append(s.runs, r); len(s.runs) > mostItems {
				return fmt.Errorf("%w: they have too many elements", ErrNoSequence)
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
func (s *sequence) find(p span) Value {
	for i := range s.known {
		if s.known[i].span == p {
			return s.known[i].v
		}
	}
	return 0
}

// put records that a place has value v; values of overlapping places are forgotten. The caller
// writes the memory if it is read later.
func (s *sequence) put(p span, v Value) {
	left := s.known[:0]
	for _, k := range s.known {
		if !k.overlaps(p) {
			left = append(left, k)
		}
	}
	s.known = append(left, inRegisters{p, v})
}

// findStored finds the private buffers that loads read from memory.
func (s *sequence) findStored() error {
	for i := range s.runs {
		r := &s.runs[i]
		s.enter(r)
		for j, in := range s.k.Body {
			if in.Op != ir.Load || !s.need[j] {
				continue
			}
			if p := r.at[in.Imm]; s.find(p) == 0 {
				s.stored[p.Buffer] = true
				s.known = append(s.known, inRegisters{p, -1})
			}
		}
		for _, st := range s.k.Stores {
			s.put(r.at[st.Operand], -1)
		}
	}
	s.known = s.known[:0]
	return nil
}

// appendRuns appends the items of all runs.
func (s *sequence) appendRuns() error {
	s.frame = newFrame(0, len(s.private))
	for i := range s.runs {
		s.appendRun(&s.runs[i])
		if len(s.items) > mostItems {
			return fmt.Errorf("%w: they take more than %d instructions", ErrNoSequence, mostItems)
		}
	}
	s.work = len(s.items) + s.slow
	return nil
}

// emitRuns emits the items in a loop.
func (s *sequence) emitRuns() error {
	again := s.NewLabel()
	s.Load(RCX, At(RDI, FrameRows))
	s.Place(again)
	s.emitItems()
	s.OpImm(Sub, OfGPR(RCX), 1)
	s.JumpIf(NotEqual, again)
	s.Ret()
	return nil
}

// enter makes the kernel of a run the present one.
func (s *sequence) enter(r *run) {
	k := r.launch.Kernel
	if s.k != k {
		s.setKernel(kernel{k: k, v: Variant{Class: make([]codegen.AccessClass, len(k.Operands))}})
		s.levels()
	}
}

// appendRun appends the items of a run.
func (s *sequence) appendRun(r *run) {
	s.enter(r)
	p := &part{at: [][]Value{make([]Value, len(s.k.Body))}}
	first := len(s.items)
	for i, in := range s.k.Body {
		if !s.need[i] || in.Op == ir.Const {
			continue
		}
		begin := len(s.items)
		switch in.Op {
		case ir.Load:
			place := r.at[in.Imm]
			v := s.find(place)
			if v == 0 {
				v = s.read(place)
				s.known = append(s.known, inRegisters{place, v})
			}
			p.at[0][i] = v
		default:
			p.at[0][i] = s.instr(p, in, 0)
		}
		if s.Lines != nil && len(s.items) > begin {
			s.items[begin].note = describe(i, in)
		}
	}
	for _, st := range s.k.Stores {
		at, v := r.at[st.Operand], s.valueOf(p, st.Value, 0)
		if s.put(at, v); !s.private[at.Buffer] || s.stored[at.Buffer] {
			s.write(at, v)
		}
	}
	if s.Lines != nil && len(s.items) > first {
		s.items[first].note = fmt.Sprintf("launch %d, %d points\n\t; %s", r.number, r.points, s.items[first].note)
	}
}

// memory returns the address of a place; pre loads its buffer's address.
func (s *sequence) memory(p span) (m Mem, pre func()) {
	word := At(RDI, s.frame.Scalars+8*p.Buffer)
	return At(RAX, p.offset), func() { s.Load(RAX, word) }
}

// at returns a place as neighbours in memory, and the mask of its points if they are fewer than lanes.
func (s *sequence) at(p span) (d Dense, mask Value) {
	d = Dense{Size: p.size, N: s.Lanes * p.size}
	d.M, d.Pre = s.memory(p)
	if p.points > 1 && p.points < s.Lanes && !p.still {
		mask = s.first(p.points, p.size)
	}
	return d, mask
}

// read loads a place.
func (s *sequence) read(p span) Value {
	d, mask := s.at(p)
	return s.LoadPoints(d, p.points, p.still, mask)
}

// write stores a value in a place.
func (s *sequence) write(p span, v Value) {
	d, mask := s.at(p)
	s.StorePoints(d, v, p.points, mask)
}

// first is a mask of the first lanes.
func (s *sequence) first(points, size int) Value {
	key := [2]int{points, size}
	if s.ISA.Masks {
		key[1] = 0
	}
	if v := s.heads[key]; v != 0 {
		return v
	}
	var v Value
	if s.ISA.Masks {
		v = s.Item(Item{D: s.NewValue(Info{Mask: true, Size: s.Lanes * size}), Imm: NoImm, Emit: func(r *Regs) {
			s.Set(RBX, uint32(1)<<points-1)
			s.MaskFrom(r.D, RBX)
		}})
	} else {
		b := make([]byte, s.Lanes*size)
		for i := range points * size {
			b[i] = 0xff
		}
		v = s.NewValue(Info{Size: len(b), Home: InPool, Mem: s.Data(b)})
	}
	s.heads[key] = v
	return v
}
