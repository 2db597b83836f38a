package wgsl

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// combine is a reduction's operation: the op of the body that folds two
// values, and the value it starts from. An empty sum is +0, so floats start
// from that; the sign of a zero is within every tolerance.
type combine struct {
	op    ir.Op
	start func(dt ir.DType) uint64
}

var combines = map[ir.Op]combine{
	ir.Sum: {ir.Add, func(ir.DType) uint64 { return 0 }},
	ir.Max: {ir.Maximum, func(dt ir.DType) uint64 {
		switch dt {
		case ir.Float32:
			return 0xff800000
		case ir.Int32:
			return 0x80000000
		}
		return 0
	}},
}

// fold is the expression that combines two accumulators of reduction r.
func (p *printer) fold(r codegen.Reduce, x, y string) string {
	dt := p.k.Body[r.Value].DT
	in := ir.Instr{Op: combines[r.Op].op, DT: dt}
	return p.spell(in, []string{x, y}, []ir.DType{dt, dt}, p.v.Lanes)
}

// reduceMain prints both forms. Every accumulator has all lanes; they are
// folded into one at the very end, by swapping halves.
func (p *printer) reduceMain() {
	v, k := p.v, p.k
	for _, r := range k.Reduces {
		if _, ok := combines[r.Op]; !ok {
			p.fail("reduction %v: %w", r.Op, ir.ErrUnsupported)
			return
		}
	}
	first, step := "0u", "1u"
	if v.Mode == Rows {
		first, step = "lane", fmt.Sprintf("%du", v.Group)
		for i, r := range k.Reduces {
			fmt.Fprintf(p.global, "\nvar<workgroup> w%d : array<%s, %d>;\n", i, p.accType(r), v.Group)
		}
		p.f("fn main(@builtin(workgroup_id) id : vec3<u32>, @builtin(local_invocation_index) lane : u32) {")
	} else {
		p.f("fn main(@builtin(global_invocation_id) id : vec3<u32>) {")
	}
	p.indent++
	p.f("let i = id.y * %s + id.x;", p.word(wordWidth))
	p.f("if (i >= %s) {", p.word(wordCount))
	p.f("\treturn;")
	p.f("}")
	p.coords("i", 0, v.Kept)
	for i, r := range k.Reduces {
		dt := k.Body[r.Value].DT
		p.f("var r%d = %s;", i, literal(dt, combines[r.Op].start(dt), v.Lanes))
	}
	p.f("for (var r = %s; r < %s; r = r + %s) {", first, p.word(wordSteps), step)
	p.indent++
	p.coords("r", v.Kept, v.Rank)
	p.body()
	for _, s := range k.Stores {
		p.store(s.Operand, p.vals[s.Value], k.Body[s.Value].DT)
	}
	for i, r := range k.Reduces {
		p.f("r%d = %s;", i, p.fold(r, fmt.Sprintf("r%d", i), p.vals[r.Value]))
	}
	p.indent--
	p.f("}")
	if v.Mode == Rows {
		p.foldGroup()
		p.f("if (lane != 0u) {")
		p.f("\treturn;")
		p.f("}")
	}
	for i, r := range k.Reduces {
		if !v.Args[r.Operand].Skip {
			p.finish(i, r)
		}
	}
	p.indent--
	p.f("}")
}

func (p *printer) accType(r codegen.Reduce) string {
	return vec(scalarTypes[p.k.Body[r.Value].DT], p.v.Lanes)
}

// foldGroup combines the accumulators of a workgroup by halving.
func (p *printer) foldGroup() {
	for i := range p.k.Reduces {
		p.f("w%d[lane] = r%d;", i, i)
	}
	p.f("workgroupBarrier();")
	for s := p.v.Group / 2; s > 0; s /= 2 {
		p.f("if (lane < %du) {", s)
		p.indent++
		for i, r := range p.k.Reduces {
			p.f("r%d = %s;", i, p.fold(r, fmt.Sprintf("r%d", i), fmt.Sprintf("w%d[lane + %du]", i, s)))
			p.f("w%d[lane] = r%d;", i, i)
		}
		p.indent--
		p.f("}")
		p.f("workgroupBarrier();")
	}
}

// finish folds the lanes of accumulator i and stores it.
func (p *printer) finish(i int, r codegen.Reduce) {
	acc := fmt.Sprintf("r%d", i)
	if p.v.Lanes == 4 {
		p.f("%s = %s;", acc, p.fold(r, acc, acc+".zwxy"))
		p.f("%s = %s;", acc, p.fold(r, acc, acc+".yxwz"))
		acc += ".x"
	}
	b := p.v.Args[r.Operand].Binding
	val := toMemory(acc, p.k.Body[r.Value].DT, p.v.Bindings[b], 1)
	line := fmt.Sprintf("b%d[%s] = %s;", b, p.linear(r.Operand, p.v.Kept), val)
	conds := p.guards(r.Operand, p.v.Kept)
	for range conds {
		p.f("if (%s) {", conds[0])
		p.indent++
		conds = conds[1:]
	}
	p.f("%s", line)
	for p.indent > 1 {
		p.indent--
		p.f("}")
	}
}
