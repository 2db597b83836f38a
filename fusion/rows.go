package fusion

import (
	"math/bits"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// isRow reports that a map from g's domain takes all points of a row to one element.
func (x *explorer) isRow(g *group, m *indexMap) bool {
	if m.scatters() {
		return true
	}
	axes := axisMask(g.axes) & x.lively(g.domain)
	if axes == 0 {
		// By structure a row is one point. Only results of contractions are row values then.
		return g.contracts()
	}
	return x.moving(m)&axes == 0
}

// lively is the set of dims of a class that are not 1 by structure, as bits.
func (x *explorer) lively(class int32) uint32 {
	mask := uint32(0)
	for d, v := range x.class.dims[class] {
		if v != one {
			mask |= 1 << d
		}
	}
	return mask
}

// eachRow reports that a map takes every row to an element of its own, and that every element has a
// row.
func (x *explorer) eachRow(g *group, m *indexMap) bool {
	kept := x.lively(g.domain) &^ axisMask(g.axes)
	m = x.maps.whole(m)
	return m.storable() && x.isRow(g, m) && x.moving(m)&kept == kept
}

func axisMask(axes []int) uint32 {
	mask := uint32(0)
	for _, a := range axes {
		mask |= 1 << a
	}
	return mask
}

// moving is the set of the domain's dims that the element of a map may depend on, as bits.
func (x *explorer) moving(m *indexMap) uint32 {
	var by [ir.MaxRank]uint32 // for each dim of the current shape, the domain's dims
	from := len(x.class.dims[m.from])
	for d := range from {
		by[d] = 1 << d
	}
	rank := from
	for i := range m.steps {
		s := &m.steps[i]
		to := x.class.dims[s.to]
		was := by
		switch s.kind {
		case stepBroadcast:
			for d, v := range to {
				by[d] = was[rank-len(to)+d]
				if v == one && x.class.dims[s.from][rank-len(to)+d] != one {
					by[d] = 0
				}
			}
		case stepPermute:
			for d, ax := range s.axes {
				by[d] = was[ax]
			}
		case stepWindow:
			ax := x.seg.Nodes[s.node].Attr.Axes[0]
			copy(by[ax:], was[ax+1:])
			by[ax] |= was[ax]
		case stepBound:
			by[0] = was[s.axes[2]]
			return by[0]
		case stepGather:
			n := &x.seg.Nodes[s.node]
			ax := n.Attr.Axes[0]
			by[ax] = 0
			for d, v := range x.class.dims[x.class.of[n.Args[1].ID]] {
				if v != one {
					by[ax] |= was[d]
				}
			}
			for d, v := range to {
				if d != ax && v == one && x.class.dims[s.from][d] != one {
					by[d] = 0
				}
			}
		case stepScatter:
			by[x.seg.Nodes[s.node].Attr.Axes[0]] = 0 // a row of the indices accesses one row of this tensor
		case stepReshape:
			// The sizes decide which dim goes where.
			by = together(was[:rank], len(to))
		case stepMove:
			// A stride above 1 is undone by splitting one number, see layouter.move.
			if n := &x.seg.Nodes[s.node]; n.Op != ir.Concat && !allUnit(n) {
				by = together(was[:rank], len(to))
			}
		}
		rank = len(to)
	}
	return union(by[:rank])
}

// together makes each of n dims depend on all domain dims that any of the old dims depends on.
func together(was []uint32, n int) (by [ir.MaxRank]uint32) {
	all := union(was)
	for d := range n {
		by[d] = all
	}
	return by
}

func union(sets []uint32) uint32 {
	all := uint32(0)
	for _, s := range sets {
		all |= s
	}
	return all
}

// rowLength is the number of points in a row of g, at explored sizes.
func (x *explorer) rowLength(g *group) int64 {
	n := int64(1)
	for _, a := range g.axes {
		n *= x.class.size[x.class.dims[g.domain][a]]
	}
	return n
}

// cacheRow is the largest size, in bytes, of a row's operands at which they are still in a cache
// when the row is read again.
const cacheRow = 512 << 10

// runs counts how often the parts of a group's kernel are executed.
type runs struct {
	work  int64 // number of executed instructions
	loose bool  // see cost
	anew  bool  // rows fit in no cache, and their values are computed in several phases
	// stretches counts the stretches along the innermost dim, over all operands, if an operand made
	// of interleaved parts makes them shorter than the dim; else 0.
	stretches int64
	load      []uint32 // for each operand, the phases that read it, as bits; nil if all are read once
}

// times is how often operand i is read from memory.
func (r *runs) times(i int) int64 {
	if r.load == nil {
		return 1
	}
	return int64(max(1, bits.OnesCount32(r.load[i])))
}

// runs counts the work of a group's kernel. A kernel works on a row in phases: a row op's operands
// are computed in the phase before it, and its result and dependants in the phase after. So a row
// is read once per phase, from memory if it is too long for the cache. The device does not keep the
// values of such a long row: each phase that needs them computes them again.
func (x *explorer) runs(g *group, b *body, w writes) runs {
	points := x.maps.elems(g.domain)
	if g.over < 0 {
		return runs{work: int64(b.weight) * points}
	}
	if g.contracts() {
		return x.contractionRuns(g, b, w.stores)
	}
	k := codegen.Kernel{Body: b.code, Stores: w.stores, Reduces: w.totals}
	length, row := x.rowLength(g), int64(0)
	for _, o := range b.operands {
		k.Operands = append(k.Operands, codegen.Operand{Kind: o.kind, Row: o.row})
		if o.kind == codegen.Input && !o.row {
			row += length * x.elemSize(x.seg.Tensors[o.tensor].DT)
		}
	}
	r := runs{work: int64(len(w.totals)*rowWeights[ir.ClassReduce]) * points}
	load, need := phasesOf(&k)
	again := length*int64(ir.Float32.Size()) > cacheRow
	for i, l := range k.Levels() {
		n := int64(x.weights.of(b.code, b.code[i]))
		if rowOp := b.code[i].Op.Info().RowOp; l == codegen.Point || rowOp {
			if again && !rowOp {
				phases := int64(max(1, bits.OnesCount32(need[i])))
				r.anew = r.anew || n > 0 && phases > 1
				n *= phases
			}
			r.work += n * points
		} else if length > 0 {
			r.work += n * points / length
		}
	}
	if row > cacheRow {
		r.load = load
	}
	r.stretches = x.stretches(g, b)
	return r
}

// phasesOf gives, for every operand, the set of phases that read it, and, for every value, the set
// of phases that need it, as bits.
func phasesOf(k *codegen.Kernel) (load, need []uint32) {
	depth := make([]uint, len(k.Body))
	for i, in := range k.Body {
		for _, a := range in.Args {
			if a != ir.None {
				depth[i] = max(depth[i], depth[a])
			}
		}
		if in.Op.Info().RowOp {
			depth[i] = min(depth[i]+1, 31)
		}
	}
	need = make([]uint32, len(k.Body))
	for _, s := range k.Stores {
		need[s.Value] |= 1 << depth[s.Value]
	}
	for _, r := range k.Reduces {
		need[r.Value] |= 1 << depth[r.Value]
	}
	load = make([]uint32, len(k.Operands))
	for i := len(k.Body) - 1; i >= 0; i-- {
		in := k.Body[i]
		if in.Op == ir.Load || in.Op == ir.LoadAt {
			load[uint32(in.Imm)] |= need[i]
		}
		phases := need[i]
		if in.Op.Info().RowOp {
			phases = 1 << (depth[i] - 1)
		}
		for _, a := range in.Args {
			if a != ir.None {
				need[a] |= phases
			}
		}
	}
	return load, need
}
