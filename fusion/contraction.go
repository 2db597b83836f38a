package fusion

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// packings is an estimate of how often each element of a contraction's operand is computed: once
// for each panel that it is packed into.
const packings = 2

// contractionRuns counts the work of a contraction: two instructions for each product, the
// instructions that compute the operands (once per element before broadcasting, times packings),
// and the instructions after the contraction, once per result.
func (x *explorer) contractionRuns(g *group, b *body, stores []codegen.Store) runs {
	axes := axisMask(g.axes)
	r := runs{}
	along := make([]uint32, len(b.code)) // the domain dims that each value depends on
	after := make([]bool, len(b.code))   // true where a value depends on the contraction
	for i, in := range b.code {
		switch in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
			along[i] = x.moving(b.operands[uint32(in.Imm)].at)
		case ir.Dot:
			along[i], after[i] = x.lively(g.domain)&^axes, true
			r.work += 2 * x.maps.elems(g.domain)
			continue
		}
		for _, a := range in.Args {
			if a != ir.None {
				along[i] |= along[a]
				after[i] = after[i] || after[a]
			}
		}
		times := x.points(g.domain, along[i])
		if !after[i] && along[i]&axes != 0 {
			times *= packings
		}
		r.work += int64(x.weights.of(b.code, in)) * times
	}
	for _, s := range stores {
		r.loose = r.loose || !after[s.Value]
	}
	return r
}

// points is the number of points along the given dims of a class, at explored sizes.
func (x *explorer) points(class int32, dims uint32) int64 {
	n := int64(1)
	for d, v := range x.class.dims[class] {
		if dims>>d&1 != 0 {
			n *= x.class.size[v]
		}
	}
	return n
}
