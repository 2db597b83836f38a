package fusion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

func mustExplore(t *testing.T, text string, m Mode) (*segment.Segment, *Plan) {
	t.Helper()
	seg := segmentOf(parseProgram(t, text))
	p, err := Explore(seg, testCaps(), Options{Mode: m})
	if err != nil {
		t.Fatal(err)
	}
	return seg, p
}

// TestGeluCustom: erf written out in public ops, and evaluated on x and -x, becomes one kernel that
// does the work of one erf.
func TestGeluCustom(t *testing.T) {
	seg, p := mustExplore(t, geluCustom, Best)
	if len(p.Steps) != 1 {
		t.Fatalf("%d kernels\n%s", len(p.Steps), p)
	}
	exps := 0
	for _, in := range p.Steps[0].Kernel.Body {
		if in.Op == ir.Exp {
			exps++
		}
	}
	if exps != 1 {
		t.Errorf("exp is computed %d times\n%s", exps, p)
	}
	if !p.Check(seg) {
		t.Error("the plan's guards do not hold where it was explored")
	}
	for _, g := range p.Guards {
		seg.Scalars[g.B].Bits++
		if p.Check(seg) {
			t.Errorf("guard %+v does not notice a change", g)
		}
		seg.Scalars[g.B].Bits--
	}
}

// TestScalarsStayFree: a plan does not depend on scalars that differ between the steps of a loop.
func TestScalarsStayFree(t *testing.T) {
	var b strings.Builder
	b.WriteString("%0 = input : float32(1000)\n")
	for i := 1; i <= 20; i++ {
		fmt.Fprintf(&b, "%%%d = %s %%%d 1.5 : float32(1000)\n", i, []string{"add", "mul"}[i%2], i-1)
	}
	b.WriteString("output %20\n")
	_, p := mustExplore(t, b.String(), Best)
	if len(p.Guards) != 0 || len(p.Steps) != 1 || len(p.Steps[0].Scalars) != 20 {
		t.Errorf("guards %v, %d steps\n%s", p.Guards, len(p.Steps), p)
	}
}

// TestLongChains: kernels keep to the limits at every length, and no value is written without need.
func TestLongChains(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 200} {
		var b strings.Builder
		b.WriteString("%0 = input : float32(8)\n")
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&b, "%%%d = %s %%%d %d : float32(8)\n", i, []string{"add", "mul"}[i%2], i-1, i%7)
		}
		fmt.Fprintf(&b, "output %%%d\n", n)
		prog := parseProgram(t, b.String())
		seg := segmentOf(prog)
		caps := testCaps()
		for _, m := range []Mode{Best, Greedy} {
			p, err := Explore(seg, caps, Options{Mode: m})
			if err != nil {
				t.Fatal(err)
			}
			if want := (n + caps.MaxScalars - 1) / caps.MaxScalars; len(p.Steps) != want {
				t.Errorf("%d ops, %v: %d kernels, want %d", n, m, len(p.Steps), want)
			}
			checkPlan(t, prog, seg, p)
		}
	}
}

