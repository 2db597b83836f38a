package fusion

import (
	"testing"

	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// scoped is the segment of a step in a scope: tensors that are not results are dead.
func scoped(p progen.Step) *segment.Segment {
	seg := segmentOf(p.Graph)
	for i := range seg.Tensors {
		if x := &seg.Tensors[i]; x.Life == segment.LifeVirtual {
			x.Life = segment.LifeDead
		}
	}
	return seg
}

// explored explores a segment. It returns the plan, the number of nodes that the plan computes, and
// the number of calls of Stop, which stands for the effort of the search.
func explored(t *testing.T, seg *segment.Segment, mode Mode) (p *Plan, computed, asked int) {
	t.Helper()
	opt := Options{Mode: mode}
	if mode == Best {
		opt.Stop = func() bool { asked++; return false }
	}
	p, err := Explore(seg, testCaps(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(seg); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		for _, n := range s.Nodes {
			if seg.Nodes[n].Op.Class() != ir.ClassView {
				computed++
			}
		}
	}
	return p, computed, asked
}

// TestLong: the computed nodes of a long segment's plan grow with its length, and so does the
// search. No value is computed once for each later result.
func TestLong(t *testing.T) {
	for _, c := range []struct {
		name        string
		short, long progen.Step
	}{
		{"chain of large tensors", progen.Chain(100, 1<<20), progen.Chain(200, 1<<20)},
		{"chain of small tensors", progen.Chain(100, 8), progen.Chain(200, 8)},
		{"transformer", progen.Transformer(2, 6, 8, 24), progen.Transformer(4, 6, 8, 24)},
	} {
		for _, mode := range []Mode{Best, Greedy} {
			_, _, before := explored(t, scoped(c.short), mode)
			seg := scoped(c.long)
			p, computed, asked := explored(t, seg, mode)
			if most := len(seg.Nodes) * 3 / 2; computed > most {
				t.Errorf("%s, %v: %d computations of %d nodes", c.name, mode, computed, len(seg.Nodes))
			}
			if asked > before*5/2 {
				t.Errorf("%s: a search of %d questions, and of %d where the segment is twice as long", c.name, before, asked)
			}
			if p.Mode != mode {
				t.Errorf("%s: a plan that is %v, asked for %v", c.name, p.Mode, mode)
			}
		}
	}
}

// TestLongIsAsGood: a segment that is slightly too long to be searched as a whole gets a plan that
// is about as good.
func TestLongIsAsGood(t *testing.T) {
	for name, p := range map[string]progen.Step{"chain": progen.Chain(16, 1<<20), "transformer": progen.Transformer(1, 1, 64, 64)} {
		seg := scoped(p)
		whole, err := Explore(seg, testCaps(), Options{within: len(seg.Nodes)})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := Explore(seg, testCaps(), Options{within: len(seg.Nodes) / 2})
		if err != nil {
			t.Fatal(err)
		}
		if parts.Score < 0.95*whole.Score {
			t.Errorf("%s: saves %g in parts, %g as a whole", name, parts.Score, whole.Score)
		}
	}
}

// TestUpdatesFollow: an update of a weight after all derivatives shares the kernel of its
// derivative, wherever that kernel is.
func TestUpdatesFollow(t *testing.T) {
	p := progen.Transformer(2, 6, 8, 24)
	seg := scoped(p)
	plan, _, _ := explored(t, seg, Best)
	apart := 0
	for _, s := range plan.Steps {
		dots := 0
		for _, n := range s.Nodes {
			if seg.Nodes[n].Op == ir.Dot {
				dots++
			}
		}
		if out := s.Operands[len(s.Operands)-1].Tensor; dots == 0 && seg.Tensors[out].Life == segment.LifeWrite && len(s.Nodes) < 4 {
			apart++
		}
	}
	if apart > 4 {
		t.Errorf("%d of %d weights are updated by a kernel of their own\n", apart, len(p.Outputs)-1)
	}
}
