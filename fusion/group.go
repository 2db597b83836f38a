package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// root is a tensor that a group writes. Map at leads from a point of the group's domain to the
// tensor's element.
type root struct {
	tensor int32
	at     *indexMap
	total  bool // the tensor is a fold of all points of the domain
}

// group is a future kernel. It computes its roots from tensors in memory: inputs and results of
// other groups, never values that other groups hold only in registers. A group does not change
// after it was made.
type group struct {
	kind   *builder
	domain int32 // shape class
	over   int32 // the operand of the row ops, -1 in an elementwise group
	axes   []int // the axes of its rows
	roots  []root
	cost   *cost
}

// cost holds the cost of a group on the device, at explored shapes.
type cost struct {
	reads   []int32    // tensors read, in order of first use
	touched []instance // accesses, used to find shared tensors
	bytes   int64
	code    int    // length of the body
	over    string // the device limit that is exceeded, instructions aside; "" if none
	weight  int
	seconds float64
	nodes   nodeSet
	again   nodeSet // nodes computed at more than one index map
	inside  nodeSet // nodes computed for the operands of a contraction
	loose   bool    // a contraction's group writes a result that does not depend on it
	apart   bool    // its rows are walked in short stretches: see runs
	anew    bool    // it computes values again in several phases: see runs
	err     error
}

// groupOf is the group that computes one tensor and writes nothing else. It is made and priced again
// only if another of the values behind it is stored now: where a group is too large, splitting it
// needs the prices of all values in it at each split.
func (x *explorer) groupOf(t int32) *group {
	if g := x.ofTensor[t]; g != nil && x.current(g) {
		if g.cost != nil {
			x.spend(g.cost.code)
		}
		return g
	}
	g := x.newGroup(t)
	x.ofTensor[t] = g
	return g
}

// current reports that a group still computes the same values as when it was priced: those that it
// reads are in memory, and the others are not.
func (x *explorer) current(g *group) bool {
	if g.cost == nil {
		return true
	}
	for _, t := range g.cost.reads {
		if x.node(t) != nil && !x.stored[t] {
			return false
		}
	}
	same := true
	g.cost.nodes.each(func(n int) {
		t := x.seg.Out[n]
		same = same && (!x.stored[t] || g.writes(t))
	})
	return same
}

func (x *explorer) newGroup(t int32) *group {
	b := &builders[kindElementwise]
	g := &group{kind: b, domain: x.class.of[t], over: -1}
	if n := x.node(t); x.isRowOp(t) {
		g.kind, g.over = &builders[kindRows], n.Args[0].ID
		switch n.Op {
		case ir.Dot:
			g.kind = &builders[kindContraction]
		case ir.Scatter:
			g.kind, g.over = &builders[kindScatter], n.Args[1].ID
		}
		g.domain, g.axes = x.class.of[g.over], n.Attr.Axes
		g.roots = []root{{tensor: t, at: x.maps.row(x.seg.Tensors[t].Def)}}
		return g
	}
	g.roots = []root{{tensor: t, at: x.maps.identity(g.domain)}}
	return g
}

// rowsOf reports that a row op works on the rows of g's domain.
func (g *group) rowsOf(x *explorer, n *ir.Node) bool {
	return g.over >= 0 && x.class.of[n.Args[0].ID] == g.domain && slices.Equal(n.Attr.Axes, g.axes)
}

// contracts reports a group with a contraction. The contraction is the only row op of its kernel.
func (g *group) contracts() bool { return g.kind == &builders[kindContraction] }

// writes are the outputs of a body.
type writes struct {
	stores []codegen.Store
	totals []codegen.Reduce
}

// body makes the program of a group: everything that it computes. The result is valid until the
// next call.
func (x *explorer) body(g *group) (*body, writes) {
	b := &x.scratch
	b.reset(x, g)
	var w writes
	for _, r := range g.roots {
		if r.total {
			w.totals = append(w.totals, b.total(r.tensor))
		} else {
			w.stores = append(w.stores, codegen.Store{Value: b.value(r.tensor, r.at)})
		}
	}
	stores, totals := 0, 0
	for _, r := range g.roots {
		slot := b.operand(codegen.Output, r.tensor, r.at)
		if r.total {
			w.totals[totals].Operand = slot
			totals++
		} else {
			w.stores[stores].Operand = slot
			stores++
		}
	}
	return b, w
}