// TestLimits: no kernel of a random plan exceeds the device's limits, except a kernel of one op.
func TestLimits(t *testing.T) {
	for name, set := range map[string]func(c *runtime.Caps){
		"operands":     func(c *runtime.Caps) { c.MaxOperands = 4 },
		"slots":        func(c *runtime.Caps) { c.MaxSlots = 4 },
		"scalars":      func(c *runtime.Caps) { c.MaxScalars = 2 },
		"instructions": func(c *runtime.Caps) { c.MaxBody = 10 },
		"row ops":      func(c *runtime.Caps) { c.MaxRowOps = 1 },
		"bindings":     func(c *runtime.Caps) { c.MaxBindings = 4 },
	} {
		t.Run(name, func(t *testing.T) {
			caps := *testCaps()
			set(&caps)
			met := 0
			for seed := range uint64(300) {
				seg := segmentOf(randomProgram(seed))
				p, err := Explore(seg, &caps, Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i := range p.Steps {
					s := &p.Steps[i]
					z := s.Kernel.Size()
					if (z.Over(&caps) != "" || caps.MaxBody > 0 && size(s.Kernel) > caps.MaxBody) && ops(seg, s) > 1 {
						t.Fatalf("seed %d step %d: %+v\n%s", seed, i, z, p)
					}
				}
				if wide, err := Explore(seg, testCaps(), Options{}); err != nil || len(wide.Steps) < len(p.Steps) {
					met++
				}
			}
			if met == 0 {
				t.Error("no program met the limit")
			}
		})
	}
}

// ops counts the nodes of a step that are neither views nor constants.
func ops(seg *segment.Segment, s *Step) int {
	n := 0
	for _, i := range s.Nodes {
		if op := seg.Nodes[i].Op; op.Class() != ir.ClassView && op != ir.Full {
			n++
		}
	}
	return n
}

// TestDeterministic: equal segments get equal plans.
func TestDeterministic(t *testing.T) {
	for seed := range uint64(100) {
		first := ""
		for range 3 {
			p, err := Explore(segmentOf(randomProgram(seed)), testCaps(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = p.String()
			} else if p.String() != first {
				t.Fatalf("got\n%s\nthen\n%s", first, p)
			}
		}
	}
}

// TestNeverWorse: by the model's own times, no plan is slower than one kernel per op, and the best
// plan is not slower than the greedy one.
func TestNeverWorse(t *testing.T) {
	for seed := range uint64(300) {
		seg := segmentOf(randomProgram(seed))
		kernels := map[Mode]int{}
		for _, m := range []Mode{Best, Greedy, Unfused} {
			p, err := Explore(seg, testCaps(), Options{Mode: m})
			if err != nil {
				t.Fatal(err)
			}
			if p.Score < 0 {
				t.Errorf("seed %d, %v: score %g\n%s", seed, m, p.Score, p)
			}
			kernels[m] = len(p.Steps)
		}
		if kernels[Best] > kernels[Unfused] || kernels[Greedy] > kernels[Unfused] {
			t.Errorf("seed %d: kernels %v", seed, kernels)
		}
	}
}

func TestInPlace(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []InPlace
	}{
		{"same shape", "%0 = input : float32(4)\n%1 = neg %0 : float32(4)\noutput %1\n", []InPlace{{1, 0}}},
		{"other dtype", "%0 = input : float32(4)\n%1 = cast %0 : int32(4)\noutput %1\n", nil},
		{"read at two maps", "%0 = input : float32(4,4)\n%1 = permute %0 axes=1,0 : float32(4,4)\n%2 = add %0 %1 : float32(4,4)\noutput %2\n", nil},
		{"transposed", "%0 = input : float32(4,4)\n%1 = permute %0 axes=1,0 : float32(4,4)\n%2 = neg %1 : float32(4,4)\noutput %2\n", nil},
		{"broadcast operand", "%0 = input : float32(4)\n%1 = input : float32(3,4)\n%2 = mul %0 2 : float32(4)\n%3 = add %1 %2 : float32(3,4)\noutput %2 %3\n", []InPlace{{3, 1}}},
		{"reduced", "%0 = input : float32(4)\n%1 = sum %0 axes=0 keep : float32(1)\noutput %1\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, p := mustExplore(t, c.text, Best)
			if len(p.Steps) != 1 || !slices.Equal(p.Steps[0].InPlace, c.want) {
				t.Errorf("want %v\n%s", c.want, p)
			}
		})
	}
}

func TestUses(t *testing.T) {
	_, p := mustExplore(t, "%0 = input : float32(4)\n%1 = neg %0 : float32(4)\n%2 = abs %1 : float32(4)\n%3 = add %2 %0 : float32(4)\noutput %3\n", Unfused)
	u := p.Uses()
	if !slices.Equal(u.Write, []int{-1, 0, 1, 2}) || !slices.Equal(u.Read, []int{2, 1, 2, -1}) {
		t.Errorf("written %v, read %v", u.Write, u.Read)
	}
}

