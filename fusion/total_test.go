package fusion

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// totalProgram is a random program with folds along the last axes of tensors of one shape, ops on
// their results, and folds over all axes. Later ops use some of these folds.
func totalProgram(seed uint64) *ir.Graph {
	g := &generator{r: rand.New(rand.NewPCG(seed, 16))}
	var base ir.Shape
	for range 2 + g.r.IntN(2) {
		base = append(base, sizes[g.r.IntN(len(sizes))])
	}
	dt := []ir.DType{ir.Float32, ir.Float32, ir.Int32, ir.Float64}[g.r.IntN(4)]
	for range 1 + g.r.IntN(3) {
		g.t = append(g.t, ir.TensorType{DT: dt, Shape: base})
	}
	g.p.Inputs = append(g.p.Inputs, g.t...)
	whole := func() int { // a random tensor of the full shape
		for {
			if i := g.r.IntN(len(g.t)); g.t[i].Shape.Equal(base) && g.t[i].DT == dt {
				return i
			}
		}
	}
	axes := func(from int) (list []int) {
		for d := from; d < len(base); d++ {
			list = append(list, d)
		}
		return list
	}
	from := 1 + g.r.IntN(len(base)-1)
	for range 3 + g.r.IntN(8) {
		op := []ir.Op{ir.Sum, ir.Sum, ir.Max, ir.Prod}[g.r.IntN(4)]
		i := whole()
		switch g.r.IntN(4) {
		case 0:
			g.node(op, &ir.Attr{Axes: axes(from), Keep: true}, 0, nil, ir.T(i))
		case 1:
			g.node(op, &ir.Attr{Axes: axes(0), Keep: g.r.IntN(2) == 0}, 0, nil, ir.T(i))
		case 2:
			g.node([]ir.Op{ir.Abs, ir.Square, ir.Neg}[g.r.IntN(3)], nil, 0, nil, ir.T(i))
		}
		g.node([]ir.Op{ir.Add, ir.Mul, ir.Sub}[g.r.IntN(3)], nil, 0, nil, ir.T(whole()), ir.T(g.pick()))
	}
	for i := len(g.p.Inputs); i < len(g.t); i++ {
		if len(g.t[i].Shape) == 0 || g.r.IntN(4) == 0 || i == len(g.t)-1 {
			g.p.Outputs = append(g.p.Outputs, i)
		}
	}
	return &g.p
}

// TestTotals compares plans of such programs with the oracle, at other sizes too, and checks that
// the plans have totals.
func TestTotals(t *testing.T) {
	n := sample(3000, 600, 200)
	totals := 0
	for seed := range uint64(n) {
		p := totalProgram(seed)
		for _, mode := range []Mode{Best, Greedy} {
			compare(t, p, testCaps(), Options{Mode: mode})
			plan, err := Explore(segmentOf(p), testCaps(), Options{Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			for i := range plan.Steps {
				totals += len(plan.Steps[i].Kernel.Reduces)
			}
			other, ok := resized(p, map[int]int{2: 3, 3: 5, 5: 2})
			if seg := segmentOf(other); ok && plan.Check(seg) {
				checkPlan(t, other, seg, plan)
			}
		}
		none := testCaps()
		none.Totals = false
		plan, err := Explore(segmentOf(p), none, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range plan.Steps {
			if k := plan.Steps[i].Kernel; len(k.Reduces) > 0 {
				t.Fatalf("a total for a device that has none\n%s", k)
			}
		}
	}
	if totals < n/3 {
		t.Errorf("%d totals in the plans of %d programs", totals, n)
	}
}
