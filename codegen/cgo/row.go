package cgo

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// walkText walks through the domain row by row. A row is a run of points along the innermost dim.
// The start of each operand in a row is computed from that in the previous row.
const walkText = `
static inline void locate(const mr_args *a, mr_i64 p, mr_i64 *at)
{
	for (mr_i64 d = a->rank - 1; d > 0; d--) {
		at[d] = p % a->dims[d];
		p /= a->dims[d];
	}
	at[0] = p;
}

static inline void starts(const mr_args *a, const mr_i64 *at, mr_i64 *from, int n)
{
	for (int k = 0; k < n; k++) {
		mr_i64 p = a->ops[k].offset;
		for (mr_i64 d = 0; d < a->rank; d++)
			p += a->ops[k].stride[d] * at[d];
		from[k] = p;
	}
}

/* Most rows begin one step along the dim before the innermost behind the row before them. */
static inline void advance(const mr_args *a, mr_i64 *at, mr_i64 *from, int n)
{
	mr_i64 d = a->rank - 1;
	const mr_i64 within = at[d]; /* where the first row may have begun */
	at[d] = 0;
	if (--d >= 0 && ++at[d] < a->dims[d] && within == 0) {
		for (int k = 0; k < n; k++)
			from[k] += a->ops[k].stride[d];
		return;
	}
	while (d >= 0 && at[d] == a->dims[d]) {
		at[d] = 0;
		if (--d >= 0)
			at[d]++;
	}
	starts(a, at, from, n);
}
`

// guardText tells whether a row's points store: all dims of stride 0, except the innermost, must be
// at position 0.
const guardText = `
static inline int stores(const mr_args *a, int k, const mr_i64 *at)
{
	const mr_u32 guard = a->ops[k].guard;
	for (mr_i64 d = 0; d < a->rank - 1; d++)
		if (guard >> d & 1 && at[d] != 0)
			return 0;
	return 1;
}
`

// used reports the operands that the kernel uses.
func (p *printer) used() []bool {
	used := make([]bool, len(p.k.Operands))
	for _, in := range p.k.Body {
		switch in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
			used[uint32(in.Imm)] = true
		}
	}
	for _, s := range p.k.Stores {
		used[s.Operand] = true
	}
	return used
}

// row prints the evaluation of n points along the innermost dim: first as many full vectors as
// there are, then the rest in copies that are a vector long. Both use the same loop, so the body
// exists once.
func (p *printer) row() error {
	used := p.used()
	for i, o := range p.k.Operands {
		if used[i] {
			p.rowStart(i, o)
		}
	}
	p.linef(2, "for (int tail = 0; tail < 2; tail++) {")
	p.linef(3, "mr_i64 m = n & -%d;", p.lanes)
	if p.countsDone(used) {
		p.linef(3, "mr_i64 done = 0; /* elements of the row before this pass */")
	}
	for i, o := range p.k.Operands {
		if used[i] && p.direct(i, o) {
			p.linef(3, "_Alignas(64) %s t%d[%d];", ctypes[o.DT].elem, i, p.lanes)
		}
	}
	for i, r := range p.k.Reduces {
		p.linef(3, "_Alignas(64) %s tr%d[%d];", ctypes[p.k.Body[r.Value].DT].elem, i, p.lanes)
	}
	p.tailStart(used)
	p.linef(3, "mr_i64 i = 0;")
	if n := p.unroll(); n > 1 {
		p.linef(3, "for (; i + %d <= m; i += %d) {", n*p.lanes, n*p.lanes)
		if err := p.body(4, n); err != nil {
			return err
		}
		p.linef(3, "}")
	}
	p.linef(3, "for (; i < m; i += %d) {", p.lanes)
	if err := p.body(4, 1); err != nil {
		return err
	}
	p.linef(3, "}")
	p.tailEnd(used)
	p.linef(2, "}")
	for i := range p.k.Reduces {
		p.linef(2, "r%d += n;", i)
	}
	return nil
}

// copiesBack reports that a tail has results to copy.
func (p *printer) copiesBack(used []bool) bool {
	for i, o := range p.k.Operands {
		if used[i] && p.direct(i, o) && o.Kind == codegen.Output {
			return true
		}
	}
	return len(p.k.Reduces) > 0
}

// countsDone reports that the loop needs its position in the row.
func (p *printer) countsDone(used []bool) bool {
	for i, o := range p.k.Operands {
		if used[i] && o.Kind != codegen.Index && p.v.Class[i] == codegen.Staged {
			return true
		}
	}
	return p.copiesBack(used)
}

// direct reports operands that the loop accesses through a pointer; the tail replaces it by a
// pointer to a copy.
func (p *printer) direct(i int, o codegen.Operand) bool {
	c := p.v.Class[i]
	return o.Kind != codegen.Index && (c == codegen.Contiguous || c == codegen.Strided)
}

// wholeLanes reports operands of which a part of a vector can be moved with loadSome and storeSome.
func (p *printer) wholeLanes(i int, o codegen.Operand) bool {
	_, small := narrow(o.DT)
	return p.direct(i, o) && p.v.Class[i] == codegen.Contiguous && !small
}

