package shader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// A shader of a kernel with row ops goes over its row in passes. A pass recomputes the point values
// it needs: for a GPU arithmetic is cheaper than memory, and a row that is read again comes from a
// cache. At the end of a pass every invocation has the results of its reductions in private
// variables, so the row values that follow from them need no memory and no barrier. Scans need no
// pass of their own: a pass updates their state.

// rowPlan says which values a pass computes.
type rowPlan struct {
	level []codegen.Level
	pass  []int // by value: the first pass that can compute it
	last  int
	top   []int  // for a sum computed along with a maximum: that maximum; else -1
	made  []int  // for a point value: the first pass that needs it
	held  []bool // values that unrolled steps compute once for several passes
}

func planRows(k *codegen.Kernel, online bool) *rowPlan {
	r := &rowPlan{level: k.Levels(), top: make([]int, len(k.Body))}
	for i := range r.top {
		r.top[i] = -1
	}
	r.number(k)
	if online {
		r.findOnline(k)
		r.number(k)
	}
	r.hold(k)
	return r
}

// number finds the pass of every value.
func (r *rowPlan) number(k *codegen.Kernel) {
	r.pass, r.last = make([]int, len(k.Body)), 0
	for i, in := range k.Body {
		for _, a := range in.Args {
			if a != ir.None {
				r.pass[i] = max(r.pass[i], r.pass[a])
			}
		}
		if in.Op.Class() == ir.ClassReduce {
			r.pass[i] = r.pass[r.foldArg(k, i)] + 1
		}
		r.last = max(r.last, r.pass[i])
	}
}

// hold finds the values that several passes need: the first of these computes them, and the others
// use its results. It does not keep values that a single pass needs, even if an earlier pass could
// compute them, nor the operands of kept values.
func (r *rowPlan) hold(k *codegen.Kernel) {
	r.made = make([]int, len(k.Body))
	r.held = make([]bool, len(k.Body))
	made := make([]bool, len(k.Body))
	for pass := range r.last + 1 {
		need := make([]bool, len(k.Body))
		r.roots(k, pass, need)
		for i := len(k.Body) - 1; i >= 0; i-- {
			if !need[i] || r.level[i] != codegen.Point || k.Body[i].Op == ir.Const {
				continue
			}
			if made[i] {
				r.held[i] = true
				continue
			}
			made[i], r.made[i] = true, pass
			for _, a := range k.Body[i].Args {
				if a != ir.None {
					need[a] = true
				}
			}
		}
	}
}

func (r *rowPlan) roots(k *codegen.Kernel, pass int, need []bool) {
	for _, i := range r.folds(k, pass) {
		need[r.foldArg(k, i)] = true
	}
	for _, s := range r.stores(k, pass) {
		need[s.Value] = true
	}
}

// Passes is the number of passes of a shader of k over its row.
func Passes(k *codegen.Kernel) int {
	r, n := planRows(k, false), 0
	for pass := range r.last + 1 {
		if len(r.folds(k, pass))+len(r.stores(k, pass)) > 0 {
			n++
		}
	}
	return n
}

// RowWork is the work of a shader of rows at a point.
type RowWork struct {
	Accesses float64 // loads and stores; one that neighbours share counts as a fraction
	Instrs   int     // as written out
}