// TestEmpty: a segment with an empty tensor gives one kernel per op.
func TestEmpty(t *testing.T) {
	prog := parseProgram(t, "%0 = input : float32(4)\n%1 = slice %0 start=0 step=1 : float32(0)\n%2 = neg %1 : float32(0)\n%3 = neg %0 : float32(4)\n%4 = abs %3 : float32(4)\noutput %2 %4\n")
	seg := segmentOf(prog)
	p, err := Explore(seg, testCaps(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 3 {
		t.Errorf("%d kernels\n%s", len(p.Steps), p)
	}
	checkPlan(t, prog, seg, p)
}

// TestMisfit: shapes of another relative form give an error, not an access out of bounds.
func TestMisfit(t *testing.T) {
	_, p := mustExplore(t, "%0 = input : float32(3,4)\n%1 = input : float32(4)\n%2 = add %0 %1 : float32(3,4)\noutput %2\n", Best)
	other := segmentOf(parseProgram(t, "%0 = input : float32(3,1)\n%1 = input : float32(4)\n%2 = add %0 %1 : float32(3,4)\noutput %2\n"))
	if _, err := p.Layout(other, nil); !errors.Is(err, errPath) {
		t.Errorf("got %v", err)
	}
}

func TestVerify(t *testing.T) {
	const text = "%0 = input : float32(4)\n%1 = neg %0 : float32(4)\n%2 = abs %1 : float32(4)\noutput %1 %2\n"
	for _, c := range []struct {
		name   string
		damage func(p *Plan)
	}{
		{"missing step", func(p *Plan) { p.Steps = p.Steps[:1] }},
		{"order", func(p *Plan) { slices.Reverse(p.Steps) }},
		{"written twice", func(p *Plan) { p.Steps = append(p.Steps, p.Steps[0]) }},
		{"tensor", func(p *Plan) { p.Steps[0].Operands[0].Tensor = 9 }},
		{"domain", func(p *Plan) { p.Steps[0].Domain = -1 }},
		{"axes", func(p *Plan) { p.Steps[0].Axes = []int{3} }},
		{"node", func(p *Plan) { p.Steps[0].Operands[0].Path = []Hop{{Node: 7}} }},
		{"operands", func(p *Plan) { p.Steps[0].Operands = p.Steps[0].Operands[:1] }},
		{"writes an input", func(p *Plan) { p.Steps[0].Operands[1].Tensor = 0 }},
		{"alias of nothing", func(p *Plan) { p.Aliases = []Alias{{Tensor: 1, Of: 2}} }},
		{"in place", func(p *Plan) { p.Steps[0].InPlace = []InPlace{{0, 1}} }},
		{"no kernel", func(p *Plan) { p.Steps[0].Kernel = nil }},
		{"guard", func(p *Plan) { p.Guards = []Guard{{Scalar: true, A: 5}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			seg, p := mustExplore(t, text, Unfused)
			if err := p.Verify(seg); err != nil {
				t.Fatal(err)
			}
			c.damage(p)
			if p.Verify(seg) == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestExploreErrors(t *testing.T) {
	neg := func() *segment.Segment {
		return segmentOf(parseProgram(t, "%0 = input : float32(4)\n%1 = neg %0 : float32(4)\noutput %1\n"))
	}
	seg := neg()
	seg.Nodes[0].Op = ir.FMA
	if _, err := Explore(seg, testCaps(), Options{}); err == nil {
		t.Error("a primitive on tensors was accepted")
	}
	seg = neg()
	seg.Tensors[0].Life = segment.LifeWrite
	if _, err := Explore(seg, testCaps(), Options{}); err == nil {
		t.Error("an input to be written was accepted")
	}
}

// TestNoFigures: a device that gives no speeds and no limits gets plans, too.
func TestNoFigures(t *testing.T) {
	prog := parseProgram(t, "%0 = input : float32(4,6)\n%1 = exp %0 : float32(4,6)\n%2 = sum %1 axes=1 : float32(4)\noutput %2\n")
	seg := segmentOf(prog)
	p, err := Explore(seg, &runtime.Caps{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Steps) != 1 {
		t.Errorf("%d kernels\n%s", len(p.Steps), p)
	}
	checkPlan(t, prog, seg, p)
}

// TestHalvesEnd: every stage reads two places of the stage before, as sums by halves do. So the
// number of values, counted from the last stage, doubles with each stage. Exploring such a program
// still ends, and its kernels keep to the device's limits.
func TestHalvesEnd(t *testing.T) {
	const stages = 40
	seg := &segment.Segment{Tensors: []segment.Tensor{{DT: ir.Int32, Shape: ir.Shape{stages + 1}, Def: -1, Life: segment.LifeInput}}}
	add := func(op ir.Op, n int, start int, args ...int32) int32 {
		node := ir.Node{Op: op, DT: ir.Int32, Shape: ir.Shape{n}, NArgs: uint8(len(args))}
		for i, a := range args {
			node.Args[i].ID = a
		}
		if op == ir.Slice {
			node.Attr = &ir.Attr{Start: []int{start}, Step: []int{1}}
		}
		id := int32(len(seg.Tensors))
		seg.Tensors = append(seg.Tensors, segment.Tensor{DT: ir.Int32, Shape: node.Shape, Def: int32(len(seg.Nodes)), Life: segment.LifeVirtual})
		seg.Nodes, seg.Out = append(seg.Nodes, node), append(seg.Out, id)
		return id
	}
	x := int32(0)
	for n := stages; n > 0; n-- {
		x = add(ir.Mul, n, 0, add(ir.Slice, n, 0, x), add(ir.Slice, n, 1, x))
	}
	seg.Tensors[x].Life = segment.LifeWrite
	for _, mode := range []Mode{Greedy, Best} {
		p, err := Explore(seg, testCaps(), Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Steps {
			if len(s.Operands) > testCaps().MaxOperands {
				t.Errorf("%v: a kernel of %d operands", mode, len(s.Operands))
			}
		}
		if len(p.Steps) < 2 || len(p.Steps) >= stages {
			t.Errorf("%v: %d kernels", mode, len(p.Steps))
		}
	}
}
