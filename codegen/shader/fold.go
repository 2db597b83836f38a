package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// foldStart is the value with which a reduction by op starts. Sums start with +0, which is the sum
// of no elements; the sign of a zero is within every tolerance.
func foldStart(op ir.Op, dt ir.DType) uint64 {
	if op == ir.Sum {
		return 0
	}
	return ir.FoldStart(op, dt)
}

// scanStart is the value with which a scan starts: the neutral element.
func scanStart(in ir.Instr) uint64 {
	for op := ir.Op(1); op < ir.NumOps; op++ {
		if op.Class() == ir.ClassReduce && op.Info().Combine == in.Op.Info().Combine {
			return foldStart(op, in.DT)
		}
	}
	return 0
}

// combine is the expression that joins two partial results of a row op, over p's lanes.
func (p *printer) combine(in ir.Instr, x, y string) string {
	dt := p.code[in.Args[0]].DT
	c := ir.Instr{Op: in.Op.Info().Combine, DT: dt, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	return p.spell(c, []string{x, y}, []ir.DType{dt, dt}, p.lanes)
}

// Reductions that find a position have two accumulators: the key of the best element, an unsigned
// number in the required order, and its position. The greatest key wins; of equal keys the lowest
// position wins.

// orderKey is the key of a value, over p's lanes.
func (p *printer) orderKey(op ir.Op, dt ir.DType, x string) string {
	down := op == ir.ArgMin
	text := "$0"
	switch scalarTypes[dt] {
	case "f32":
		name := map[bool]string{false: "mr_order", true: "mr_orderdown"}[down]
		p.use(name)
		return name + "(" + x + ")"
	case "i32":
		text = "$bits($U, $0) ^ $U(0x80000000u)"
	case "u32":
	default:
		p.fail("%v of %v: %w", op, dt, ir.ErrUnsupported)
	}
	if down {
		text = "~(" + text + ")"
	}
	return p.fill(text, p.lanes, x)
}

// better replaces accumulators i by the candidate k at position at if that wins.
func (p *printer) better(i int, k, at string) {
	r, n := p.own(fmt.Sprintf("r%d", i)), p.own(fmt.Sprintf("n%d", i))
	p.f("let y%d $B = $or(($gt(%s, %s)), ($and(($eq(%s, %s)), ($lt(%s, %s)))));", i, k, r, k, r, at, n)
	y := fmt.Sprintf("y%d", i)
	if p.masked {
		y = p.call("and", p.lanes, y, "within")
	}
	p.f("%s = $select(%s, %s, %s);", r, r, k, y)
	p.f("%s = $select(%s, %s, %s);", n, n, at, y)
}

// accType is the type of the accumulators of reduction i over lanes.
func (p *printer) accType(i, lanes int) string {
	in := p.code[i]
	if in.Op.Info().Position {
		return p.vec("u32", lanes)
	}
	return p.vec(scalarTypes[p.code[in.Args[0]].DT], lanes)
}

// foldStates are the variables of reduction i.
func (p *printer) foldStates(i int) []state {
	in, typ := p.code[i], p.accType(i, p.lanes)
	if in.Op.Info().Position {
		return []state{
			{fmt.Sprintf("r%d", i), typ, p.splat("0u", "u32", p.lanes)},
			{fmt.Sprintf("n%d", i), typ, p.splat("0xffffffffu", "u32", p.lanes)},
		}
	}
	dt := p.code[in.Args[0]].DT
	return []state{{fmt.Sprintf("r%d", i), typ, p.literal(dt, foldStart(in.Op, dt), p.lanes)}}
}

// stepFold adds the present point to reduction i.
func (p *printer) stepFold(i int) {
	switch {
	case p.rows.top[i] >= 0:
		p.stepOnline(i, p.value(p.rows.foldArg(p.k, i)))
		return
	case p.rows.isTop(i): // its sum updates it
		return
	}
	in := p.code[i]
	x := p.value(in.Args[0])
	if !in.Op.Info().Position {
		r := p.own(fmt.Sprintf("r%d", i))
		p.f("%s = %s;", r, p.only(r, p.combine(in, r, x)))
		return
	}
	p.f("let k%d $U = %s;", i, p.orderKey(in.Op, p.code[in.Args[0]].DT, x))
	at := p.point
	if p.v.Across {
		at = p.splat(at, "u32", p.lanes)
	} else if p.v.raggedRows() {
		at = "inside"
	} else if p.lanes > 1 {
		at = fmt.Sprintf("%s(%s * %du) + %s(0u, 1u, 2u, 3u)", p.vec("u32", p.lanes), p.point, p.lanes, p.vec("u32", p.lanes))
	}
	p.f("let j%d $U = %s;", i, at)
	p.better(i, fmt.Sprintf("k%d", i), fmt.Sprintf("j%d", i))
}

// endFolds combines the reductions of a pass, first over the given lanes of a point and then over
// the workgroup. Then every invocation has every result. It also prints the code of then, which
// uses the results.
func (p *printer) endFolds(folds []int, lanes int, then func()) {
	group := p.v.Mode == Rows && len(folds) > 0
	over := func() {
		for _, i := range folds {
			p.foldLanes(i, lanes)
		}
	}
	value, position := "o%d", "on%d"
	switch {
	case group && p.v.Each > 1: // one barrier for all neighbours
		p.each(func() {
			over()
			p.share(folds, "w", "lane", p.v.Group)
		})
		p.f("barrier;")
		over = func() { p.gather(folds, "w", p.v.Group) }
	case !group && lanes == 1:
		value, position = p.own("r%d"), p.own("n%d")
		over = func() {}
	}
	p.each(func() {
		over()
		if group && p.v.Each < 2 {
			p.foldGroup(folds)
		}
		for _, i := range folds {
			p.endFold(i, fmt.Sprintf(value, i), fmt.Sprintf(position, i))
		}
		then()
	})
}

// foldLanes combines the lanes of accumulator i in o<i>, and those of a position in on<i>.
func (p *printer) foldLanes(i, lanes int) {
	in := p.code[i]
	position := in.Op.Info().Position
	first := ""
	if lanes > 1 {
		first = ".x"
	}
	r, n := p.own(fmt.Sprintf("r%d", i)), p.own(fmt.Sprintf("n%d", i))
	p.f("var o%d %s = %s%s;", i, p.accType(i, p.lanes), r, first)
	if position {
		p.f("var on%d $U = %s%s;", i, n, first)
	}
	for l := 1; l < lanes; l++ {
		c := "xyzw"[l]
		p.take(i, fmt.Sprintf("%s.%c", r, c), fmt.Sprintf("%s.%c", n, c))
	}
}

// take combines another partial result into o<i>.
func (p *printer) take(i int, x, at string) {
	in := p.code[i]
	if !in.Op.Info().Position {
		p.f("o%d = %s;", i, p.combine(in, fmt.Sprintf("o%d", i), x))
		return
	}
	p.open("if (%s > o%d || (%s == o%d && %s < on%d)) {", x, i, x, i, at, i)
	p.f("o%d = %s;", i, x)
	p.f("on%d = %s;", i, at)
	p.end()
}

// foldGroup combines o<i> over the workgroup in two rounds, as a square. This needs far fewer
// barriers than halving, and small rows spend their time in barriers.
func (p *printer) foldGroup(folds []int) {
	g := p.v.Group
	if p.v.Subgroups {
		p.foldSubgroups(folds)
		return
	}
	if p.v.Abreast > 0 || p.v.Cluster > 1 {
		p.foldClusters(folds)
		return
	}
	if p.v.Beside > 0 {
		p.share(folds, "w", "lane", g)
		p.f("barrier;")
		p.gather(folds, "w", p.v.sharing())
		return
	}
	first := 1 // partial results that an invocation takes in the first round
	for g > 32 && first*first < g {
		first *= 2
	}
	p.share(folds, "w", "lane", g)
	p.f("barrier;")
	if first > 1 {
		rest := g / first
		p.open("if (lane < %du) {", rest)
		for j := 1; j < first; j++ {
			for _, i := range folds {
				p.take(i, p.taken(i, fmt.Sprintf("w%d[lane + %du]", i, j*rest)), fmt.Sprintf("wn%d[lane + %du]", i, j*rest))
			}
		}
		p.share(folds, "x", "lane", rest)
		p.end()
		p.f("barrier;")
		p.gather(folds, "x", rest)
		return
	}
	p.gather(folds, "w", g)
}

// workgroup declares memory of a workgroup, once: a scan that several passes need is printed in
// each of them.
func (p *printer) workgroup(name, typ string, n int) {
	if p.made[name] {
		return
	}
	p.made[name] = true
	p.global.WriteString("\n" + p.fill(p.Shared, 1, name, typ, fmt.Sprint(n)) + "\n")
}

// share declares workgroup memory for n partial results of each reduction, for each neighbour, and
// writes the present one to index at.
func (p *printer) share(folds []int, name, at string, n int) {
	for _, i := range folds {
		memory := func(name, typ, val string) {
			p.workgroup(name, typ, n*max(p.v.Each, 1))
			p.f("%s[%s] = %s;", name, p.partial(n, at), val)
		}
		typ, val := p.accType(i, 1), fmt.Sprintf("o%d", i)
		if p.bools(i) {
			typ, val = p.vec("u32", 1), p.call("select", 1, "0u", "1u", val)
		}
		memory(fmt.Sprintf("%s%d", name, i), typ, val)
		if p.code[i].Op.Info().Position {
			memory(fmt.Sprintf("%sn%d", name, i), p.vec("u32", 1), fmt.Sprintf("on%d", i))
		}
	}
}

// bools reports partial results that are stored in workgroup memory as words, because NVIDIA's
// driver loses bools there.
func (p *printer) bools(i int) bool {
	return !p.code[i].Op.Info().Position && scalarTypes[p.code[p.code[i].Args[0]].DT] == "bool"
}

// taken reads the partial result x.
func (p *printer) taken(i int, x string) string {
	if p.bools(i) {
		return "(" + p.call("ne", 1, x, "0u") + ")"
	}
	return x
}

// partial is the index of one of n partial results of the present neighbour.
func (p *printer) partial(n int, at string) string {
	if p.v.Each < 2 {
		return at
	}
	return fmt.Sprintf("j * %du + %s", n, at)
}

// gather combines n shared partial results into o<i>.
func (p *printer) gather(folds []int, name string, n int) {
	at := func(j int) string {
		switch {
		case p.v.Beside > 0:
			return fmt.Sprintf("lane %% %du + %du", p.v.Beside, j*p.v.Beside)
		case p.v.Each < 2:
			return fmt.Sprint(j)
		}
		return p.partial(n, fmt.Sprintf("%du", j))
	}
	first := "%s = %[3]s;"
	if p.v.Each > 1 {
		first = "var %s %s = %s;"
	}
	for _, i := range folds {
		p.f(first, fmt.Sprintf("o%d", i), p.accType(i, p.lanes), p.taken(i, fmt.Sprintf("%s%d[%s]", name, i, at(0))))
		if p.code[i].Op.Info().Position {
			p.f(first, fmt.Sprintf("on%d", i), "$U", fmt.Sprintf("%sn%d[%s]", name, i, at(0)))
		}
	}
	for j := 1; j < n; j++ {
		for _, i := range folds {
			p.take(i, p.taken(i, fmt.Sprintf("%s%d[%s]", name, i, at(j))), fmt.Sprintf("%sn%d[%s]", name, i, at(j)))
		}
	}
}

// endFold names the result of reduction i, which is a value or a position.
func (p *printer) endFold(i int, value, position string) {
	in := p.code[i]
	p.vals[i] = fmt.Sprintf("v%d", i)
	text := value
	if in.Op.Info().Position {
		conv, uses, ok := convert(in.DT, ir.Uint32, position)
		if !ok {
			p.fail("%v to %v: %w", in.Op, in.DT, ir.ErrUnsupported)
		}
		p.use(uses)
		*p.wide = *p.wide || isWide(in.DT)
		text = p.fill(strings.ReplaceAll(conv, "$T", p.vec(scalarTypes[in.DT], p.lanes)), p.lanes)
	}
	if top := p.rows.top[i]; top >= 0 { // adds 0, or NaN if the maximum is infinite or NaN, since no difference from it is a number
		p.use("mr_self")
		text += fmt.Sprintf(" + mr_self(%s)", p.vals[top])
	}
	p.let(fmt.Sprintf("v%d", i), in.DT, text)
}