// CountRowWork counts over all passes of v's shader of k.
func CountRowWork(k *codegen.Kernel, v *Variant, unrolled bool) RowWork {
	r, share := planRows(k, v.Online > 0), still(k, v)
	var w RowWork
	access := func(shared bool) {
		if shared && v.Each > 1 {
			w.Accesses += 1 / float64(v.Each)
		} else {
			w.Accesses++
		}
	}
	for pass := range r.last + 1 {
		need, _ := r.points(k, pass, unrolled)
		for i, in := range k.Body {
			if !need[i] || unrolled && r.held[i] && r.made[i] < pass {
				continue
			}
			w.Instrs++
			if in.Op == ir.Load || in.Op == ir.LoadAt {
				access(share[i])
			}
		}
		for range r.stores(k, pass) {
			w.Instrs++
			access(false)
		}
		w.Instrs += len(r.folds(k, pass))
	}
	return w
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

// stores lists the stores that a pass does at every point.
func (r *rowPlan) stores(k *codegen.Kernel, pass int) []codegen.Store {
	var list []codegen.Store
	for _, s := range k.Stores {
		if !k.Operands[s.Operand].Row && r.pass[s.Value] == pass {
			list = append(list, s)
		}
	}
	return list
}

// points marks the values that a pass computes at every point, and reports whether a scan is among
// them.
func (r *rowPlan) points(k *codegen.Kernel, pass int, unrolled bool) (need []bool, scans bool) {
	need = make([]bool, len(k.Body))
	r.roots(k, pass, need)
	for i := len(k.Body) - 1; i >= 0; i-- {
		if need[i] = need[i] && r.level[i] == codegen.Point; !need[i] {
			continue
		}
		if unrolled && r.held[i] && r.made[i] < pass {
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
		if v.Beside > 0 && (v.Unroll > 0 || v.Each > 0 || v.Lanes > 1 || in.Op.Class() == ir.ClassScan) {
			p.fail("rows beside each other in another way: %w", ir.ErrUnsupported)
			return
		}
		if v.Ragged && (v.Mode != Rows || v.Rank-v.Kept != 1 || v.Lanes < 2 || v.Each > 0 || v.Beside > 0 || v.Online > 0 || v.Tail) {
			p.fail("ragged rows in another way: %w", ir.ErrUnsupported)
			return
		}
		if v.Abreast > 0 && (v.Mode != Rows || v.Each > 0 || v.Beside > 0 || v.Online > 0 || v.Subgroups) {
			p.fail("rows abreast in another way: %w", ir.ErrUnsupported)
			return
		}
		if v.Subgroups && (p.Dialect.Subgroups == "" || v.Each > 1 || v.Beside > 0) || v.Cluster > 1 && p.Shuffles == "" || v.Clustered && p.Clusters == "" {
			p.fail("subgroups: %w", ir.ErrUnsupported)
			return
		}
		if in.Op == ir.Dot || in.Op.Class() == ir.ClassSort {
			p.fail("%v within a row: %w", in.Op, ir.ErrUnsupported)
			return
		}
	}
	p.rows = planRows(k, v.Online > 0)
	p.still = still(k, v)
	p.vals = make([]string, len(p.code))
	p.begin(v.Mode == Rows)
	if v.Subgroups && slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op.Class() == ir.ClassScan }) {
		p.bySubgroups()
	}
	row := "i"
	if v.Beside > 0 || v.Abreast > 0 {
		row = p.severalRows()
	}
	passes := func() {
		p.coords(row, 0, v.Kept)
		p.bases()
		if v.raggedRows() {
			p.heads()
		}
		for pass := range p.rows.last + 1 {
			p.rowValues(pass)
			if pass == 0 && v.Unroll > 0 {
				p.hold()
			}
			p.pass(pass)
		}
		p.rowStores()
	}
	if v.Each > 1 || v.Online > 0 {
		p.hoist(passes)
	} else {
		passes()
	}
	p.end()
}

// rowValues prints the code that runs once per row before a pass: the results of the reductions of
// the pass before, and the row values that follow from them.
func (p *printer) rowValues(pass int) {
	folds := p.rows.folds(p.k, pass-1)
	p.once(func(q *printer) {
		own := slices.Clone(folds)
		for i, in := range p.code {
			switch {
			case p.rows.level[i] == codegen.Point || p.rows.pass[i] != pass || in.Op.Class() == ir.ClassReduce:
			case p.shared(i):
				q.instr(i)
			default:
				own = append(own, i)
			}
		}
		end := q.keep(own, pass)
		q.endFolds(folds, p.lanes/q.lanes, func() {
			for _, i := range own[len(folds):] {
				q.instr(i)
			}
			end()
		})
	})
}

