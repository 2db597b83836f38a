package fusion

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/segment"
)

// Check reports whether a segment of the plan's relative form fulfils the plan's guards.
func (p *Plan) Check(seg *segment.Segment) bool {
	for i := range p.Guards {
		if !p.Guards[i].holds(seg) {
			return false
		}
	}
	return true
}

// Covers reports that the plan is right for every segment, of whatever sizes, for which plan q of
// the same relative form is right: it has no guard that q lacks.
func (p *Plan) Covers(q *Plan) bool {
	return !slices.ContainsFunc(p.Guards, func(g Guard) bool { return !slices.Contains(q.Guards, g) })
}

func (g *Guard) holds(seg *segment.Segment) bool {
	if g.Unit {
		if g.A >= len(seg.Nodes) {
			return false
		}
		n := &seg.Nodes[g.A]
		return n.Attr != nil && g.ADim < len(n.Attr.Step) && unit(n, g.ADim)
	}
	if g.Scalar {
		return g.A < len(seg.Scalars) && g.B < len(seg.Scalars) && seg.Scalars[g.A] == seg.Scalars[g.B]
	}
	a, ok := dimOf(seg, g.A, g.ADim)
	b, ok2 := dimOf(seg, g.B, g.BDim)
	return ok && ok2 && a == b
}

func dimOf(seg *segment.Segment, t, d int) (int, bool) {
	if t < 0 || t >= len(seg.Tensors) || d < 0 || d >= len(seg.Tensors[t].Shape) {
		return 0, false
	}
	return seg.Tensors[t].Shape[d], true
}

