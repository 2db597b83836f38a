package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// Tile is the shape of a shader that contracts. The kept dims of its launch are batch dims, then
// those along which the second operand does not vary (m), then those along which the first does not
// vary (n). A workgroup computes M by N results of one batch. It computes stretches of K elements
// of both operands and stores them in workgroup memory; each invocation multiplies RowsPer by
// ColsPer of them in registers.
type Tile struct {
	M, N, K          int
	RowsPer, ColsPer int  // multiples of 4
	Looped           bool // a loop over the stretch, instead of code that is written out
	MDims, NDims     int  // of the kept dims
	AlongA, AlongB   bool // neighbouring invocations load neighbours along k

	WideA, WideB bool // with Matrix: loaded by vectors of a dense operand, see WideOperand

	Ahead bool // with Matrix: a stretch is loaded while the one before it is multiplied

	// Matrix, if set, is the shape of the matrices by which a subgroup computes RowsPer by ColsPer
	// results, which are then multiples of its M and N.
	Matrix Matrix
}

// Group is the number of invocations of a workgroup.
func (t *Tile) Group() int { return t.M / t.RowsPer * t.N / t.ColsPer * max(t.Matrix.Lanes, 1) }

// sizes are the numbers of batches, and of results along m and n.
func (t *Tile) sizes(dims []int64) (batch, m, n int64) {
	sizes := [3]int64{1, 1, 1}
	for d, size := range dims {
		class := 0
		switch {
		case d >= len(dims)-t.NDims:
			class = 2
		case d >= len(dims)-t.NDims-t.MDims:
			class = 1
		}
		sizes[class] *= size
	}
	return sizes[0], sizes[1], sizes[2]
}

// tiles are the numbers of tiles along m and n.
func (t *Tile) tiles(m, n int64) (int64, int64) {
	return (m + int64(t.M) - 1) / int64(t.M), (n + int64(t.N) - 1) / int64(t.N)
}

// tileSlots are the run-time words of a tiled shader.
type tileSlots struct {
	m, n           int // results along each
	mTiles, nTiles int // dimWords each
}

// dotOf is the contraction of a kernel, or -1.
func dotOf(k *codegen.Kernel) int {
	for i, in := range k.Body {
		if in.Op == ir.Dot {
			return i
		}
	}
	return -1
}

// reaches marks the given values and all values on which they depend, but does not go beyond stop.
func reaches(k *codegen.Kernel, stop int, from ...ir.Ref) []bool {
	need := make([]bool, len(k.Body))
	for _, v := range from {
		need[v] = true
	}
	for i := len(k.Body) - 1; i >= 0; i-- {
		if !need[i] || i == stop {
			continue
		}
		for _, a := range k.Body[i].Args {
			if a != ir.None {
				need[a] = true
			}
		}
	}
	return need
}

// DotOperands marks the operands on which each side of a kernel's contraction depends.
func DotOperands(k *codegen.Kernel) (a, b []bool) {
	var sides [2][]bool
	dot := dotOf(k)
	for i := range sides {
		sides[i] = make([]bool, len(k.Operands))
		for j, need := range reaches(k, dot, k.Body[dot].Args[i]) {
			if o, ok := operandOf(k.Body[j]); need && ok {
				sides[i][o] = true
			}
		}
	}
	return sides[0], sides[1]
}

func operandOf(in ir.Instr) (int, bool) {
	switch in.Op {
	case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
		return int(uint32(in.Imm)), true
	}
	return 0, false
}

