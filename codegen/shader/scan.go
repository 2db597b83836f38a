package shader

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// scanBlock is the number of neighbouring invocations for which one of them scans.
const scanBlock = 8

// scan prints scan i of a pass. An invocation that walks a row alone keeps the running result in
// its state. The invocations of a workgroup scan a stretch of the row together and keep its total.
func (p *printer) scan(pass, i int) {
	in := p.code[i]
	state, x := scanState(pass, i), p.value(in.Args[0])
	p.vals[i] = fmt.Sprintf("v%d", i)
	if p.v.Mode != Rows {
		state = p.own(state)
		p.f("%s = %s;", state, p.combine(in, state, x))
		p.let(p.vals[i], in.DT, state)
		return
	}
	if p.v.Each > 1 {
		p.fail("a scan of several rows by a workgroup: %w", ir.ErrUnsupported)
	}
	dt, lanes := in.DT, p.lanes
	on := p.splat("on", "bool", lanes)
	if p.masked {
		on = "within"
	}
	p.f("var y%d %s = $select(%s, %s, %s);", i, p.vec(scalarTypes[dt], lanes), p.literal(dt, scanStart(in), lanes), x, on)
	sum := fmt.Sprintf("y%d", i)
	p.once(func(q *printer) {
		for l := 1; l < lanes; l++ {
			this, before := fmt.Sprintf("y%d.%c", i, "xyzw"[l]), fmt.Sprintf("y%d.%c", i, "xyzw"[l-1])
			q.f("%s = %s;", this, q.combine(in, before, this))
			sum = this
		}
		w := fmt.Sprintf("%sw", state)
		p.workgroup(w, p.vec(scalarTypes[dt], 1), p.v.Group)
		if p.v.Abreast > 0 {
			q.scanClusters(i, sum, state, w)
			return
		}
		if p.v.Subgroups {
			q.scanSubgroups(i, sum, state, w)
			q.f("barrier;")
			return
		}
		q.f("%s[lane] = %s;", w, sum)
		q.f("barrier;")
		q.open("if (lane < %du) {", p.v.Group/scanBlock)
		for j := 1; j < scanBlock; j++ {
			at := fmt.Sprintf("%s[lane * %du + %du]", w, scanBlock, j)
			before := fmt.Sprintf("%s[lane * %du + %du]", w, scanBlock, j-1)
			q.f("%s = %s;", at, q.combine(in, before, at))
		}
		q.end()
		q.f("barrier;")
		// e is the result before this invocation: the carry, the blocks before its own, and the
		// part of its block before it.
		q.f("var e%d %s = %s;", i, p.vec(scalarTypes[dt], 1), state)
		for b := range p.v.Group / scanBlock {
			total := fmt.Sprintf("%s[%d]", w, (b+1)*scanBlock-1)
			q.open("if (lane / %du == %du) {", scanBlock, b)
			q.f("e%d = %s;", i, state)
			q.open("if (lane %% %du != 0u) {", scanBlock)
			q.f("e%d = %s;", i, q.combine(in, state, w+"[lane - 1u]"))
			q.end()
			q.end()
			q.f("%s = %s;", state, q.combine(in, state, total))
		}
		q.f("barrier;")
	})
	p.let(p.vals[i], in.DT, p.combine(in, p.splat(fmt.Sprintf("e%d", i), scalarTypes[dt], lanes), fmt.Sprintf("y%d", i)))
	if strings.Contains(scalarTypes[dt], "wide") {
		p.fail("a scan of 64-bit values by a workgroup")
	}
}
