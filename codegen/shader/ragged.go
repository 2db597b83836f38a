package shader

import (
	"fmt"

	"github.com/millrace-go/millrace/runtime"
)

// With Variant.Ragged, rows need not begin or end with a vector. Their operands with Arg.Vec begin at
// the same place within a vector of memory, which the run-time words do not tell: each row finds it
// (the variable head). Vectors at the ends of a row have lanes outside of it. Loads read them, as
// memory is there, but folds and scans leave them out, and stores write the others one by one. The
// remaining operands are gathered, at the last point of the row in place of a point outside.

// raggedRows reports rows with such vectors.
func (v *Variant) raggedRows() bool { return v.Mode == Rows && v.Ragged }

// rowSteps is the largest number of vectors of which a ragged row of n points may have some.
func rowSteps(n, lanes int64) int64 { return (n + 2*lanes - 2) / lanes }

// RowSteps is the number of points or vectors of a row, of a ragged one the largest.
func (v *Variant) RowSteps(l *runtime.Launch) int {
	n := int64(1)
	for d := l.Kept; d < l.Rank-1; d++ {
		n *= l.Dims[d]
	}
	inner, lanes := l.Dims[l.Rank-1], int64(v.Lanes)
	if v.raggedRows() {
		return int(n * rowSteps(inner, lanes))
	}
	return int(n * ((inner + lanes - 1) / lanes))
}

// heads prints head, the number of lanes before the row in its first vector, and count, the number of
// its vectors. It changes the bases of operands from elements to vectors.
func (p *printer) heads() {
	lanes, found := p.v.Lanes, false
	for k, a := range p.v.Args {
		if !a.Vec || !p.based[k] {
			continue
		}
		if !found {
			p.f("let head $u32 = start%d %% %du;", k, lanes)
			found = true
		}
		p.f("let base%d $u32 = start%d / %du;", k, k, lanes)
	}
	if !found {
		p.fail("ragged rows without vectors")
	}
	p.f("let count $u32 = (head + %s + %du) / %du;", runWord(wordInner), lanes-1, lanes)
}

// begins is the name of the place where an operand's row begins: of its base, or in elements.
func (p *printer) begins(k int) string {
	if p.v.raggedRows() && p.v.Args[k].Vec {
		return fmt.Sprintf("start%d", k)
	}
	return fmt.Sprintf("base%d", k)
}

// lanesWithin prints the points of the lanes of vector at, and if some may be outside of the row, the
// variable within, which says which are not.
func (p *printer) lanesWithin(masked bool) {
	iota := p.vec("u32", p.lanes) + "(0u, 1u, 2u, 3u)"
	p.f("let there $U = $U(at * %du - head) + %s;", p.lanes, iota)
	if !masked {
		p.f("let inside $U = there;")
		return
	}
	inner := p.splat(runWord(wordInner), "u32", p.lanes)
	p.f("let within $B = $lt(there, %s);", inner)
	p.f("let inside $U = min(there, %s - $U(1u));", inner)
}

// only is value new in the lanes within the row, and old in the others.
func (p *printer) only(old, new string) string {
	if !p.masked {
		return new
	}
	return p.call("select", p.lanes, old, new, "within")
}

// storeWithin stores the lanes within the row.
func (p *printer) storeWithin(k int, pos string, lane func(int) string) {
	if p.v.Args[k].Vec {
		p.open("if (all(within)) {")
		p.f("b%d[%s] = m%d;", p.v.Args[k].Binding, pos, k)
		p.end()
		p.open("if (%s) {", p.call("not", 1, "all(within)"))
	} else {
		p.open("{")
	}
	for l := range p.lanes {
		p.open("if (within.%s) {", string("xyzw"[l]))
		p.f("%s", lane(l))
		p.end()
	}
	p.end()
}

// maskedStep reports that lanes of step u may be outside of the row.
func (p *printer) maskedStep(u int) bool {
	return p.v.raggedRows() && (p.v.Unroll == 0 || u == 0 || u >= p.v.Unroll-2)
}
