package fusion

import (
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/progen"
)

// TestRandomPieces runs random programs with every concatenation written in pieces.
func TestRandomPieces(t *testing.T) {
	testhook.SetPieces(true)
	defer testhook.SetPieces(false)
	pieces := 0
	for seed := range uint64(sample(1200, 400, 200)) {
		p := progen.New(seed, progen.Config{MaxElems: 600, Groups: progen.AllGroups})
		seg := segmentOf(p)
		plan, err := Explore(seg, testCaps(), Options{Mode: []Mode{Best, Greedy}[seed%2]})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkPlan(t, p, seg, plan)
		for i := range plan.Steps {
			for k, o := range plan.Steps[i].Operands {
				if plan.Steps[i].Kernel.Operands[k].Kind == codegen.Output && o.pieced(seg) {
					pieces++
				}
			}
		}
	}
	if pieces < 40 {
		t.Errorf("only %d pieces", pieces)
	}
}

// TestVerifyPieces: Verify accepts a tensor written in pieces only if each piece is written once.
func TestVerifyPieces(t *testing.T) {
	testhook.SetPieces(true)
	defer testhook.SetPieces(false)
	const text = "%0 = input : float32(4)\n%1 = input : float32(2)\n%2 = input : float32(3)\n" +
		"%3 = concat %0 %1 axes=0 : float32(6)\n%4 = concat %3 %2 axes=0 : float32(9)\noutput %4\n"
	out := func(p *Plan, step int) *Operand {
		s := &p.Steps[step]
		return &s.Operands[s.outputs(nil)[0]]
	}
	for _, c := range []struct {
		name   string
		damage func(p *Plan)
	}{
		{"missing piece", func(p *Plan) { p.Steps = p.Steps[:2] }},
		{"piece twice", func(p *Plan) { p.Steps[1] = p.Steps[0] }},
		{"whole and a piece", func(p *Plan) { out(p, 1).Path = nil }},
		{"overlap", func(p *Plan) { out(p, 0).Path = []Hop{{Node: 1, Up: true}} }},
		{"of another tensor", func(p *Plan) { out(p, 0).Path = []Hop{{Node: 0, Up: true}} }},
		{"no operand", func(p *Plan) { out(p, 2).Path[0].Arg = 3 }},
	} {
		seg, p := mustExplore(t, text, Best)
		if len(p.Steps) != 3 {
			t.Fatalf("%d steps\n%s", len(p.Steps), p)
		}
		if err := p.Verify(seg); err != nil {
			t.Fatal(err)
		}
		if again, err := ParsePlan(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("read again: %v\n%s", err, p)
		} else if _, err := again.Replay(seg, testCaps(), Options{}); err != nil {
			t.Errorf("replayed: %v", err)
		}
		c.damage(p)
		if p.Verify(seg) == nil {
			t.Errorf("%s is accepted", c.name)
		}
	}
}

// TestUsesOfPieces: if one of the steps that write pieces of a tensor fails, the whole tensor is
// computed again. So the operands of all these steps are needed until the last step.
func TestUsesOfPieces(t *testing.T) {
	testhook.SetPieces(true)
	defer testhook.SetPieces(false)
	_, p := mustExplore(t, "%0 = input : float32(4)\n%1 = input : float32(2)\n%2 = neg %0 : float32(4)\n"+
		"%3 = concat %0 %1 axes=0 : float32(6)\nrelease %0\noutput %2 %3\n", Best)
	u := p.Uses()
	if len(u.Pieces[3]) != 2 || u.Write[3] != 1 || u.Read[0] != 1 || u.Read[1] != 1 {
		t.Errorf("pieces %v, last written by step %d, read until %v\n%s", u.Pieces, u.Write[3], u.Read, p)
	}
}
