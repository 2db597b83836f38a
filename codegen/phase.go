package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Schedule is a kernel split for devices: phases that run one after another over each row, and the
// temporaries that carry values between them. A kernel without row ops has a single phase of level
// Point, the kernel itself.
type Schedule struct {
	Temps  []Temp
	Phases []Phase
}

// Temp is memory that lives while a row is computed. It is operand number len(kernel.Operands)+i of
// every phase.
type Temp struct {
	DT  ir.DType
	Row bool // one value per row; else one per point
}

// Phase is an elementwise kernel over all points of a row, or, at level Row, over the row as one
// point. It has the kernel's operands, then the temporaries. Those that it does not write are of
// kind Input (or Index), used or not. The values of its Reduces are folded, scanned or sorted into
// temporaries while the phase runs, and the results are complete when it ends.
type Phase struct {
	Level Level
	*Kernel
}

// Contraction reports a schedule of two or three parts: phases 0 and 1 give the operands of an
// ir.Dot, its result is temporary 0, and the third phase, if there is one, runs once per row.
func (s *Schedule) Contraction() bool {
	return len(s.Phases[0].Reduces) == 1 && s.Phases[0].Reduces[0].Op == ir.Dot
}

// Scatters reports a schedule of two parts: phases 0 and 1 give the indices and the elements of an
// ir.Scatter, which are temporaries 0 and 1.
func (s *Schedule) Scatters() bool {
	return len(s.Phases[0].Reduces) == 1 && s.Phases[0].Reduces[0].Op == ir.Scatter
}

// String prints the temporaries and the phases, for people and tests.
func (s *Schedule) String() string {
	var b strings.Builder
	for _, p := range s.Phases {
		fmt.Fprintf(&b, "# %v\n%s", p.Level, p.Kernel)
	}
	return b.String()
}

// PhaseOptions say which phases a device needs.
type PhaseOptions struct {
	// Recompute computes point values again in every phase that needs them. Without it, point values
	// that are costly to recompute are kept in temporaries.
	Recompute bool
	// Rows computes row values again, too, at each point: temporaries hold only results of row ops.
	Rows bool
	// Most is the largest number of operands and temporaries of a phase, 0 for no limit. If kept
	// values would exceed it, they are recomputed.
	Most int
}

// Phases splits a kernel. The result depends on the arguments alone, and computes the same bits
// with all options.
func Phases(k *Kernel, opt PhaseOptions) *Schedule {
	s := phases(k, opt)
	for _, anew := range [...]*bool{&opt.Recompute, &opt.Rows} {
		if opt.Most == 0 || len(s.Temps) == 0 || len(k.Operands)+len(s.Temps) <= opt.Most {
			break
		}
		*anew = true
		s = phases(k, opt)
	}
	return s
}

func phases(k *Kernel, opt PhaseOptions) *Schedule {
	if !k.HasRows() && !slices.ContainsFunc(k.Operands, func(o Operand) bool { return o.Row }) {
		return &Schedule{Phases: []Phase{{Point, k}}}
	}
	p := &phaser{k: k, opt: opt, level: k.Levels(), depth: k.depths()}
	p.cost = costs(k, p.level)
	p.contracts = slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op == ir.Dot })
	p.temp = make([]int, len(k.Body))
	for i := range p.temp {
		p.temp[i] = -1
	}
	if at := k.Scatter(); at != ir.None {
		p.contracts = true // its parts compute the row values they need
		return p.scatter(k.Body[at])
	}
	return p.schedule()
}

// scatter makes the two parts of a scatter.
func (p *phaser) scatter(in ir.Instr) *Schedule {
	s := &Schedule{}
	for a := range 2 {
		p.temps = append(p.temps, Temp{DT: p.k.Body[in.Args[a]].DT})
		b := p.builder(Point, 0)
		b.reduce(in, a, len(p.k.Operands)+a)
		s.Phases = append(s.Phases, b.phase())
	}
	for i := range s.Phases {
		p.close(s.Phases[i].Kernel)
	}
	s.Temps = p.temps
	return s
}