// tileMain prints a contraction.
func (p *printer) tileMain() {
	v, t := p.v, p.v.Tile
	dot := dotOf(p.k)
	in := p.k.Body[dot]
	four, matrix := p.vec(scalarTypes[in.DT], 4), t.Matrix != Matrix{}
	if v.Lanes != 1 || isWide(in.DT) || in.DT == ir.Bool {
		p.fail("dot of %v over %d lanes: %w", in.DT, v.Lanes, ir.ErrUnsupported)
		return
	}
	sides := [2]ir.Ref{in.Args[0], in.Args[1]}
	if matrix {
		of := in.DT
		if t.Matrix.Parts == 0 {
			of, sides = Halves(p.k)
		}
		if of != t.Matrix.Operands() || !t.Fits() || p.Matrices == "" {
			p.fail("dot of %v and %v by matrices %+v: %w", in.DT, of, t, ir.ErrUnsupported)
			return
		}
	}
	batch := v.Kept - t.MDims - t.NDims
	a, b := t.sides()
	for i, side := range []struct {
		tileSide
		from, to int // dims
	}{{a, batch, batch + t.MDims}, {b, batch + t.MDims, v.Kept}} {
		p.tileElement(side.tileSide, sides[i], dot, batch, side.from, side.to)
		p.workgroup("t"+side.name, p.tileVector(), t.stretches()*t.planes()*t.vectors(side.tileSide))
	}
	if t.Matrix.Parts > 0 {
		p.global.WriteString(p.block(partsText+laterParts[t.Matrix.Parts], 4))
	}
	p.begin(true)
	for _, set := range p.words {
		p.f("%s", set)
	}
	s := p.slots.tile
	p.f("let row $u32 = %s;", p.quotient("i", s.nTiles, 1))
	p.f("let batch $u32 = %s;", p.quotient("row", s.mTiles, 1))
	p.coords("batch", 0, batch)
	p.f("let m0 $u32 = (row - batch * %s) * %du;", runWord(s.mTiles), t.M)
	p.f("let n0 $u32 = (i - row * %s) * %du;", runWord(s.nTiles), t.N)
	if matrix {
		p.matrixStart()
	} else {
		p.tileStart(four, in.DT)
	}
	switch {
	case t.Ahead:
		p.matrixAhead(batch)
	default:
		p.loop("k0", "0u", runWord(wordSteps), fmt.Sprintf("%du", t.K))
		p.tileLoad(batch)
		p.f("barrier;")
		if matrix {
			p.matrixMultiply()
		} else {
			p.tileMultiply(four, in.DT == ir.Float32)
		}
		p.f("barrier;")
		p.end()
	}
	if matrix {
		p.matrixStore(dot, batch)
	} else {
		p.tileStore(dot, batch)
	}
	p.end()
}

// tileStart prints where an invocation's results are, and its sums.
func (p *printer) tileStart(four string, dt ir.DType) {
	t := p.v.Tile
	cols := t.N / t.ColsPer
	p.f("let lm $u32 = lane / %du;", cols)
	p.f("let ln $u32 = lane %% %du;", cols)
	for i := range t.RowsPer {
		for j := range t.ColsPer / 4 {
			p.f("var r%dc%d %s = %s;", i, j, four, p.literal(dt, 0, 4))
		}
	}
}

// tileVector is the type of the vectors of both sides in workgroup memory.
func (p *printer) tileVector() string {
	if of := p.v.Tile.Matrix.Of; of != ir.Invalid {
		return p.vec(halfTypes[of], 4)
	}
	return p.vec(scalarTypes[p.k.Body[dotOf(p.k)].DT], 4)
}

// batchParams are the batch coordinates as parameters or arguments.
func batchParams(batch int, suffix string) string {
	s := ""
	for d := range batch {
		s += fmt.Sprintf("c%d%s, ", d, suffix)
	}
	return s
}

// tileElement prints the function that computes an element of one side of the contraction, or loads
// four neighbours of a wide side: 0 outside the matrix.
func (p *printer) tileElement(s tileSide, v ir.Ref, dot, batch, from, to int) {
	q := p.inside()
	dt, name, lanes := p.k.Body[v].DT, "element_"+s.name, 1
	size := p.slots.tile.m
	if s.name == "b" {
		size = p.slots.tile.n
	}
	if s.wide {
		name, lanes = "quad_"+s.name, 4
	}
	q.open("func %s(%si $u32, k $u32) %s {", name, batchParams(batch, " $u32"), p.vec(scalarTypes[dt], lanes))
	q.open("if (i >= %s || k >= %s) {", runWord(size), runWord(wordSteps))
	q.f("return %s;", p.literal(dt, 0, lanes))
	q.end()
	q.coords("i", from, to)
	for d := batch; d < p.v.Kept; d++ {
		if d < from || d >= to { // this side does not vary there
			q.f("let c%d $u32 = 0u;", d)
		}
	}
	q.coords("k", p.v.Kept, p.v.Rank)
	if s.wide {
		q.quad(s)
		q.lanes = 1
	} else {
		for i, need := range reaches(p.k, dot, v) {
			if need {
				q.instr(i)
			}
		}
		q.f("return %s;", q.value(v))
	}
	q.end()
	p.err = q.err
	p.global.WriteString("\n" + p.private(q.out.String()))
}

// private makes a function read run-time words from variables that tileMain sets once, if loops
// call the function: see hoist.
func (p *printer) private(text string) string {
	if !p.v.Tile.Looped {
		return text
	}
	for _, w := range runWords.FindAllString(text, -1) {
		name := runWords.ReplaceAllString(w, "g$1$2")
		if !p.made[name] {
			p.made[name] = true
			p.words = append(p.words, fmt.Sprintf("%s = %s;", name, w))
			p.global.WriteString(p.fill(p.Private, 1, name, p.vec("u32", 1)) + "\n")
		}
	}
	return runWords.ReplaceAllString(text, "g$1$2")
}

