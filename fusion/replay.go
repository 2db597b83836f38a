package fusion

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Replay rebuilds a plan that comes from outside the process. The slow part of Explore is to choose
// which results share a kernel. Replay takes these choices from the plan and computes everything
// else from the segment. So a plan that was tampered with may be slow, but it never computes
// something else. An error says where the rebuilt plan differs; equal paths may be written in
// different ways.
//
// The plan must have passed Verify. A plan that was explored at other sizes or scalars may lack
// guards that this segment would get. Replay refuses such a plan although it would be right.
func (p *Plan) Replay(seg *segment.Segment, caps *runtime.Caps, opt Options) (*Plan, error) {
	apart := *seg
	apart.Scalars = p.guarded(seg.Scalars)
	x := newExplorer(&apart, caps, opt)
	if err := x.check(); err != nil {
		return nil, err
	}
	for i := range p.Steps {
		for _, o := range p.Steps[i].outputs(nil) {
			x.stored[p.Steps[i].Operands[o].Tensor] = true
		}
	}
	x.chooseRoots(slices.Clone(x.stored)) // stored is known already; this call finds the aliases
	for i := range p.Steps {
		g, err := x.groupAs(&p.Steps[i])
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		x.groups = append(x.groups, g)
	}
	again := &Plan{Mode: opt.Mode, Aliases: x.aliases(), Guards: slices.Clone(p.Guards), Sizes: p.Sizes, Refusals: p.Refusals, Score: p.Score}
	again.addGuards(x.class.guards)
	for i, g := range x.groups {
		s, guards, err := x.step(g)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		if d := p.Steps[i].Domain; !s.Kernel.HasRows() && x.class.of[d] == x.class.of[s.Domain] {
			s.Domain = d // same shape; the old domain may be the operand of a row op that simplification removed
		}
		if what := p.Steps[i].differs(&s); what != "" {
			return nil, fmt.Errorf("step %d: the %s differ from the segment's", i, what)
		}
		again.Steps = append(again.Steps, s)
		again.addGuards(guards)
		again.addGuards(x.unitGuards(&s))
	}
	chains := x.chains()
	for _, c := range p.Chains {
		if !slices.Contains(chains, c) {
			return nil, fmt.Errorf("steps %d to %d are not a chain", c.From, c.To)
		}
	}
	again.Chains = p.Chains
	again.uses = newUses(again)
	return again, again.Verify(seg)
}

// guarded is a copy of the scalars in which only those are equal that the plan's guards say are
// equal. Explore may not have relied on other chance equalities, so Replay must not use them.
func (p *Plan) guarded(scalars []segment.Scalar) []segment.Scalar {
	apart := slices.Clone(scalars)
	for i := range apart {
		apart[i].Bits = uint64(i)
	}
	for _, g := range p.Guards {
		if g.Scalar {
			apart[g.B].Bits = apart[g.A].Bits
		}
	}
	return apart
}

// groupAs is the group that a step was made from.
func (x *explorer) groupAs(s *Step) (*group, error) {
	g := &group{kind: &builders[kindElementwise], domain: x.class.of[s.Domain], over: -1}
	if len(s.Kernel.Reduces) > 0 { // the totals may be all that is left of the row ops
		if !slices.IsSorted(s.Axes) {
			return nil, errPath
		}
		g.kind, g.over, g.axes = &builders[kindRows], int32(s.Domain), s.Axes
	}
	for _, node := range s.Nodes { // simplification may have removed the kernel's row ops
		if g.over >= 0 {
			break
		}
		if n := &x.seg.Nodes[node]; x.isRowOp(x.seg.Out[node]) {
			g.kind, g.over, g.axes = &builders[kindRows], int32(s.Domain), n.Attr.Axes
			switch n.Op {
			case ir.Dot:
				g.kind = &builders[kindContraction]
			case ir.Scatter:
				g.kind = &builders[kindScatter]
			}
			break
		}
	}
	for i, o := range s.Operands {
		if s.Kernel.Operands[i].Kind != codegen.Output {
			continue
		}
		at, err := x.mapAlong(g.domain, o.Path)
		if err != nil {
			return nil, fmt.Errorf("operand %d: %w", i, err)
		}
		if at.to != x.class.of[o.Tensor] || !x.maps.whole(at).storable() && !(g.scatters() && at.scatters()) {
			return nil, fmt.Errorf("operand %d: %w", i, errPath)
		}
		g.roots = append(g.roots, root{tensor: int32(o.Tensor), at: at})
	}
	if len(g.roots) == 0 {
		return nil, fmt.Errorf("it writes nothing")
	}
	return g, x.totalsAs(g, s)
}

// mapAlong is the index map of an output's path.
func (x *explorer) mapAlong(domain int32, path []Hop) (*indexMap, error) {
	m := x.maps.identity(domain)
	for _, h := range path {
		if h.Bound != NoBound {
			return nil, errPath
		}
		if h.Node < 0 {
			to := x.class.of[h.Arg]
			if m.to != to && !x.class.broadcasts(m.to, to) {
				return nil, errPath
			}
			m = x.maps.broadcast(m, to)
			continue
		}
		n := &x.seg.Nodes[h.Node]
		if h.raises() && n.Op == ir.Concat && h.Arg < int(n.NArgs) && m.to == x.class.of[n.Args[h.Arg].ID] {
			m = x.maps.piece(m, int32(h.Node), h.Arg)
			continue
		}
		if h.Arg != 0 || n.NArgs == 0 || n.Args[0].Scalar {
			return nil, errPath
		}
		from, to := x.class.of[x.seg.Out[h.Node]], x.class.of[n.Args[0].ID]
		if h.Up {
			from, to = to, from
		}
		reduces := n.Op.Class() == ir.ClassReduce
		switch {
		case n.Op == ir.Permute && m.to == from:
			m = x.maps.through(m, edge{node: int32(h.Node), up: h.Up})
		case reduces && h.Up && m.to == from && len(m.steps) == 0 && m.from == from:
			m = x.maps.row(int32(h.Node))
		case n.Op == ir.Scatter && !h.Up && len(m.steps) == 0 && m.from == x.class.of[n.Args[1].ID]:
			m = x.maps.scatter(int32(h.Node))
		case n.Op == ir.Reshape || reduces:
			m = x.maps.push(m, mapStep{kind: stepReshape, from: m.to, to: to, node: int32(h.Node), hops: []Hop{h}})
		default:
			return nil, errPath
		}
	}
	return m, nil
}

// differs names the first field in which two steps differ, "" if they are the same. It does not
// compare paths, because equal paths may be written in different ways.
func (s *Step) differs(t *Step) string {
	for _, c := range []struct {
		what string
		same bool
	}{
		{"domain", s.Domain == t.Domain && slices.Equal(s.Axes, t.Axes)},
		{"instructions", s.Kernel.Equal(t.Kernel)},
		{"operands", slices.EqualFunc(s.Operands, t.Operands, func(a, b Operand) bool { return a.Tensor == b.Tensor })},
		{"scalars", slices.Equal(s.Scalars, t.Scalars)},
		{"nodes", slices.Equal(s.Nodes, t.Nodes)},
		{"reuses", slices.Equal(s.InPlace, t.InPlace)},
	} {
		if !c.same {
			return c.what
		}
	}
	return ""
}
