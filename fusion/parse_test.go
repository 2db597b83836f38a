package fusion

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// TestParsePlan parses the text of random plans and compares.
func TestParsePlan(t *testing.T) {
	for seed := range uint64(300) {
		seg := segmentOf(randomProgram(seed))
		for _, m := range []Mode{Best, Unfused} {
			p, err := Explore(seg, testCaps(), Options{Mode: m})
			if err != nil {
				t.Fatal(err)
			}
			q, err := ParsePlan(p.String())
			if err != nil {
				t.Fatalf("%v\n%s", err, p)
			}
			if q.String() != p.String() {
				t.Fatalf("got\n%s\nwant\n%s", q, p)
			}
			if err := q.Verify(seg); err != nil {
				t.Fatalf("%v\n%s", err, p)
			}
		}
	}
}

// FuzzParsePlan: the plan of any text that parses prints to a text that parses to the same plan.
func FuzzParsePlan(f *testing.F) {
	for seed := range uint64(5) {
		p, err := Explore(segmentOf(randomProgram(seed)), testCaps(), Options{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.String())
	}
	seg := segmentOf(randomProgram(1))
	f.Fuzz(func(t *testing.T, src string) {
		p, err := ParsePlan(src)
		if err != nil {
			return
		}
		text := p.String()
		q, err := ParsePlan(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if q.String() != text {
			t.Fatalf("got\n%s\nwant\n%s", q, text)
		}
		if p.Verify(seg) == nil {
			if _, err := p.Layout(seg, nil); err == nil {
				p.Check(seg)
			}
		}
	})
}

const planText = `step 0 domain t1 nodes 0
  operand 0 t0
  operand 1 t1
  inplace 1 0
  | in 0 : float32
  | out 1 : float32
  | %0 = load 0 : float32
  | %1 = neg %0 : float32
  | store 1 %1
alias t2 of t1 path 1 up:1 to:0
guard dim t0.0 t1.0
guard scalar 0 1
refuse 0 1 bytes 12 "a \"reason\""
`

func TestParsePlanForms(t *testing.T) {
	p, err := ParsePlan(planText)
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != planText {
		t.Errorf("got\n%s", p)
	}
	want := []Guard{{A: 0, ADim: 0, B: 1, BDim: 0}, {Scalar: true, A: 0, B: 1}}
	if !slices.Equal(p.Guards, want) {
		t.Errorf("guards %v", p.Guards)
	}
	if want := []Hop{{Node: 1}, {Node: 1, Up: true}, {Node: -1, Arg: 0}}; !slices.Equal(p.Aliases[0].Path, want) {
		t.Errorf("path %v", p.Aliases[0].Path)
	}
}

// TestParsePlanErrors damages one line of a plan's text at a time.
func TestParsePlanErrors(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"step 0", "step 1"},
		{"domain t1", "domain 1"},
		{"nodes 0", "nodes 0 x"},
		{"operand 1", "operand 2"},
		{"operand 0 t0", "operand 0 t-1"},
		{"operand 0 t0", "operand 0 t0 way"},
		{"inplace 1 0", "inplace 1"},
		{"store 1 %1", "store 1 %9"},
		{"  operand 1 t1\n", ""},
		{"t2 of t1", "t2 from t1"},
		{"path 1", "path to:x"},
		{"guard dim", "guard size"},
		{"t0.0 t1.0", "t0 t1.0"},
		{"guard scalar 0 1", "guard scalar 0"},
		{"bytes 12", "12"},
		{"\"a ", "a "},
		{"refuse", "regret"},
		{"step 0 domain t1 nodes 0\n", ""},
	} {
		text := strings.Replace(planText, c.from, c.to, 1)
		if text == planText {
			t.Fatalf("%q is not in the plan", c.from)
		}
		if _, err := ParsePlan(text); err == nil {
			t.Errorf("%q for %q was accepted", c.to, c.from)
		} else if !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%q for %q: %v names no line", c.to, c.from, err)
		}
	}
}

func TestDimGuards(t *testing.T) {
	p := &Plan{Guards: []Guard{{A: 0, ADim: 1, B: 1, BDim: 0}}}
	seg := func(n int) *segment.Segment {
		return &segment.Segment{Tensors: []segment.Tensor{{Shape: ir.Shape{2, 3}}, {Shape: ir.Shape{n}}}}
	}
	if !p.Check(seg(3)) || p.Check(seg(4)) {
		t.Error("the guard does not compare dims")
	}
	p.Guards[0].BDim = 1
	if p.Check(seg(3)) {
		t.Error("a guard on no dim holds")
	}
}