// inside is a printer of another function of the shader.
func (p *printer) inside() *printer {
	q := *p
	q.out = new(strings.Builder)
	q.indent, q.indexed, q.vals = 0, nil, make([]string, len(p.code))
	return &q
}

// tileLoad fills both sides' workgroup memory, four neighbours along m or n at a time. If the loads
// are written out, they wait for memory together.
func (p *printer) tileLoad(batch int) {
	for _, text := range p.tileLoads(batch, "") {
		p.f("%s", text)
	}
}

// writesOut reports whether the loads of a stretch are written out.
func (t *Tile) writesOut(group int) bool {
	return !t.Looped && group > 0 && t.M/4*t.K%group+t.N/4*t.K%group == 0
}

// tileLoads prints the loads, and returns what stores their results if they are written out. With
// Ahead, half is the half of both sides' memory to which they go.
func (p *printer) tileLoads(batch int, half string) (stores []string) {
	t := p.v.Tile
	a, b := t.sides()
	a.half, b.half = half, half
	sides := []tileSide{a, b}
	if !t.writesOut(p.v.Group) {
		for _, s := range sides {
			p.loop("e", "lane", fmt.Sprintf("%du", s.size/4*t.K), fmt.Sprintf("%du", p.v.Group))
			at, value := p.tileFetch(s, batch)
			if t.Matrix.Parts > 0 || s.wide {
				p.f("let l %s = %s;", p.fetched(s), value)
				value = "l"
			}
			for _, text := range p.tileStores(s, at, value) {
				p.f("%s", text)
			}
			p.end()
		}
		return nil
	}
	for _, s := range sides {
		for i := range s.size / 4 * t.K / p.v.Group {
			s.turn = fmt.Sprint(i)
			p.f("let e%s%d $u32 = lane + %du;", s.name, i, i*p.v.Group)
			at, value := p.tileFetch(s, batch)
			p.f("let l%s%d %s = %s;", s.name, i, p.fetched(s), value)
			stores = append(stores, p.tileStores(s, at, fmt.Sprintf("l%s%d", s.name, i))...)
		}
	}
	return stores
}

// fetched is the type of what tileFetch returns.
func (p *printer) fetched(s tileSide) string {
	switch {
	case p.v.Tile.Matrix.Parts > 0:
		return p.vec("f32", 4)
	case s.wide:
		return p.vec("u32", 4)
	}
	return p.tileVector()
}

// tileStores are the statements that store what tileFetch returned.
func (p *printer) tileStores(s tileSide, at, value string) []string {
	t := p.v.Tile
	switch {
	case p.v.Tile.Matrix.Parts > 0:
		return p.partStores(s, at, value)
	case s.wide:
		value = fmt.Sprintf("$halves(%[1]s.x | %[1]s.y << 16u, %[1]s.z | %[1]s.w << 16u)", value)
	}
	return []string{fmt.Sprintf("t%s[%s%s] = %s;", s.name, at, t.inHalf(s), value)}
}

// tileSide is one side of a tile.
type tileSide struct {
	name, origin string
	size         int
	along, wide  bool
	turn         string // number of the load if loads are written out; else ""
	half         string // of the side's memory, with Ahead: a number; "" is the first
}

func (t *Tile) sides() (a, b tileSide) {
	return tileSide{"a", "m0", t.M, t.AlongA, t.WideA, "", ""}, tileSide{"b", "n0", t.N, t.AlongB, t.WideB, "", ""}
}

// tileFetch prints the computation of load number e of a side, and returns its place and its
// elements.
func (p *printer) tileFetch(s tileSide, batch int) (at, value string) {
	t, id := p.v.Tile, ""
	if s.turn != "" {
		id = s.name + s.turn
	}
	if t.Matrix != (Matrix{}) {
		return p.matrixFetch(s, batch, id)
	}
	k, x, first := "k"+id, "x"+id, "at"+id
	if s.along {
		p.f("let %s $u32 = e%s %% %du;", k, id, t.K)
		p.f("let %s $u32 = e%s / %du;", x, id, t.K)
	} else {
		p.f("let %s $u32 = e%s / %du;", k, id, s.size/4)
		p.f("let %s $u32 = e%s %% %du;", x, id, s.size/4)
	}
	p.f("let %s $u32 = %s + %s * 4u;", first, s.origin, x)
	list := make([]string, 4)
	for i := range list {
		pos := first
		if i > 0 {
			pos += fmt.Sprintf(" + %du", i)
		}
		list[i] = fmt.Sprintf("element_%s(%s%s, k0 + %s)", s.name, batchParams(batch, ""), pos, k)
	}
	return fmt.Sprintf("%s * %du + %s", k, s.size/4+1, x), p.tileVector() + "(" + strings.Join(list, ", ") + ")"
}

