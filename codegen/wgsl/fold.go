package wgsl

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// foldStart is what a reduction by op starts from. Sums start from +0, which
// is the sum of nothing; the sign of a zero is within every tolerance.
func foldStart(op ir.Op, dt ir.DType) uint64 {
	if op == ir.Sum {
		return 0
	}
	return ir.FoldStart(op, dt)
}

// scanStart is what a scan starts from: an element that changes no other.
func scanStart(in ir.Instr) uint64 {
	for op := ir.Op(1); op < ir.NumOps; op++ {
		if op.Class() == ir.ClassReduce && op.Info().Combine == in.Op.Info().Combine {
			return foldStart(op, in.DT)
		}
	}
	return 0
}

// combine is the expression that joins two partial results of a row op, over
// p's lanes.
func (p *printer) combine(in ir.Instr, x, y string) string {
	dt := p.code[in.Args[0]].DT
	c := ir.Instr{Op: in.Op.Info().Combine, DT: dt, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	return p.spell(c, []string{x, y}, []ir.DType{dt, dt}, p.lanes)
}

// Reductions that find a position hold two accumulators: the key of the best
// element, whose order as an unsigned number is the order asked for, and its
// position. The greatest key wins, of equal ones the lowest position.

// orderKey is the key of a value, over p's lanes.
func (p *printer) orderKey(op ir.Op, dt ir.DType, x string) string {
	down := op == ir.ArgMin
	text := "$0"
	switch scalarTypes[dt] {
	case "f32":
		name := map[bool]string{false: "mr_order", true: "mr_orderdown"}[down]
		p.use(name)
		return fill(name+"($0)", "", p.lanes, []string{x})
	case "i32":
		text = "bitcast<$U>($0) ^ $U(0x80000000u)"
	case "u32":
	default:
		p.fail("%v of %v: %w", op, dt, ir.ErrUnsupported)
	}
	if down {
		text = "~(" + text + ")"
	}
	return fill(text, "", p.lanes, []string{x})
}

// better replaces accumulators i by the candidate k at position at where that
// wins.
func (p *printer) better(i int, k, at string) {
	p.f("let f%d = (%s > r%d) | ((%s == r%d) & (%s < n%d));", i, k, i, k, i, at, i)
	p.f("r%d = select(r%d, %s, f%d);", i, i, k, i)
	p.f("n%d = select(n%d, %s, f%d);", i, i, at, i)
}

// accType is the type of the accumulators of reduction i over lanes.
func (p *printer) accType(i, lanes int) string {
	in := p.code[i]
	if in.Op.Info().Position {
		return vec("u32", lanes)
	}
	return vec(scalarTypes[p.code[in.Args[0]].DT], lanes)
}

func (p *printer) startFold(i int) {
	in := p.code[i]
	if in.Op.Info().Position {
		p.f("var r%d = %s;", i, splat("0u", "u32", p.lanes))
		p.f("var n%d = %s;", i, splat("0xffffffffu", "u32", p.lanes))
		return
	}
	dt := p.code[in.Args[0]].DT
	p.f("var r%d = %s;", i, literal(dt, foldStart(in.Op, dt), p.lanes))
}

// stepFold takes the point at hand into reduction i.
func (p *printer) stepFold(i int) {
	in := p.code[i]
	x := p.value(in.Args[0])
	if !in.Op.Info().Position {
		p.f("r%d = %s;", i, p.combine(in, fmt.Sprintf("r%d", i), x))
		return
	}
	p.f("let k%d = %s;", i, p.orderKey(in.Op, p.code[in.Args[0]].DT, x))
	at := p.point
	if p.lanes > 1 {
		at = fmt.Sprintf("%s(%s * %du) + %s(0u, 1u, 2u, 3u)", vec("u32", p.lanes), p.point, p.lanes, vec("u32", p.lanes))
	}
	p.f("let j%d = %s;", i, at)
	p.better(i, fmt.Sprintf("k%d", i), fmt.Sprintf("j%d", i))
}

// endFolds brings the reductions of a pass together: over the lanes of a
// point, then over the workgroup, so that every invocation has every result.
func (p *printer) endFolds(folds []int) {
	if len(folds) == 0 {
		return
	}
	p.once(func(q *printer) {
		for _, i := range folds {
			q.foldLanes(i, p.lanes)
		}
		if p.v.Mode == Rows {
			q.foldGroup(folds)
		}
		for _, i := range folds {
			q.endFold(i)
		}
	})
}

// foldLanes leaves the combined lanes of accumulator i in o<i>, and of a
// position in on<i>.
func (p *printer) foldLanes(i, lanes int) {
	in := p.code[i]
	position := in.Op.Info().Position
	first := ""
	if lanes > 1 {
		first = ".x"
	}
	p.f("var o%d = r%d%s;", i, i, first)
	if position {
		p.f("var on%d = n%d%s;", i, i, first)
	}
	for l := 1; l < lanes; l++ {
		c := "xyzw"[l]
		p.take(i, fmt.Sprintf("r%d.%c", i, c), fmt.Sprintf("n%d.%c", i, c))
	}
}

// take combines another partial result into o<i>.
func (p *printer) take(i int, x, at string) {
	in := p.code[i]
	if !in.Op.Info().Position {
		p.f("o%d = %s;", i, p.combine(in, fmt.Sprintf("o%d", i), x))
		return
	}
	p.f("if (%s > o%d || (%s == o%d && %s < on%d)) {", x, i, x, i, at, i)
	p.f("\to%d = %s;", i, x)
	p.f("\ton%d = %s;", i, at)
	p.f("}")
}

// foldGroup combines o<i> over the workgroup in two rounds, as a square: far
// fewer barriers than by halving, and those are what small rows wait for.
func (p *printer) foldGroup(folds []int) {
	g := p.v.Group
	first := 1 // partial results that a round-one invocation takes
	for g > 32 && first*first < g {
		first *= 2
	}
	p.share(folds, "w", g, "lane")
	p.f("workgroupBarrier();")
	if first > 1 {
		rest := g / first
		p.f("if (lane < %du) {", rest)
		p.indent++
		for j := 1; j < first; j++ {
			for _, i := range folds {
				p.take(i, fmt.Sprintf("w%d[lane + %du]", i, j*rest), fmt.Sprintf("wn%d[lane + %du]", i, j*rest))
			}
		}
		p.share(folds, "x", rest, "lane")
		p.indent--
		p.f("}")
		p.f("workgroupBarrier();")
		p.gather(folds, "x", rest)
		return
	}
	p.gather(folds, "w", g)
}

// share declares workgroup memory for n partial results of each reduction, and
// writes the one at hand.
func (p *printer) share(folds []int, name string, n int, at string) {
	for _, i := range folds {
		fmt.Fprintf(p.global, "\nvar<workgroup> %s%d : array<%s, %d>;\n", name, i, p.accType(i, 1), n)
		p.f("%s%d[%s] = o%d;", name, i, at, i)
		if p.code[i].Op.Info().Position {
			fmt.Fprintf(p.global, "\nvar<workgroup> %sn%d : array<u32, %d>;\n", name, i, n)
			p.f("%sn%d[%s] = on%d;", name, i, at, i)
		}
	}
}

// gather combines n shared partial results into o<i>.
func (p *printer) gather(folds []int, name string, n int) {
	for _, i := range folds {
		p.f("o%d = %s%d[0];", i, name, i)
		if p.code[i].Op.Info().Position {
			p.f("on%d = %sn%d[0];", i, name, i)
		}
	}
	for j := 1; j < n; j++ {
		for _, i := range folds {
			p.take(i, fmt.Sprintf("%s%d[%d]", name, i, j), fmt.Sprintf("%sn%d[%d]", name, i, j))
		}
	}
}

// endFold names the result of reduction i.
func (p *printer) endFold(i int) {
	in := p.code[i]
	p.vals[i] = fmt.Sprintf("v%d", i)
	text := fmt.Sprintf("o%d", i)
	if in.Op.Info().Position {
		text = fmt.Sprintf("on%d", i)
		conv, uses, ok := convert(in.DT, ir.Uint32, text)
		if !ok {
			p.fail("%v to %v: %w", in.Op, in.DT, ir.ErrUnsupported)
		}
		p.use(uses)
		*p.wide = *p.wide || isWide(in.DT)
		text = fill(conv, vec(scalarTypes[in.DT], 1), 1, nil)
	}
	p.f("let v%d = %s;", i, text)
}
