package shader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// With Tile.Matrix a subgroup multiplies by cooperative matrices, which hardware has units for. Both
// sides go into workgroup memory as the 16-bit floats from which the contraction's operands are
// converted, so nothing is rounded; float32 operands go there in parts (parts.go). A side is stored in the order of its loads: along k if they are
// contiguous along k, else along m or n. The sums are float32. They go through workgroup memory too, a
// line of matrices of every subgroup at a time, since only the device knows which invocation holds
// which sum.

// Matrix is a shape of cooperative matrices: M by K elements times K by N. The zero value is none.
type Matrix struct {
	M, N, K int
	Lanes   int      // invocations of a subgroup
	Of      ir.DType // of the elements: Float16 or BFloat16
	Parts   int      // if 2 or 3: the operands are float32, each a sum of so many elements
}

// Operands is the dtype of the operands that are multiplied.
func (x *Matrix) Operands() ir.DType {
	if x.Parts > 0 {
		return ir.Float32
	}
	return x.Of
}

// WideOperand is the operand that side 0 or 1 of a prepared kernel's contraction is by matrices x,
// or -1 if it is computed. Four neighbours of it can be loaded as one vector if its binding has
// vectors, and if its memory is so.
func WideOperand(k *codegen.Kernel, x *Matrix, side int) int {
	dot := dotOf(k)
	v := k.Body[dot].Args[side]
	if x.Parts == 0 {
		of, sides := Halves(k)
		if of == ir.Invalid {
			return -1
		}
		v = sides[side]
	}
	for k.Body[v].Op == ir.Bitcast {
		v = k.Body[v].Args[0]
	}
	if in := k.Body[v]; in.Op == ir.Load && in.Args[0] == ir.None && in.DT.Bits() == x.Operands().Bits() {
		return int(in.Imm)
	}
	return -1
}

// quad prints the load of four neighbours of a wide side, whose first has a position that is a
// multiple of four.
func (p *printer) quad(s tileSide) {
	k := WideOperand(p.k, &p.v.Tile.Matrix, strings.Index("ab", s.name))
	if k < 0 || p.v.Tile.Matrix == (Matrix{}) || p.v.Args[k].Binding < 0 || p.v.Args[k].Parts > 1 || len(p.v.Args[k].Stages) > 0 || !p.v.Bindings[p.v.Args[k].Binding].Vec {
		p.fail("side %s has no vectors: %w", s.name, ir.ErrUnsupported)
		return
	}
	at := p.element(k, p.position(k)+" / 4u")
	p.lanes = 4
	p.f("return %s;", p.fromMemory(k, p.k.Operands[k].DT, at))
}

// IsDot reports whether a prepared kernel contracts values of a dtype.
func IsDot(k *codegen.Kernel, of ir.DType) bool {
	dot := dotOf(k)
	return dot >= 0 && k.Body[dot].DT == of
}

// matrixPad is the number of vectors behind each line of a side in workgroup memory, which puts
// neighbouring lines into different banks, and matrixSumPad that of sums.
const matrixPad, matrixSumPad = 2, 4

// Halves finds the 16-bit floats from which the operands of a prepared kernel's contraction are
// converted: values of dtype of, or of Uint16 with their bits. Without them, of is Invalid.
func Halves(k *codegen.Kernel) (of ir.DType, sides [2]ir.Ref) {
	dot := dotOf(k)
	if dot < 0 || k.Body[dot].DT != ir.Float32 {
		return ir.Invalid, sides
	}
	same, err := Prepare(k)
	if err != nil {
		return ir.Invalid, sides
	}
	for _, of = range [...]ir.DType{ir.Float16, ir.BFloat16} {
		for i := range sides {
			sides[i] = halfOf(k, same.String(), dot, i, of)
		}
		if sides[0] != ir.None && sides[1] != ir.None {
			return of, sides
		}
	}
	return ir.Invalid, sides
}

// halfOf is the 16-bit float from which an operand of a contraction is converted, or None. The
// kernel has the ops into which the conversion was lowered, which depend on that value alone: it is
// the last one of its type on which the operand depends. It is converted in the operand's place. If
// the kernel's text stays the same, this was the operand.
func halfOf(k *codegen.Kernel, text string, dot, side int, of ir.DType) ir.Ref {
	need := reaches(k, dot, k.Body[dot].Args[side])
	v := ir.Ref(dot - 1)
	for v >= 0 && (!need[v] || k.Body[v].DT != of && k.Body[v].DT != ir.Uint16) {
		v--
	}
	if v < 0 {
		return ir.None
	}
	if other, err := Prepare(converting(k, dot, side, v, of)); err != nil || other.String() != text {
		return ir.None
	}
	return v
}