// phaser makes a schedule from its end: a phase requests temporaries, and earlier phases must
// compute them.
type phaser struct {
	k     *Kernel
	opt   PhaseOptions
	level []Level
	depth []int
	cost  []int
	temp  []int // by value: its temporary, -1 for none
	temps []Temp
	order []ir.Ref // the value in each temporary

	contracts bool // see Schedule.Contraction and Scatters
}

func (p *phaser) schedule() *Schedule {
	last := 0
	for _, d := range p.depth {
		last = max(last, d)
	}
	var phases []Phase
	for d := last; d >= 0; d-- {
		for _, l := range [...]Level{Point, Row} {
			phases = append(phases, p.phases(l, d)...)
		}
	}
	slices.Reverse(phases)
	for i := range phases {
		p.close(phases[i].Kernel)
	}
	return &Schedule{Temps: p.temps, Phases: phases}
}

// phases makes the phases of a level and depth, last first: one, two for the operands of a
// contraction, or none if there is nothing to do.
func (p *phaser) phases(l Level, d int) []Phase {
	b := p.builder(l, d)
	for _, s := range p.k.Stores {
		at := p.depth[s.Value]
		if p.contracts {
			at = 1 // values that do not depend on the contraction are stored after it, too
		}
		if p.k.Operands[s.Operand].Row == (l == Row) && at == d {
			b.store(s.Operand, s.Value)
		}
	}
	if l == Point {
		for _, r := range p.k.Reduces {
			if p.depth[r.Value] == d {
				b.total(r)
			}
		}
	}
	var phases []Phase
	// Requests for values add temporaries, so the list grows during the loop.
	for t := 0; t < len(p.order); t++ {
		v := p.order[t]
		in := p.k.Body[v]
		slot := len(p.k.Operands) + t
		switch {
		case !in.Op.Info().RowOp:
			if p.depth[v] == d && p.level[v] == l {
				b.store(slot, v)
			}
		case p.depth[v] != d+1 || l == Row:
		case in.Op == ir.Dot:
			for _, a := range [...]int{1, 0} {
				c := p.builder(l, d)
				c.reduce(in, a, slot)
				phases = append(phases, c.phase())
			}
		default:
			b.reduce(in, 0, slot)
		}
	}
	if len(b.k.Stores)+len(b.k.Reduces) > 0 {
		phases = append(phases, b.phase())
	}
	return phases
}

// close adds the temporaries to the operands of a phase.
func (p *phaser) close(k *Kernel) {
	first := len(k.Operands)
	for _, t := range p.temps {
		k.Operands = append(k.Operands, Operand{Kind: Input, DT: t.DT, Row: t.Row})
	}
	for _, s := range k.Stores {
		if s.Operand >= first {
			k.Operands[s.Operand].Kind = Output
		}
	}
	for _, r := range k.Reduces {
		k.Operands[r.Operand].Kind = Output
	}
}

// keep gives a value a temporary.
func (p *phaser) keep(v ir.Ref) int {
	if p.temp[v] < 0 {
		p.temp[v] = len(p.temps)
		p.temps = append(p.temps, Temp{DT: p.k.Body[v].DT, Row: p.level[v] == Row})
		p.order = append(p.order, v)
	}
	return p.temp[v]
}

// phaseBuilder makes one phase. Values have their numbers in the whole kernel until the phase is
// complete, so the phase's body has the kernel's order.
type phaseBuilder struct {
	p     *phaser
	level Level
	depth int
	k     *Kernel
	used  []bool // values of the kernel that this phase computes or loads
}

func (p *phaser) builder(l Level, d int) *phaseBuilder {
	k := &Kernel{Operands: slices.Clone(p.k.Operands), Scalars: p.k.Scalars, Denormals: p.k.Denormals}
	for i, o := range k.Operands {
		if o.Kind == Output {
			k.Operands[i].Kind = Input
		}
	}
	return &phaseBuilder{p: p, level: l, depth: d, k: k, used: make([]bool, len(p.k.Body))}
}

func (b *phaseBuilder) store(operand int, v ir.Ref) {
	if operand < len(b.k.Operands) {
		b.k.Operands[operand].Kind = Output
	}
	b.k.Stores = append(b.k.Stores, Store{operand, v})
	b.use(v)
}