// streams reports outputs that may be stored past the caches: whole vectors, at every point.
func (p *printer) streams(i int, o codegen.Operand) bool {
	_, small := narrow(o.DT)
	return o.Kind == codegen.Output && p.v.Class[i] == codegen.Contiguous && !p.v.Guarded && !small && i < p.v.Streams
}

// rowStart declares the variables of an operand for one row.
func (p *printer) rowStart(i int, o codegen.Operand) {
	t := ctypes[o.DT].elem
	c := p.v.Class[i]
	qual := ""
	if o.Kind == codegen.Input {
		qual = "const "
	}
	switch {
	case o.Kind == codegen.Index || c == codegen.Staged:
		p.linef(2, "mr_i64 q%d = from[%d];", i, i)
		if c == codegen.Strided || c == codegen.Staged {
			p.linef(2, "const mr_i64 s%d = a->ops[%d].stride[rank - 1];", i, i)
		}
		if o.Kind != codegen.Index {
			p.linef(2, "%s%s *p%d = (%s%s *)a->ops[%d].base;", qual, t, i, qual, t, i)
		}
	case c == codegen.Splat && o.Kind == codegen.Input:
		p.linef(2, "const %s l%d = %s;", p.vec.held(o.DT, 4), i, p.help.splatLoad(o.DT,
			fmt.Sprintf("((const %s *)a->ops[%d].base + from[%d])", t, i, i)))
	default:
		p.linef(2, "%s%s *p%d = (%s%s *)a->ops[%d].base + from[%d];", qual, t, i, qual, t, i, i)
		if c == codegen.Strided {
			p.linef(2, "mr_i64 s%d = a->ops[%d].stride[rank - 1];", i, i)
		}
	}
	if o.Kind != codegen.Output {
		return
	}
	if p.streams(i, o) {
		p.linef(2, "int n%d = a->ops[%d].stream && ((__UINTPTR_TYPE__)p%d & 63) == 0;", i, i, i)
	}
	switch {
	case c == codegen.Splat:
		p.linef(2, "int w%d = at[rank - 1] == 0 && stores(a, %d, at);", i, i)
	case c == codegen.Staged:
		p.linef(2, "const int w%d = stores(a, %d, at), z%d = a->ops[%d].guard >> (rank - 1) & 1;", i, i, i, i)
	case p.v.Guarded:
		p.linef(2, "const int w%d = stores(a, %d, at);", i, i)
	}
}

// tailStart sets the pointers of the loop to copies of the last elements of the row.
func (p *printer) tailStart(used []bool) {
	for i, o := range p.k.Operands {
		if used[i] && p.direct(i, o) && o.Kind == codegen.Output {
			p.linef(3, "%s *o%d = p%d;", ctypes[o.DT].elem, i, i)
			if p.v.Class[i] == codegen.Strided {
				p.linef(3, "const mr_i64 os%d = s%d;", i, i)
			}
		}
	}
	for i, r := range p.k.Reduces {
		p.linef(3, "%s *or%d = r%d;", ctypes[p.k.Body[r.Value].DT].elem, i, i)
	}
	p.linef(3, "if (tail) {")
	p.linef(4, "if (m == n)\n\t\t\t\t\tbreak;")
	for i, o := range p.k.Operands {
		if !used[i] {
			continue
		}
		step := ""
		if p.v.Class[i] == codegen.Strided || p.v.Class[i] == codegen.Staged {
			step = fmt.Sprintf(" * s%d", i)
		}
		switch {
		case p.wholeLanes(i, o) && o.Kind == codegen.Input:
			p.linef(4, "*(m_%s *)t%d = %s;", short(o.DT), i, p.help.loadSome(o.DT, fmt.Sprintf("p%d + m", i), p.help.first("n - m")))
			p.linef(4, "p%d = t%d;", i, i)
		case p.direct(i, o) && o.Kind == codegen.Input:
			p.linef(4, "for (mr_i64 l = 0; l < %d; l++)", p.lanes)
			p.linef(5, "t%d[l] = m + l < n ? p%d[(m + l)%s] : 0;", i, i, step)
			p.linef(4, "p%d = t%d;", i, i)
		case p.direct(i, o):
			p.linef(4, "p%d = t%d;", i, i)
			if p.streams(i, o) {
				p.linef(4, "n%d = 0;", i)
			}
		case o.Kind == codegen.Index && p.v.Class[i] == codegen.Contiguous:
			p.linef(4, "q%d += m;", i)
		case step != "":
			p.linef(4, "q%d += m%s;", i, step)
		}
		if p.direct(i, o) && step != "" {
			p.linef(4, "s%d = 1;", i)
		}
	}
	for i := range p.k.Reduces {
		p.linef(4, "r%d = tr%d;", i, i)
	}
	if p.countsDone(used) {
		p.linef(4, "done = m;")
	}
	p.linef(4, "m = %d;", p.lanes)
	p.linef(3, "}")
}