// converting is a kernel whose contraction has another operand: v, bits of dtype of, converted.
func converting(k *codegen.Kernel, dot, side int, v ir.Ref, of ir.DType) *codegen.Kernel {
	c := *k
	one := func(op ir.Op, dt ir.DType, x ir.Ref) ir.Instr {
		return ir.Instr{Op: op, DT: dt, Args: [4]ir.Ref{x, ir.None, ir.None, ir.None}}
	}
	c.Body = slices.Insert(slices.Clone(k.Body), dot, one(ir.Bitcast, of, v), one(ir.Cast, ir.Float32, ir.Ref(dot)))
	behind := func(r *ir.Ref) {
		if *r >= ir.Ref(dot) {
			*r += 2
		}
	}
	for i := dot + 2; i < len(c.Body); i++ {
		for j := range c.Body[i].Args {
			behind(&c.Body[i].Args[j])
		}
	}
	c.Body[dot+2].Args[side] = ir.Ref(dot + 1)
	c.Stores = slices.Clone(k.Stores)
	for i := range c.Stores {
		behind(&c.Stores[i].Value)
	}
	return &c
}

// halfTypes are the types of elements of matrices.
var halfTypes = map[ir.DType]string{ir.Float16: "f16", ir.BFloat16: "bf16"}

// Fits reports whether a tile can be computed by its matrices.
func (t *Tile) Fits() bool {
	x := &t.Matrix
	for _, n := range [...]int{x.M, x.N, x.K} {
		if n < 1 || n%4 != 0 { // lines are made of vectors
			return false
		}
	}
	return x.Lanes > 0 && halfTypes[x.Of] != "" && (x.Parts == 0 || x.Parts == 2 || x.Parts == 3) && t.RowsPer > 0 && t.ColsPer > 0 &&
		t.M%t.RowsPer+t.N%t.ColsPer+t.RowsPer%x.M+t.ColsPer%x.N+t.K%x.K == 0 && (!t.Ahead || t.writesOut(t.Group()))
}

// line is the number of vectors between lines of a side in workgroup memory.
func (t *Tile) line(s tileSide) int {
	if s.along {
		return t.K/4 + matrixPad
	}
	return s.size/4 + matrixPad
}

// Memory is the bytes of workgroup memory that a tile with matrices takes.
func (t *Tile) Memory() int {
	a, b := t.sides()
	sums := t.M / t.RowsPer * (t.N / t.ColsPer) * t.Matrix.M * (t.ColsPer + matrixSumPad)
	return 8*t.stretches()*t.planes()*(t.vectors(a)+t.vectors(b)) + 4*sums
}

// planes is the number of parts of each element in workgroup memory.
func (t *Tile) planes() int { return max(t.Matrix.Parts, 1) }

// stretches is the number of stretches of k that workgroup memory has at a time.
func (t *Tile) stretches() int {
	if t.Ahead {
		return 2
	}
	return 1
}

// inHalf is the text that moves a place in a side's memory to the side's half.
func (t *Tile) inHalf(s tileSide) string {
	if s.half == "" {
		return ""
	}
	return fmt.Sprintf(" + %s * %du", s.half, t.planes()*t.vectors(s))
}

// matrixAhead prints the loop over k with loads of the next stretch, which go to the half of memory
// that the present one does not have. They are issued before the products, and stored behind them.
func (p *printer) matrixAhead(batch int) {
	k := p.v.Tile.K
	p.open("{")
	p.f("let k0 $u32 = 0u;")
	p.tileLoad(batch)
	p.end()
	p.f("barrier;")
	p.loop("now", "0u", runWord(wordSteps), fmt.Sprintf("%du", k))
	p.f("let k0 $u32 = now + %du;", k)
	p.f("let half $u32 = now / %du %% 2u;", k)
	p.f("let other $u32 = 1u - half;")
	stores := p.tileLoads(batch, "other")
	p.matrixMultiply()
	for _, text := range stores {
		p.f("%s", text)
	}
	p.f("barrier;")
	p.end()
}

// vectors is the length of a side's workgroup memory, or of a plane of it.
func (t *Tile) vectors(s tileSide) int {
	switch {
	case t.Matrix == Matrix{}:
		return t.K * (s.size/4 + 1)
	case s.along:
		return s.size * t.line(s)
	}
	return t.K * t.line(s)
}

// matrixFetch is tileFetch for matrices, which may lie along k.
func (p *printer) matrixFetch(s tileSide, batch int, id string) (at, value string) {
	t := p.v.Tile
	line, step := "k", "x"
	if s.along {
		line, step = "x", "k"
	}
	along := map[string]int{"k": t.K / 4, "x": s.size / 4}[step]
	p.f("let %s%s $u32 = e%s / %du;", line, id, id, along)
	p.f("let %s%s $u32 = e%s %% %du * 4u;", step, id, id, along)
	p.f("let at%s $u32 = %s + x%s;", id, s.origin, id)
	p.f("let to%s $u32 = k0 + k%s;", id, id)
	at = fmt.Sprintf("%s%s * %du + %s%s / 4u", line, id, t.line(s), step, id)
	if s.wide {
		return at, fmt.Sprintf("quad_%s(%sat%s, to%s)", s.name, batchParams(batch, ""), id, id)
	}
	list := make([]string, 4)
	for i := range list {
		next := ""
		if i > 0 {
			next = fmt.Sprintf(" + %du", i)
		}
		x, k := next, ""
		if s.along {
			x, k = "", next
		}
		list[i] = fmt.Sprintf("element_%s(%sat%s%s, to%s%s)", s.name, batchParams(batch, ""), id, x, id, k)
	}
	if t.Matrix.Parts > 0 {
		return at, fmt.Sprintf("%s(%s)", p.vec("f32", 4), strings.Join(list, ", "))
	}
	return at, fmt.Sprintf("$halves(%s | %s << 16u, %s | %s << 16u)", list[0], list[1], list[2], list[3])
}