// Verify reports the first reason why the plan would not compute the segment: a step reads a tensor
// that no earlier step wrote, a required tensor is not written, or only in part, or twice, a number
// is out of range, or a kernel is invalid. Plans from outside the process are verified before use.
func (p *Plan) Verify(seg *segment.Segment) error {
	v := &verifier{seg: seg, written: make([]bool, len(seg.Tensors))}
	for i := range p.Steps {
		if err := v.step(&p.Steps[i]); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	for i, a := range p.Aliases {
		if err := v.alias(a); err != nil {
			return fmt.Errorf("alias %d: %w", i, err)
		}
	}
	for t := range seg.Tensors {
		if seg.Tensors[t].Life == segment.LifeWrite && !v.written[t] {
			return fmt.Errorf("tensor %d is not written", t)
		}
	}
	for i, c := range p.Chains {
		if err := p.verifyChain(c, seg); err != nil {
			return fmt.Errorf("chain %d: %w", i, err)
		}
		if i > 0 && c.From < p.Chains[i-1].To {
			return fmt.Errorf("chain %d: overlaps the one before", i)
		}
	}
	for i := range p.Sizes {
		if err := p.Sizes[i].verify(seg); err != nil {
			return fmt.Errorf("size %d: %w", i, err)
		}
	}
	for i := range p.Guards {
		g := &p.Guards[i]
		if limit := len(seg.Scalars); g.Scalar && (g.A < 0 || g.B < 0 || g.A >= limit || g.B >= limit) {
			return fmt.Errorf("guard %d: no such scalar", i)
		}
	}
	return nil
}

// verifyChain checks that each tensor that a chain passes on has one reader, the next step.
func (p *Plan) verifyChain(c Chain, seg *segment.Segment) error {
	if c.From < 0 || c.To > len(p.Steps) || c.To-c.From < 2 {
		return fmt.Errorf("steps %d to %d of %d", c.From, c.To, len(p.Steps))
	}
	for k := c.From; k < c.To-1; k++ {
		outputs := 0
		for _, o := range p.Steps[k].Kernel.Operands {
			if o.Kind == codegen.Output {
				outputs++
			}
		}
		t := p.Steps[k].written()
		if outputs != 1 || seg.Tensors[t].Life == segment.LifeWrite {
			return fmt.Errorf("step %d writes more than it hands over", k)
		}
		for j := range p.Steps {
			for i, o := range p.Steps[j].Operands {
				if o.Tensor == t && p.Steps[j].Kernel.Operands[i].Kind == codegen.Input && j != k+1 {
					return fmt.Errorf("step %d reads a result that step %d hands over", j, k)
				}
			}
		}
		for _, a := range p.Aliases {
			if a.Of == t {
				return fmt.Errorf("tensor %d is a view of a result that step %d hands over", a.Tensor, k)
			}
		}
	}
	return nil
}

type verifier struct {
	seg     *segment.Segment
	written []bool
	pieces  map[int]map[string]bool // the pieces written so far, of each tensor that is written in pieces
}

func (v *verifier) step(s *Step) error {
	if s.Kernel == nil {
		return fmt.Errorf("no kernel")
	}
	if err := s.Kernel.Verify(); err != nil {
		return err
	}
	if len(s.Operands) != len(s.Kernel.Operands) || len(s.Scalars) != len(s.Kernel.Scalars) {
		return fmt.Errorf("the step has %d operands and %d scalars, its kernel %d and %d",
			len(s.Operands), len(s.Scalars), len(s.Kernel.Operands), len(s.Kernel.Scalars))
	}
	if s.Domain < 0 || s.Domain >= len(v.seg.Tensors) {
		return fmt.Errorf("domain: no tensor %d", s.Domain)
	}
	for _, a := range s.Axes {
		if a < 0 || a >= len(v.seg.Tensors[s.Domain].Shape) {
			return fmt.Errorf("no axis %d of %v", a, v.seg.Tensors[s.Domain].Shape)
		}
	}
	for _, n := range s.Nodes {
		if n < 0 || n >= len(v.seg.Nodes) {
			return fmt.Errorf("no node %d", n)
		}
	}
	for i, sc := range s.Scalars {
		if sc < 0 || sc >= len(v.seg.Scalars) || v.seg.Scalars[sc].DT != s.Kernel.Scalars[i] {
			return fmt.Errorf("scalar %d: no slot %d of %v", i, sc, s.Kernel.Scalars[i])
		}
	}
	for i, o := range s.Operands {
		if err := v.operand(s.Kernel.Operands[i], o); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	for i, o := range s.Operands {
		if s.Kernel.Operands[i].Kind == codegen.Output {
			if err := v.write(&o); err != nil {
				return fmt.Errorf("operand %d: %w", i, err)
			}
		}
	}
	for _, ip := range s.InPlace {
		if !kindAt(s, ip.Out, codegen.Output) || !kindAt(s, ip.In, codegen.Input) {
			return fmt.Errorf("in place %d %d: no such operands", ip.Out, ip.In)
		}
	}
	return nil
}

func kindAt(s *Step, i int, k codegen.OperandKind) bool {
	return i >= 0 && i < len(s.Operands) && s.Kernel.Operands[i].Kind == k
}

// operand checks one operand against the tensors that earlier steps wrote.
func (v *verifier) operand(k codegen.Operand, o Operand) error {
	if o.Tensor < 0 || o.Tensor >= len(v.seg.Tensors) {
		return fmt.Errorf("no tensor %d", o.Tensor)
	}
	t := &v.seg.Tensors[o.Tensor]
	switch {
	case k.Kind != codegen.Index && k.DT != t.DT:
		return fmt.Errorf("tensor %d is %v, not %v", o.Tensor, t.DT, k.DT)
	case k.Kind == codegen.Input && t.Def >= 0 && !v.written[o.Tensor]:
		return fmt.Errorf("tensor %d is read before it is written", o.Tensor)
	case k.Kind == codegen.Output && t.Def < 0:
		return fmt.Errorf("input %d is written", o.Tensor)
	}
	return v.path(o.Path)
}

func (v *verifier) path(path []Hop) error {
	for _, h := range path {
		switch {
		case h.Node >= len(v.seg.Nodes) || h.Node < -1:
			return fmt.Errorf("path: no node %d", h.Node)
		case h.Node < 0 && (h.Arg < 0 || h.Arg >= len(v.seg.Tensors)):
			return fmt.Errorf("path: no tensor %d", h.Arg)
		}
	}
	return nil
}

func (v *verifier) alias(a Alias) error {
	limit := len(v.seg.Tensors)
	if a.Tensor < 0 || a.Tensor >= limit || a.Of < 0 || a.Of >= limit {
		return fmt.Errorf("no tensor %d or %d", a.Tensor, a.Of)
	}
	if v.seg.Tensors[a.Of].Def >= 0 && !v.written[a.Of] {
		return fmt.Errorf("tensor %d is not written", a.Of)
	}
	if v.written[a.Tensor] {
		return fmt.Errorf("tensor %d is also written", a.Tensor)
	}
	v.written[a.Tensor] = true
	return v.path(a.Path)
}