// tailEnd copies results of the tail to their destinations.
func (p *printer) tailEnd(used []bool) {
	if !p.copiesBack(used) {
		return
	}
	p.linef(3, "if (tail) {")
	left := "n - done"
	put := func(dt ir.DType, to, from string) string {
		return p.help.storeSome(dt, to, fmt.Sprintf("*(const m_%s *)%s", short(dt), from), p.help.first(left))
	}
	for i, o := range p.k.Operands {
		if !used[i] || !p.direct(i, o) || o.Kind != codegen.Output {
			continue
		}
		indent := 4
		if p.v.Guarded {
			p.linef(indent, "if (w%d)", i)
			indent++
		}
		if p.wholeLanes(i, o) {
			p.linef(indent, "%s;", put(o.DT, fmt.Sprintf("o%d + done", i), fmt.Sprintf("t%d", i)))
			continue
		}
		step := ""
		if p.v.Class[i] == codegen.Strided {
			step = fmt.Sprintf(" * os%d", i)
		}
		p.linef(indent, "for (mr_i64 l = 0; done + l < n; l++)")
		p.linef(indent+1, "o%d[(done + l)%s] = t%d[l];", i, step, i)
	}
	for i, r := range p.k.Reduces {
		dt := p.k.Body[r.Value].DT
		if _, small := narrow(dt); small {
			p.linef(4, "for (mr_i64 l = 0; done + l < n; l++)")
			p.linef(5, "or%d[done + l] = tr%d[l];", i, i)
		} else {
			p.linef(4, "%s;", put(dt, fmt.Sprintf("or%d + done", i), fmt.Sprintf("tr%d", i)))
		}
	}
	for i := range p.k.Reduces {
		p.linef(4, "r%d = or%d;", i, i)
	}
	p.linef(3, "}")
}

// loadStep is the expression of a vector of an operand at an offset.
func (p *printer) loadStep(i int, dt ir.DType, at string) string {
	switch p.v.Class[i] {
	case codegen.Strided:
		return p.help.gather(dt, fmt.Sprintf("p%d + %s * s%d", i, at, i), fmt.Sprintf("s%d", i))
	case codegen.Staged:
		return p.help.stagedLoad(dt, fmt.Sprintf("p%d, a->ops + %d, q%d + %s * s%d, s%d, n - done - %s", i, i, i, at, i, i, at))
	}
	return p.help.load(dt, fmt.Sprintf("p%d + %s", i, at))
}

// indexStep is the low or high half of the positions of a vector's lanes.
func (p *printer) indexStep(in ir.Instr, at string) string {
	i := int(in.Imm)
	shift := 0
	if in.Op == ir.IndexHi {
		shift = 32
	}
	switch p.v.Class[i] {
	case codegen.Contiguous:
		return p.help.index(shift, fmt.Sprintf("q%d + %s", i, at), "1")
	case codegen.Splat:
		return p.help.index(shift, fmt.Sprintf("q%d", i), "0")
	case codegen.Strided:
		return p.help.strideIndex(shift, fmt.Sprintf("q%d + %s * s%d, s%d", i, at, i, i))
	}
	return p.help.stagedIndex(shift, fmt.Sprintf("a->ops + %d, q%d + %s * s%d, s%d", i, i, at, i, i))
}

// storeStep writes a value through operand i at an offset.
func (p *printer) storeStep(indent, i int, v operand, at string) {
	switch p.v.Class[i] {
	case codegen.Splat:
		elem := ctypes[v.dt].elem
		p.linef(indent, "if (w%d) {", i)
		p.linef(indent+1, "*p%d = (%s)(%s)[0];", i, elem, p.help.stored(v))
		p.linef(indent+1, "w%d = 0;", i)
		p.linef(indent, "}")
		return
	case codegen.Staged:
		p.linef(indent, "if (w%d)", i)
		p.linef(indent+1, "%s", p.help.stagedStore(v, fmt.Sprintf("p%d, a->ops + %d, q%d + %s * s%d, s%d, n - done - %s, z%d, at[rank - 1] + done + %s",
			i, i, i, at, i, i, at, i, at)))
		return
	}
	if p.streams(i, p.k.Operands[i]) {
		p.linef(indent, "if (n%d)", i)
		p.linef(indent+1, "%s", p.help.stream(v, fmt.Sprintf("p%d + %s", i, at)))
		p.linef(indent, "else")
		p.linef(indent+1, "%s", p.help.store(v, fmt.Sprintf("p%d + %s", i, at)))
		return
	}
	var text string
	if p.v.Class[i] == codegen.Strided {
		text = p.help.scatter(v, fmt.Sprintf("p%d + %s * s%d", i, at, i), fmt.Sprintf("s%d", i))
	} else {
		text = p.help.store(v, fmt.Sprintf("p%d + %s", i, at))
	}
	if p.v.Guarded {
		text = fmt.Sprintf("if (w%d)\n%s%s", i, strings.Repeat("\t", indent+1), text)
	}
	p.linef(indent, "%s", text)
}