// matrixStart prints where a subgroup's results are, and its sums.
func (p *printer) matrixStart() {
	t := p.v.Tile
	p.f("let unit $u32 = $subgroup();")
	p.f("let um $u32 = unit / %du * %du;", t.N/t.ColsPer, t.RowsPer)
	p.f("let un $u32 = unit %% %du * %du;", t.N/t.ColsPer, t.ColsPer)
	for i := range t.RowsPer / t.Matrix.M {
		for j := range t.ColsPer / t.Matrix.N {
			p.f("var r%dc%d $matc = $matc(0.0);", i, j)
		}
	}
}

// matrixMultiply adds the products of a stretch of k.
func (p *printer) matrixMultiply() {
	t, x := p.v.Tile, p.v.Tile.Matrix
	a, b := t.sides()
	if t.Ahead {
		a.half, b.half = "half", "half"
	}
	rows, cols := t.RowsPer/x.M, t.ColsPer/x.N
	// matload expects lines of A along k, and lines of B along n.
	load := func(name, typ string, s tileSide, from string, i, k int, across bool) {
		for part := range t.planes() {
			how, first := "matload", part*t.vectors(s)+k/4
			at := fmt.Sprintf("(%s + %du) * %du + %du", from, i, t.line(s), first)
			if !s.along {
				at = fmt.Sprintf("%du + %s / 4u", part*t.vectors(s)+k*t.line(s)+i/4, from)
			}
			if across {
				how = "matloadt"
			}
			p.f("let %s $%s = %s($%s, t%s[%s], %du);", t.part(name, part), typ, how, typ, s.name, at+t.inHalf(s), t.line(s))
		}
	}
	for k := 0; k < t.K; k += x.K {
		p.open("{")
		for i := range rows {
			load(fmt.Sprintf("x%d", i), "mata", a, "um", i*x.M, k, !a.along)
		}
		for j := range cols {
			load(fmt.Sprintf("y%d", j), "matb", b, "un", j*x.N, k, b.along)
		}
		for i := range rows {
			for j := range cols {
				if x.Parts > 0 {
					p.f("r%dc%d = r%dc%d + %s;", i, j, i, j, t.partSum(fmt.Sprintf("x%d", i), fmt.Sprintf("y%d", j)))
					continue
				}
				p.f("r%dc%d = matadd(x%d, y%d, r%dc%d);", i, j, i, j, i, j)
			}
		}
		p.end()
	}
}

// matrixStore prints the code that computes values from results and stores them, once. The sums of
// a subgroup come to workgroup memory from the first line of its matrices, to which the other lines
// move.
func (p *printer) matrixStore(dot, batch int) {
	t, x := p.v.Tile, p.v.Tile.Matrix
	rows, cols := t.RowsPer/x.M, t.ColsPer/x.N
	units, line := t.M/t.RowsPer*(t.N/t.ColsPer), t.ColsPer+matrixSumPad
	p.workgroup("tc", p.vec("f32", 1), units*x.M*line)
	p.loop("j", "0u", fmt.Sprintf("%du", t.RowsPer), fmt.Sprintf("%du", x.M))
	for c := range cols {
		p.f("matstore(tc[unit * %du + %du], r0c%d, %du);", x.M*line, c*x.N, c, line)
	}
	p.f("barrier;")
	p.loop("e", "lane", fmt.Sprintf("%du", units*x.M*t.ColsPer), fmt.Sprintf("%du", p.v.Group))
	p.f("let far $u32 = e / %du;", t.ColsPer) // lines of all subgroups
	p.f("let near $u32 = e %% %du;", t.ColsPer)
	p.f("let of $u32 = far / %du;", x.M)
	p.f("let m $u32 = m0 + of / %du * %du + j + far %% %du;", t.N/t.ColsPer, t.RowsPer, x.M)
	p.f("let n $u32 = n0 + of %% %du * %du + near;", t.N/t.ColsPer, t.ColsPer)
	p.tileResult(dot, batch, fmt.Sprintf("tc[far * %du + near]", line))
	p.end()
	p.f("barrier;")
	for i := range rows - 1 {
		for c := range cols {
			p.f("r%dc%d = r%dc%d;", i, c, i+1, c)
		}
	}
	p.end()
}