// tileMultiply adds the products of a stretch of k, written out or in a loop.
func (p *printer) tileMultiply(four string, float bool) {
	t := p.v.Tile
	turns := t.K
	if t.Looped {
		turns = 1
	}
	at := func(lane string, per, size, k, i int) string {
		if t.Looped {
			return fmt.Sprintf("k * %du + %s * %du + %du", size/4+1, lane, per, i)
		}
		return fmt.Sprintf("%s + %du", lane, k*(size/4+1)+i*(size/4/per))
	}
	rows, cols := t.RowsPer/4, t.ColsPer/4
	for k := range turns {
		if t.Looped {
			p.loop("k", "0u", fmt.Sprintf("%du", t.K), "1u")
		} else {
			p.open("{")
		}
		for i := range rows {
			p.f("let x%d %s = ta[%s];", i, four, at("lm", rows, t.M, k, i))
		}
		for j := range cols {
			p.f("let y%d %s = tb[%s];", j, four, at("ln", cols, t.N, k, j))
		}
		for i := range t.RowsPer {
			for j := range cols {
				x := fmt.Sprintf("%s(x%d.%c)", four, i/4, "xyzw"[i%4])
				if float {
					p.f("r%dc%d = fma(%s, y%d, r%dc%d);", i, j, x, j, i, j)
				} else {
					p.f("r%dc%d = r%dc%d + %s * y%d;", i, j, i, j, x, j)
				}
			}
		}
		p.end()
	}
}

// place is the place, along one side of a tile of that size, of result i of an invocation's per
// results. On hardware, an invocation has every so-many-th group of four, so neighbouring
// invocations read and store neighbouring groups.
func (t *Tile) place(lane, i string, size, per int) string {
	if t.Looped || per == 4 {
		return fmt.Sprintf("%s * %du + %s", lane, per, i)
	}
	return fmt.Sprintf("(%s / 4u * %du + %s) * 4u + %s %% 4u", i, size/per, lane, i)
}

// tileStore prints the code that computes values from a result and stores them, once. The results
// of an invocation pass through r0c0.x one after another, because an array indexed by a variable
// would not be in registers.
func (p *printer) tileStore(dot, batch int) {
	t, result := p.v.Tile, "r0c0.x"
	if p.k.Body[dot].DT == ir.Uint8 {
		result = "r0c0.x & 255u"
	}
	cols := t.ColsPer / 4
	p.loop("j", "0u", fmt.Sprintf("%du", t.RowsPer), "1u")
	p.f("let m $u32 = m0 + %s;", t.place("lm", "j", t.M, t.RowsPer))
	p.loop("l", "0u", fmt.Sprintf("%du", t.ColsPer), "1u")
	p.f("let n $u32 = n0 + %s;", t.place("ln", "l", t.N, t.ColsPer))
	p.tileResult(dot, batch, result)
	p.rotate(t.ColsPer)
	p.end()
	for i := range t.RowsPer - 1 {
		for j := range cols {
			p.f("r%dc%d = r%dc%d;", i, j, i+1, j)
		}
	}
	p.end()
}

// tileResult prints the code that computes values from result (m, n) and stores them, if there is
// that result.
func (p *printer) tileResult(dot, batch int, result string) {
	t := p.v.Tile
	p.open("if (m < %s && n < %s) {", runWord(p.slots.tile.m), runWord(p.slots.tile.n))
	p.coords("m", batch, batch+t.MDims)
	p.coords("n", batch+t.MDims, p.v.Kept)
	p.dims, p.indexed = p.v.Kept, nil
	p.vals = make([]string, len(p.code))
	var from []ir.Ref
	for _, s := range p.k.Stores {
		from = append(from, s.Value)
	}
	for i, need := range reaches(p.k, dot, from...) {
		switch {
		case i == dot:
			p.vals[i] = fmt.Sprintf("v%d", i)
			p.let(p.vals[i], p.k.Body[dot].DT, result)
		case need:
			p.instr(i)
		}
	}
	for _, s := range p.k.Stores {
		p.store(s.Operand, p.value(s.Value), p.k.Body[s.Value].DT)
	}
	p.end()
}

// rotate moves the next column of the first row to r0c0.x. After all columns the row is used up.
func (p *printer) rotate(n int) {
	for j := range n / 4 {
		last := fmt.Sprintf("r0c%d.x", j)
		if j+1 < n/4 {
			last = fmt.Sprintf("r0c%d.x", j+1)
		}
		p.f("r0c%d = %s(r0c%d.yzw, %s);", j, p.vec(scalarTypes[p.k.Body[dotOf(p.k)].DT], 4), j, last)
	}
}
