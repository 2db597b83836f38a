package shader

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// The sum of e^(x - m), where m is the maximum of the same x along the row, needs m first: that
// takes two passes. The online form takes one pass for both. It keeps the sum for the maximum so
// far, and rescales it when the maximum grows.

// onlineSum returns the maximum along with which a sum can be computed, and the value that both go
// over.
func onlineSum(k *codegen.Kernel, sum int) (top int, x ir.Ref, ok bool) {
	arg := func(i ir.Ref, op ir.Op, n int) ir.Ref {
		if i == ir.None || k.Body[i].Op != op || k.Body[i].DT != ir.Float32 {
			return ir.None
		}
		return k.Body[i].Args[n]
	}
	diff := arg(arg(ir.Ref(sum), ir.Sum, 0), ir.Exp, 0)
	x, m := arg(diff, ir.Sub, 0), arg(diff, ir.Sub, 1)
	return int(m), x, x != ir.None && arg(m, ir.Max, 0) == x
}

// findOnline finds the sums that are computed along with a maximum. Such a sum must leave nothing
// else to do in its pass.
func (r *rowPlan) findOnline(k *codegen.Kernel) {
	r.top = make([]int, len(k.Body))
	list, taken := []int(nil), map[int]bool{}
	for i := range k.Body {
		r.top[i] = -1
		if top, _, ok := onlineSum(k, i); ok && !taken[top] {
			taken[top] = true
			list = append(list, i)
		}
	}
	for _, i := range list {
		pass := r.pass[i] - 1
		_, scans := r.points(k, pass, false)
		alone := !scans && len(r.stores(k, pass)) == 0
		for _, j := range r.folds(k, pass) {
			top, _, ok := onlineSum(k, j)
			alone = alone && ok && taken[top]
		}
		if alone {
			r.top[i], _, _ = onlineSum(k, i)
		}
	}
}

// foldArg is the value of points that reduction i goes over.
func (r *rowPlan) foldArg(k *codegen.Kernel, i int) ir.Ref {
	if r.top[i] >= 0 {
		return k.Body[r.top[i]].Args[0]
	}
	return k.Body[i].Args[0]
}

// lowest is the least finite number. Differences from an infinite maximum could be NaN. Differences
// from lowest are not, and values below every number add nothing.
const lowest = 0xff7fffff

// stepOnline adds one or more values of sum i to the sum and to its maximum.
func (p *printer) stepOnline(i int, values ...string) {
	top := p.rows.top[i]
	m, s := p.own(fmt.Sprintf("r%d", top)), p.own(fmt.Sprintf("r%d", i))
	t, u := fmt.Sprintf("t%d", top), fmt.Sprintf("u%d", top)
	grown := m
	for _, x := range values {
		grown = p.combine(p.code[top], grown, x)
	}
	p.f("let %s $F = %s;", t, grown)
	p.f("let %s $F = max(%s, %s);", u, t, p.literal(ir.Float32, lowest, p.lanes))
	p.f("%s = %s * exp(%s - %s);", s, s, m, u)
	for _, x := range values {
		p.f("%s = %s + exp(%s - %s);", s, s, x, u)
	}
	p.f("%s = %s;", m, t)
}

// stepTogether prints one step of a pass with online sums, for Online neighbouring points: the sums
// are rescaled once for all of them.
func (p *printer) stepTogether(pass int, need []bool) {
	folds := p.rows.folds(p.k, pass)
	name := func(i, n int) string { return fmt.Sprintf("x%dn%d", i, n) }
	p.each(func() {
		for n := range p.v.Online {
			for _, i := range folds {
				if p.rows.top[i] >= 0 {
					p.f("var %s %s;", name(i, n), p.accType(i, p.lanes))
				}
			}
			p.open("{")
			p.f("let r $u32 = at + %du;", n)
			p.point, p.indexed = "r", nil
			p.coords("r", p.v.Kept, p.v.Rank)
			for i := range p.code {
				if need[i] {
					p.instr(i)
				}
			}
			for _, i := range folds {
				if p.rows.top[i] >= 0 {
					p.f("%s = %s;", name(i, n), p.value(p.rows.foldArg(p.k, i)))
				} else {
					p.stepFold(i)
				}
			}
			p.end()
		}
		for _, i := range folds {
			if p.rows.top[i] < 0 {
				continue
			}
			values := make([]string, p.v.Online)
			for n := range values {
				values[n] = name(i, n)
			}
			p.stepOnline(i, values...)
		}
	})
}

// together reports a pass whose steps take several points.
func (p *printer) together(pass int, scans bool) bool {
	if p.v.Online < 2 || scans || len(p.rows.stores(p.k, pass)) > 0 {
		return false
	}
	return slices.ContainsFunc(p.rows.folds(p.k, pass), func(i int) bool { return p.rows.top[i] >= 0 })
}

// isTop reports a maximum along with which a sum is computed.
func (r *rowPlan) isTop(i int) bool {
	return slices.Contains(r.top, i)
}
