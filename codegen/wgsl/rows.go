package wgsl

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A shader of a kernel with row ops goes over its row in passes. A pass
// computes the point values it needs anew: arithmetic is cheaper to a GPU than
// memory, and a row that is read again comes from a cache. It ends with the
// results of its reductions in private variables of every invocation, so that
// the row values that follow from them need no memory and no barrier. Scans
// need no pass of their own: they are state that a pass carries along.

// rowPlan says which values a pass computes.
type rowPlan struct {
	level []codegen.Level
	pass  []int // of each value, the first that can compute it
	last  int
}

func planRows(k *codegen.Kernel) *rowPlan {
	r := &rowPlan{level: k.Levels(), pass: make([]int, len(k.Body))}
	for i, in := range k.Body {
		for _, a := range in.Args {
			if a != ir.None {
				r.pass[i] = max(r.pass[i], r.pass[a])
			}
		}
		if in.Op.Class() == ir.ClassReduce {
			r.pass[i]++
		}
		r.last = max(r.last, r.pass[i])
	}
	return r
}

// Passes is how often a shader of k goes over its row.
func Passes(k *codegen.Kernel) int {
	r, n := planRows(k), 0
	for pass := range r.last + 1 {
		if len(r.folds(k, pass))+len(r.stores(k, pass)) > 0 {
			n++
		}
	}
	return n
}

// folds lists the reductions that are complete after a pass.
func (r *rowPlan) folds(k *codegen.Kernel, pass int) []int {
	var list []int
	for i, in := range k.Body {
		if in.Op.Class() == ir.ClassReduce && r.pass[i] == pass+1 {
			list = append(list, i)
		}
	}
	return list
}

// stores lists what a pass stores at every point.
func (r *rowPlan) stores(k *codegen.Kernel, pass int) []codegen.Store {
	var list []codegen.Store
	for _, s := range k.Stores {
		if !k.Operands[s.Operand].Row && r.pass[s.Value] == pass {
			list = append(list, s)
		}
	}
	return list
}

// points marks the values that a pass computes at every point, and reports
// whether a scan is among them.
func (r *rowPlan) points(k *codegen.Kernel, pass int) (need []bool, scans bool) {
	need = make([]bool, len(k.Body))
	for _, i := range r.folds(k, pass) {
		need[k.Body[i].Args[0]] = true
	}
	for _, s := range r.stores(k, pass) {
		need[s.Value] = true
	}
	for i := len(k.Body) - 1; i >= 0; i-- {
		if need[i] = need[i] && r.level[i] == codegen.Point; !need[i] {
			continue
		}
		for _, a := range k.Body[i].Args {
			if a != ir.None {
				need[a] = true
			}
		}
		scans = scans || k.Body[i].Op.Class() == ir.ClassScan
	}
	return need, scans
}

// rowMain prints the passes, by workgroups or by single invocations.
func (p *printer) rowMain() {
	v, k := p.v, p.k
	for _, in := range k.Body {
		if in.Op == ir.Dot || in.Op.Class() == ir.ClassSort {
			p.fail("%v within a row: %w", in.Op, ir.ErrUnsupported)
			return
		}
	}
	p.rows = planRows(k)
	p.vals = make([]string, len(p.code))
	if v.Mode == Rows {
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
	for pass := range p.rows.last + 1 {
		p.once(func(q *printer) {
			for i, in := range k.Body {
				if p.rows.level[i] != codegen.Point && p.rows.pass[i] == pass && in.Op.Class() != ir.ClassReduce {
					q.instr(i)
				}
			}
		})
		p.pass(pass)
	}
	p.rowStores()
	p.indent--
	p.f("}")
}

// once prints code that runs once per row: over one lane, whatever the lanes
// of points, and by the coordinates of the kept dims alone.
func (p *printer) once(body func(q *printer)) {
	q := *p
	q.out = new(strings.Builder)
	q.lanes, q.dims, q.indexed = 1, p.v.Kept, nil
	one := p.v.Lanes > 1
	if one {
		q.uses, q.wide = p.single, new(bool)
	}
	body(&q)
	p.err = q.err
	text := q.out.String()
	if one {
		text = forOneLane(text)
		if *q.wide {
			p.fail("64-bit values beside lanes: %w", ir.ErrUnsupported)
		}
	}
	p.out.WriteString(text)
}

// pass prints one loop over the row, and what its reductions need before and
// after it.
func (p *printer) pass(pass int) {
	k, v := p.k, p.v
	folds, stores := p.rows.folds(k, pass), p.rows.stores(k, pass)
	if len(folds)+len(stores) == 0 {
		return
	}
	need, scans := p.rows.points(k, pass)
	for _, i := range folds {
		p.startFold(i)
	}
	for i := range k.Body {
		if need[i] && k.Body[i].Op.Class() == ir.ClassScan {
			p.f("var %s = %s;", scanState(pass, i), literal(k.Body[i].DT, scanStart(k.Body[i]), 1))
		}
	}
	together := scans && v.Mode == Rows // all invocations take part in every step
	switch {
	case together:
		p.f("for (var base = 0u; base < %s; base = base + %du) {", p.word(wordSteps), v.Group)
		p.f("\tlet on = base + lane < %s;", p.word(wordSteps))
		p.f("\tlet r = min(base + lane, %s - 1u);", p.word(wordSteps))
	case v.Mode == Rows:
		p.f("for (var r = lane; r < %s; r = r + %du) {", p.word(wordSteps), v.Group)
	default:
		p.f("for (var r = 0u; r < %s; r = r + 1u) {", p.word(wordSteps))
	}
	p.indent++
	p.indexed = nil
	p.coords("r", v.Kept, v.Rank)
	for i := range k.Body {
		switch {
		case !need[i]:
		case k.Body[i].Op.Class() == ir.ClassScan:
			p.scan(pass, i)
		default:
			p.instr(i)
		}
	}
	if together {
		p.f("if (on) {")
		p.indent++
	}
	for _, s := range stores {
		p.store(s.Operand, p.value(s.Value), k.Body[s.Value].DT)
	}
	for _, i := range folds {
		p.stepFold(i)
	}
	if together {
		p.indent--
		p.f("}")
	}
	p.indent--
	p.f("}")
	p.endFolds(folds)
}

// rowStores writes row values, by one invocation of a workgroup. They come
// last: what a row output overwrites, every invocation has read before.
func (p *printer) rowStores() {
	p.once(func(q *printer) {
		for _, s := range p.k.Stores {
			if !p.k.Operands[s.Operand].Row || p.v.Args[s.Operand].Skip {
				continue
			}
			if p.v.Mode == Rows {
				q.f("if (lane == 0u) {")
				q.indent++
			}
			q.store(s.Operand, q.value(s.Value), p.k.Body[s.Value].DT)
			if p.v.Mode == Rows {
				q.indent--
				q.f("}")
			}
		}
	})
}

// value is a value of the body where code over p's lanes uses it.
func (p *printer) value(a ir.Ref) string {
	in := p.code[a]
	switch {
	case in.Op == ir.Const:
		return literal(in.DT, in.Imm, p.lanes)
	case p.rows != nil && p.lanes > 1 && p.rows.level[a] != codegen.Point:
		return splat(p.vals[a], scalarTypes[in.DT], p.lanes)
	}
	return p.vals[a]
}

func scanState(pass, i int) string { return fmt.Sprintf("s%dp%d", i, pass) }