// once prints code that runs once per row. It is over one lane, whatever the lanes of points,
// unless lanes are rows; and it uses only the coordinates of the kept dims.
func (p *printer) once(body func(q *printer)) {
	q := *p
	q.out = new(strings.Builder)
	q.lanes, q.dims, q.indexed, q.masked = p.rowLanes(), p.v.Kept, nil, false
	one := p.v.Lanes > q.lanes
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

// pass prints one loop over the row, and the code that its reductions need before and after it.
func (p *printer) pass(pass int) {
	k, v := p.k, p.v
	folds, stores := p.rows.folds(k, pass), p.rows.stores(k, pass)
	if len(folds)+len(stores) == 0 {
		return
	}
	need, scans := p.rows.points(k, pass, v.Unroll > 0)
	var states []state
	for _, i := range folds {
		states = append(states, p.foldStates(i)...)
	}
	for i, in := range k.Body {
		if need[i] && in.Op.Class() == ir.ClassScan {
			states = append(states, state{scanState(pass, i), p.vec(scalarTypes[in.DT], p.rowLanes()), p.literal(in.DT, scanStart(in), p.rowLanes())})
		}
	}
	p.startStates(states)
	switch {
	case v.Unroll > 0:
		for u := range v.Unroll {
			p.open("{")
			p.f("let at $u32 = %s + %du;", p.slice(), u*v.sharing())
			if (!p.guarded() || v.raggedRows() && !p.maskedStep(u)) && v.Rank-v.Kept == 1 {
				p.apart = fmt.Sprintf("%s + %du", p.slice(), u*v.sharing())
			}
			p.step(pass, u, need, p.guarded())
			p.apart = ""
			p.end()
		}
	case scans && v.Mode == Rows: // all invocations take part in every step
		p.loop("base", "0u", runWord(wordSteps), fmt.Sprintf("%du", v.sharing()))
		p.f("let at $u32 = base + %s;", p.slice())
		p.step(pass, 0, need, true)
		p.end()
	case p.together(pass, scans):
		p.loop("at", "0u", runWord(wordSteps), fmt.Sprintf("%du", v.Online))
		p.stepTogether(pass, need)
		p.end()
	default:
		first, stride := "0u", 1
		if v.Mode == Rows {
			first, stride = p.slice(), v.sharing()
		}
		steps := runWord(wordSteps)
		if v.raggedRows() {
			steps = "count"
		}
		p.loop("at", first, steps, fmt.Sprintf("%du", stride))
		p.step(pass, 0, need, false)
		p.end()
	}
}

// slice is the number of an invocation among those that share a row.
func (p *printer) slice() string {
	if p.v.Beside > 0 || p.v.Abreast > 0 {
		return "slice"
	}
	return "lane"
}

// rowLanes is the number of lanes of row values.
func (p *printer) rowLanes() int {
	if p.v.Across {
		return p.v.Lanes
	}
	return 1
}

// guarded reports that the last unrolled step may end outside the row.
func (p *printer) guarded() bool { return !p.v.Exact }

// step prints the work of a pass at one point, or vector of points, of the row: number at. If that
// may be outside the row, the last one inside replaces it, and its effects are guarded.
func (p *printer) step(pass, u int, need []bool, guarded bool) {
	k := p.k
	r := "at"
	if p.v.raggedRows() {
		p.masked = p.maskedStep(u)
		if guarded && p.masked {
			p.f("let r $u32 = min(at, count - 1u);")
			r = "r"
		}
		p.lanesWithin(p.masked)
		guarded = false
	}
	if guarded {
		p.f("let on $bool = at < %s;", runWord(wordSteps))
		p.f("let r $u32 = min(at, %s - 1u);", runWord(wordSteps))
		r = "r"
	}
	p.point = r
	p.indexed = nil
	p.coords(r, p.v.Kept, p.v.Rank)
	for i := range k.Body {
		if need[i] && p.shared(i) {
			p.instr(i)
		}
	}
	p.each(func() { p.stepOwn(pass, u, need, guarded) })
	p.masked = false
}

// stepOwn prints the part of a step that neighbours do not share.
func (p *printer) stepOwn(pass, u int, need []bool, guarded bool) {
	k := p.k
	for i, in := range k.Body {
		switch {
		case !need[i] || p.shared(i):
		case p.v.Unroll > 0 && p.rows.held[i] && p.rows.made[i] < pass:
			p.vals[i] = held(i, u)
		case in.Op.Class() == ir.ClassScan:
			p.scan(pass, i)
		default:
			p.instr(i)
			if p.v.Unroll > 0 && p.rows.held[i] {
				p.f("%s = %s;", held(i, u), p.vals[i])
			}
		}
	}
	stores, conds := p.rows.stores(k, pass), []string(nil)
	if guarded {
		conds = append(conds, "on")
	}
	if p.v.Abreast > 0 && len(stores) > 0 {
		conds = append(conds, "live")
	}
	if len(conds) > 0 {
		p.open("if (%s) {", strings.Join(conds, " && "))
	}
	for _, s := range stores {
		p.store(s.Operand, p.value(s.Value), k.Body[s.Value].DT)
	}
	for _, i := range p.rows.folds(k, pass) {
		p.stepFold(i)
	}
	if len(conds) > 0 {
		p.end()
	}
}

// hold declares the values that unrolled steps keep for later passes.
func (p *printer) hold() {
	for i, in := range p.k.Body {
		if !p.rows.held[i] {
			continue
		}
		for u := range p.v.Unroll {
			p.f("var %s %s;", held(i, u), p.vec(scalarTypes[in.DT], p.lanes))
		}
	}
}

func held(i, u int) string { return fmt.Sprintf("h%du%d", i, u) }

// rowStores writes row values, by one invocation of a workgroup. They come last: by then, every
// invocation has read everything that a row output may overwrite.
func (p *printer) rowStores() {
	p.once(func(q *printer) {
		for _, s := range p.k.Stores {
			if !p.k.Operands[s.Operand].Row || p.v.Args[s.Operand].Skip {
				continue
			}
			if p.v.Mode == Rows {
				live := ""
				if p.v.Abreast > 0 {
					live = " && live"
				}
				q.open("if (%s == 0u%s) {", p.slice(), live)
			}
			q.each(func() { q.store(s.Operand, q.value(s.Value), p.k.Body[s.Value].DT) })
			if p.v.Mode == Rows {
				q.end()
			}
		}
	})
}

// value is a value of the body in the form that code over p's lanes uses.
func (p *printer) value(a ir.Ref) string {
	in := p.code[a]
	switch {
	case in.Op == ir.Const:
		return p.literal(in.DT, in.Imm, p.lanes)
	case p.rows != nil && p.lanes > 1 && !p.v.Across && p.rows.level[a] != codegen.Point:
		return p.splat(p.vals[a], scalarTypes[in.DT], p.lanes)
	}
	return p.vals[a]
}

func scanState(pass, i int) string { return fmt.Sprintf("s%dp%d", i, pass) }