// price computes the cost of a group, once.
func (x *explorer) price(g *group) *cost {
	if g.cost != nil {
		return g.cost
	}
	b, w := x.body(g)
	x.spend(len(b.code))
	runs := x.runs(g, b, w)
	c := &cost{code: len(b.code), weight: b.weight, nodes: b.nodes, again: b.again, inside: b.inside, loose: runs.loose, err: b.err}
	size := codegen.Size{Scalars: len(b.scalars)}
	for i, o := range b.operands {
		size.Count(o.kind)
		dt := x.seg.Tensors[o.tensor].DT
		switch o.kind {
		case codegen.Index:
			continue
		case codegen.Input:
			c.bytes += x.fetched(b.operands[:i+1]) * x.elemSize(dt) * runs.times(i)
			if !slices.Contains(c.reads, o.tensor) {
				c.reads = append(c.reads, o.tensor)
			}
		case codegen.Output:
			c.bytes += min(x.elems(o.tensor), o.at.elems) * x.elemSize(dt)
		}
		c.touched = append(c.touched, instance{tensor: o.tensor, at: o.at})
	}
	if n := rowOps(b.code) + len(w.totals); n > x.caps.MaxRowOps || size.Memory+n > x.caps.MaxBindings { // else no limit is exceeded
		size.Rows(b.code, w.totals)
	}
	c.over = size.Over(x.caps)
	c.apart, c.anew = runs.stretches > 0, runs.anew
	c.seconds = x.model.seconds(c.bytes, runs.work) + float64(runs.stretches)*x.model.stretch
	g.cost = c
	return c
}

func rowOps(body []ir.Instr) (n int) {
	for i := range body {
		if body[i].Op.Info().RowOp {
			n++
		}
	}
	return n
}

// fetched is the number of elements that the last operand reads from memory and earlier operands do
// not. Windows on one tensor that move in its own order overlap in the cache; together they read
// the tensor once.
func (x *explorer) fetched(operands []bodyOperand) int64 {
	last := operands[len(operands)-1]
	if last.at.permutes() {
		return min(last.at.elems, x.memory(last.tensor))
	}
	left := x.memory(last.tensor)
	for _, o := range operands[:len(operands)-1] {
		if o.kind == codegen.Input && o.tensor == last.tensor && !o.at.permutes() {
			left -= o.at.elems
		}
	}
	return max(0, min(left, last.at.elems))
}

// bridges lists the maps from a's domain onto b's domain with which one kernel over a's domain
// could do b's work.
func (x *explorer) bridges(a, b *group) []*indexMap {
	var ms []*indexMap
	add := func(m *indexMap) {
		if m.to == b.domain && m.storable() && !slices.Contains(ms, m) {
			ms = append(ms, m)
		}
	}
	switch {
	case a.domain == b.domain:
		add(x.maps.identity(a.domain))
	case x.class.broadcasts(a.domain, b.domain):
		add(x.maps.broadcast(x.maps.identity(a.domain), b.domain))
	}
	// Where both groups access one tensor, a's map followed by the inverse of b's map lets them
	// access it at the same element.
	for _, p := range x.price(a).touched {
		for _, q := range x.price(b).touched {
			if p.tensor != q.tensor {
				continue
			}
			if back, ok := x.maps.inverse(q.at); ok {
				add(x.maps.then(p.at, back))
			}
		}
	}
	return ms
}

// merged is a group over a's domain that also does b's work; m maps a's domain to b's. It returns
// nil and the reason if that is no kernel.
func (x *explorer) merged(a, b *group, m *indexMap) (*group, string) {
	g := &group{kind: a.kind, domain: a.domain, over: a.over, axes: a.axes}
	g.roots = append(g.roots, a.roots...)
	for _, r := range b.roots {
		if r.total {
			if m != x.maps.identity(a.domain) {
				return nil, reasonCover
			}
			g.roots = append(g.roots, r)
			continue
		}
		at := x.maps.then(m, r.at)
		if !x.maps.whole(at).storable() {
			return nil, reasonCover
		}
		g.roots = append(g.roots, root{tensor: r.tensor, at: at})
	}
	slices.SortFunc(g.roots, func(p, q root) int { return int(p.tensor - q.tensor) })
	return g, ""
}

// shared reports whether two groups access a common tensor.
func (x *explorer) shared(a, b *group) bool {
	for _, p := range x.price(a).touched {
		for _, q := range x.price(b).touched {
			if p.tensor == q.tensor && !(a.writes(p.tensor) && b.writes(p.tensor)) {
				return true
			}
		}
	}
	return x.feeds(a, b) || x.feeds(b, a)
}

// writes reports that a group writes a tensor or a piece of it.
func (g *group) writes(t int32) bool {
	return slices.ContainsFunc(g.roots, func(r root) bool { return r.tensor == t })
}

// feeds reports whether b reads a root of a.
func (x *explorer) feeds(a, b *group) bool {
	return slices.ContainsFunc(a.roots, func(r root) bool { return slices.Contains(x.price(b).reads, r.tensor) })
}