func (b *phaseBuilder) reduce(in ir.Instr, arg, temp int) {
	b.k.Reduces = append(b.k.Reduces, Reduce{Op: in.Op, Value: in.Args[arg], Operand: temp, Descending: in.Op.Class() == ir.ClassSort && in.Imm != 0})
	b.use(in.Args[arg])
}

// total folds all points of the launch.
func (b *phaseBuilder) total(r Reduce) {
	b.k.Operands[r.Operand].Kind = Output
	b.k.Reduces = append(b.k.Reduces, r)
	b.use(r.Value)
}

// use marks the values on which v depends, down to loads and temporaries.
func (b *phaseBuilder) use(v ir.Ref) {
	if b.used[v] {
		return
	}
	b.used[v] = true
	if b.fromTemp(v) {
		b.p.keep(v)
		return
	}
	for _, a := range b.p.k.Body[v].Args {
		if a != ir.None {
			b.use(a)
		}
	}
}

func (b *phaseBuilder) phase() Phase {
	at := make([]ir.Ref, len(b.used))
	n := 0
	for _, used := range b.used {
		if used {
			n++
		}
	}
	b.k.Body = slices.Grow(b.k.Body, n)
	for v, used := range b.used {
		if !used {
			continue
		}
		in := b.p.k.Body[v]
		if b.fromTemp(ir.Ref(v)) {
			slot := len(b.p.k.Operands) + b.p.temp[v]
			in = ir.Instr{Op: ir.Load, DT: in.DT, Imm: uint64(slot), Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
		} else {
			in = renumber(in, at)
		}
		at[v] = ir.Ref(len(b.k.Body))
		b.k.Body = append(b.k.Body, in)
	}
	for i := range b.k.Stores {
		b.k.Stores[i].Value = at[b.k.Stores[i].Value]
	}
	for i := range b.k.Reduces {
		b.k.Reduces[i].Value = at[b.k.Reduces[i].Value]
	}
	return Phase{b.level, b.k}
}

// fromTemp decides whether a value is read from a temporary or computed here.
func (b *phaseBuilder) fromTemp(v ir.Ref) bool {
	p, in := b.p, b.p.k.Body[v]
	switch {
	case in.Op.Info().RowOp:
		return true
	case p.level[v] == Uniform || isLoad(in) && in.Args[0] == ir.None:
		return false
	case p.level[v] == Row:
		// Parts of a contraction compute the row values they need.
		return !p.contracts && !p.opt.Rows && (b.level == Point || p.depth[v] < b.depth)
	}
	return p.depth[v] < b.depth && !p.opt.Recompute && p.cost[v] > recomputeLimit
}

// recomputeLimit is the work up to which computing a point value twice is cheaper than storing and
// loading it.
const recomputeLimit = 3

// costs is the work of computing each point value from loads, in additions. Results of row ops, and
// row values computed from them, cost nothing: they are in temporaries.
func costs(k *Kernel, level []Level) []int {
	const most = 1 << 20
	cs := make([]int, len(k.Body))
	for i, in := range k.Body {
		if in.Op.Info().RowOp || level[i] != Point {
			continue
		}
		first := ir.Invalid
		if a := in.Args[0]; a != ir.None {
			first = k.Body[a].DT
		}
		c := ownCost(in, first)
		for _, a := range in.Args {
			if a != ir.None {
				c += cs[a]
			}
		}
		cs[i] = min(c, most)
	}
	return cs
}

// ownCost is the cost of an instruction alone, whose first operand, if any, has dtype first. An
// addition of float16 costs more than one addition, since it is not a primitive.
func ownCost(in ir.Instr, first ir.DType) int {
	switch in.Op {
	case ir.Const, ir.Scalar, ir.Load, ir.IndexLo, ir.IndexHi, ir.Bitcast:
		return 0
	case ir.FDiv, ir.Sqrt, ir.Quo, ir.Mod, ir.Lookup, ir.LoadAt, ir.Rare:
		return 4
	}
	if ir.IsPrim(in.Op, in.DT, first) {
		return 1
	}
	return 8
}

func isLoad(in ir.Instr) bool {
	switch in.Op {
	case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
		return true
	}
	return false
}
