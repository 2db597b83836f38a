package fusion

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
)

// generator makes small random programs of the ops whose fusion is tested. Most operands have
// related shapes, so most ops can fuse.
type generator struct {
	r *rand.Rand
	p ir.Graph
	t []ir.TensorType
}

func (g *generator) pick() int { return len(g.t) - 1 - min(g.r.IntN(len(g.t)), g.r.IntN(len(g.t))) }

// node appends an op if Infer accepts it.
func (g *generator) node(op ir.Op, attr *ir.Attr, dt ir.DType, shape ir.Shape, args ...ir.Arg) bool {
	var ops []ir.Operand
	for _, a := range args {
		if a.Scalar {
			ops = append(ops, ir.Operand{Scalar: true, DT: g.p.Scalars[a.ID].DT})
		} else {
			ops = append(ops, ir.Operand{DT: g.t[a.ID].DT, Shape: g.t[a.ID].Shape})
		}
	}
	dt, shape, err := ir.Infer(op, attr, dt, shape, ops...)
	if err != nil {
		return false
	}
	n := ir.Node{Op: op, DT: dt, Shape: shape, NArgs: uint8(len(args)), Attr: attr}
	copy(n.Args[:], args)
	g.p.Nodes = append(g.p.Nodes, n)
	g.t = append(g.t, ir.TensorType{DT: dt, Shape: shape})
	return true
}

func (g *generator) scalar(dt ir.DType) ir.Arg {
	v := []float64{1, 2, 0.5, 3}[g.r.IntN(4)]
	g.p.Scalars = append(g.p.Scalars, ir.ScalarValue{DT: dt, Bits: bitsOf(dt, v)})
	return ir.S(len(g.p.Scalars) - 1)
}

var sizes = []int{1, 2, 3, 4, 5, 6}

func (g *generator) shape() ir.Shape {
	s := ir.Shape{}
	for range g.r.IntN(4) {
		s = append(s, sizes[g.r.IntN(len(sizes))])
	}
	return s
}

func (g *generator) step() {
	i := g.pick()
	x := g.t[i]
	switch g.r.IntN(15) {
	case 0, 1:
		g.node([]ir.Op{ir.Neg, ir.Abs, ir.Square, ir.Relu, ir.Sqrt}[g.r.IntN(5)], nil, 0, nil, ir.T(i))
	case 2:
		g.node([]ir.Op{ir.Add, ir.Mul, ir.Sub}[g.r.IntN(3)], nil, 0, nil, ir.T(i), g.scalar(x.DT))
	case 3, 4, 5:
		for range 4 {
			if g.node([]ir.Op{ir.Add, ir.Mul, ir.Sub, ir.Maximum}[g.r.IntN(4)], nil, 0, nil, ir.T(i), ir.T(g.pick())) {
				break
			}
		}
	case 6:
		g.view(i)
	case 7:
		g.view(i)
	case 8:
		if len(x.Shape) > 0 {
			var axes []int
			for d := range x.Shape {
				if g.r.IntN(2) == 0 {
					axes = append(axes, d)
				}
			}
			if axes != nil {
				g.node([]ir.Op{ir.Sum, ir.Max, ir.Min, ir.Prod}[g.r.IntN(4)], &ir.Attr{Axes: axes, Keep: g.r.IntN(2) == 0}, 0, nil, ir.T(i))
			}
		}
	case 12, 13:
		g.rows(i)
	case 14:
		g.product(i)
	case 9:
		if g.node(ir.Lt, nil, 0, nil, ir.T(i), ir.T(g.pick())) {
			g.node(ir.Where, nil, 0, nil, ir.T(len(g.t)-1), ir.T(g.pick()), ir.T(g.pick()))
		}
	case 10:
		g.node(ir.Cast, nil, []ir.DType{ir.Float32, ir.Int32, ir.Bool, ir.Float64, ir.Uint8}[g.r.IntN(5)], nil, ir.T(i))
	case 11:
		if g.r.IntN(2) == 0 {
			g.node(ir.Iota, nil, ir.Int32, g.shape(), g.scalar(ir.Int32), g.scalar(ir.Int32))
		} else {
			g.node(ir.Full, nil, ir.Float32, g.shape(), g.scalar(ir.Float32))
		}
	}
}

// product contracts the last dim of tensor i with the last dim of another tensor, both expanded to
// one shape, as matrix products record it. It appends more ops after the product.
func (g *generator) product(i int) {
	x := g.t[i]
	if len(x.Shape) == 0 || len(x.Shape) > 3 || x.DT == ir.Bool {
		return
	}
	k := x.Shape[len(x.Shape)-1]
	j := g.pick()
	for tries := 0; tries < 4 && (len(g.t[j].Shape) == 0 || len(g.t[j].Shape) > 2 || g.t[j].DT != x.DT || g.t[j].Shape[len(g.t[j].Shape)-1] != k); tries++ {
		j = g.pick()
	}
	if y := g.t[j]; len(y.Shape) == 0 || len(y.Shape) > 2 || y.DT != x.DT || y.Shape[len(y.Shape)-1] != k {
		j = i // the tensor with itself
	}
	y := g.t[j]
	if len(x.Shape)+len(y.Shape)-1 > 5 {
		return
	}
	// (m…, k) and (n…, k) are expanded to (m…, n…, k).
	m, n := x.Shape[:len(x.Shape)-1], y.Shape[:len(y.Shape)-1]
	full := append(append(append(ir.Shape{}, m...), n...), k)
	with := append(ir.Shape{}, m...)
	for range n {
		with = append(with, 1)
	}
	if full.Elems() > 3000 {
		return
	}
	g.node(ir.Reshape, nil, 0, append(with, k), ir.T(i))
	g.node(ir.Expand, nil, 0, full, ir.T(len(g.t)-1))
	a := len(g.t) - 1
	g.node(ir.Expand, nil, 0, full, ir.T(j))
	if !g.node(ir.Dot, &ir.Attr{Axes: []int{len(full) - 1}, Keep: g.r.IntN(6) == 0}, 0, nil, ir.T(a), ir.T(len(g.t)-1)) {
		return
	}
	r := len(g.t) - 1
	if len(n) == 1 && g.r.IntN(2) == 0 {
		g.node(ir.Full, nil, x.DT, n, g.scalar(x.DT))
		g.node(ir.Add, nil, 0, nil, ir.T(r), ir.T(len(g.t)-1))
	}
	if g.r.IntN(2) == 0 {
		g.node(ir.Abs, nil, 0, nil, ir.T(len(g.t)-1))
	}
}

// rows appends row ops over tensor i and brings their results back to its shape, as norms do: by
// keeping dims, by reshaping, or by reshaping and expanding.
func (g *generator) rows(i int) {
	x := g.t[i]
	axes, back := []int{}, append(ir.Shape{}, x.Shape...)
	for d := range x.Shape {
		if g.r.IntN(2) == 0 {
			axes, back[d] = append(axes, d), 1
		}
	}
	for range 1 + g.r.IntN(3) {
		last := len(g.t) - 1
		if !g.t[i].Shape.Equal(x.Shape) {
			return
		}
		if len(x.Shape) > 0 && g.r.IntN(5) == 0 {
			a := &ir.Attr{Axes: []int{g.r.IntN(len(x.Shape))}}
			if g.node([]ir.Op{ir.CumSum, ir.CumMax, ir.Sort}[g.r.IntN(3)], a, 0, nil, ir.T(i)); len(g.t)-1 == last {
				return
			}
		} else {
			keep := g.r.IntN(2) == 0
			if !g.node([]ir.Op{ir.Sum, ir.Max, ir.ArgMax}[g.r.IntN(3)], &ir.Attr{Axes: axes, Keep: keep}, ir.Int32, nil, ir.T(i)) {
				return
			}
			if g.t[len(g.t)-1].DT != x.DT {
				g.node(ir.Cast, nil, x.DT, nil, ir.T(len(g.t)-1))
			}
			if g.r.IntN(3) == 0 {
				g.node(ir.Abs, nil, 0, nil, ir.T(len(g.t)-1))
			}
			if !keep {
				g.node(ir.Reshape, nil, 0, back, ir.T(len(g.t)-1))
			}
			if g.r.IntN(3) == 0 {
				g.node(ir.Expand, nil, 0, x.Shape, ir.T(len(g.t)-1))
			}
		}
		if !g.node([]ir.Op{ir.Sub, ir.Mul, ir.Maximum}[g.r.IntN(3)], nil, 0, nil, ir.T(i), ir.T(len(g.t)-1)) {
			return
		}
		i = len(g.t) - 1
	}
}

func (g *generator) view(i int) {
	x := g.t[i]
	switch g.r.IntN(4) {
	case 0:
		g.node(ir.Permute, &ir.Attr{Axes: g.r.Perm(len(x.Shape))}, 0, nil, ir.T(i))
	case 1:
		a := &ir.Attr{}
		to := ir.Shape{}
		for _, n := range x.Shape {
			m := 1 + g.r.IntN(n)
			step := 1 + g.r.IntN((n-1)/max(m-1, 1)+1)
			if m == 1 {
				step = 1
			}
			for (m-1)*step >= n {
				step--
			}
			start := g.r.IntN(n - (m-1)*step)
			if g.r.IntN(3) == 0 {
				start, step = start+(m-1)*step, -step
			}
			a.Start, a.Step, to = append(a.Start, start), append(a.Step, step), append(to, m)
		}
		g.node(ir.Slice, a, 0, to, ir.T(i))
	case 2:
		n := x.Shape.Elems()
		to := ir.Shape{}
		for n > 1 && len(to) < 3 {
			d := sizes[g.r.IntN(len(sizes))]
			if n%d == 0 {
				to, n = append(to, d), n/d
			}
		}
		to = append(to, n)
		g.r.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
		g.node(ir.Reshape, nil, 0, to, ir.T(i))
	case 3:
		to := append(g.shape(), x.Shape...)
		for d := range to {
			if to[d] == 1 {
				to[d] = sizes[g.r.IntN(len(sizes))]
			}
		}
		if len(to) < 5 && to.Elems() < 400 {
			g.node(ir.Expand, nil, 0, to, ir.T(i))
		}
	}
}

func randomProgram(seed uint64) *ir.Graph {
	g := &generator{r: rand.New(rand.NewPCG(seed, 7))}
	base := g.shape()
	for range 1 + g.r.IntN(3) {
		s := append(ir.Shape{}, base...)
		for d := range s {
			if g.r.IntN(4) == 0 {
				s[d] = 1
			}
		}
		dt := []ir.DType{ir.Float32, ir.Float32, ir.Int32, ir.Float64}[g.r.IntN(4)]
		g.t = append(g.t, ir.TensorType{DT: dt, Shape: s})
	}
	g.p.Inputs = append(g.p.Inputs, g.t...)
	for range 3 + g.r.IntN(18) {
		g.step()
	}
	for i := len(g.p.Inputs); i < len(g.t); i++ {
		if g.r.IntN(4) == 0 || i == len(g.t)-1 {
			g.p.Outputs = append(g.p.Outputs, i)
		}
	}
	return &g.p
}

// sample is the number of random programs that a test runs: long in make test-long, short with
// -short, else usual.
func sample(long, usual, short int) int {
	switch {
	case os.Getenv("MILLRACE_LONG") != "":
		return long
	case testing.Short():
		return short
	}
	return usual
}

// TestRandomPrograms compares plans of every mode with the oracle, on a device with high limits and
// on one with very low limits.
func TestRandomPrograms(t *testing.T) {
	n := sample(1500, 500, 200)
	tight := testCaps()
	tight.MaxOperands, tight.MaxScalars, tight.MaxBody = 5, 3, 12
	tight.MaxSlots, tight.MaxRowOps, tight.MaxBindings = 6, 2, 5
	tight.StretchCost = 1e-6 // so high that operands made of parts are written first
	for seed := range uint64(n) {
		p := randomProgram(seed)
		for _, mode := range []Mode{Best, Greedy, Unfused} {
			compare(t, p, testCaps(), Options{Mode: mode})
		}
		compare(t, p, tight, Options{Mode: Best})
		inParts(t, p, testCaps(), seed)
	}
}

// TestAllOps is TestRandomPrograms with programs of every op and dtype.
func TestAllOps(t *testing.T) {
	n := sample(300, 100, 30)
	for seed := range uint64(n) {
		p := progen.New(seed, progen.Config{MaxElems: 600, Groups: []progen.Group{0, progen.AllGroups}[seed%2]})
		for _, mode := range []Mode{Best, Greedy, Unfused} {
			compare(t, p, testCaps(), Options{Mode: mode})
		}
		inParts(t, p, testCaps(), seed)
	}
}

// inParts searches a program in parts, as a long segment, in each way: the best plan, the best plan
// with a bound on effort, and the greedy plan.
func inParts(t *testing.T, p *ir.Graph, caps *runtime.Caps, seed uint64) {
	t.Helper()
	within := 1 + int(seed%9)
	compare(t, p, caps, Options{within: within})
	compare(t, p, caps, Options{within: within, Effort: 1 + int(seed%300)})
	compare(t, p, caps, Options{within: within, Mode: Greedy})
}

// resized maps every dim of a program by a multiplicative function, which is given by its values at
// 2, 3 and 5. Such a function keeps the facts of the relative form: which dims are 1, which are
// equal, which products are equal. Slices must cover whole dims in equal steps; for others the
// result is false.
func resized(p *ir.Graph, to map[int]int) (*ir.Graph, bool) {
	f := func(n int) int {
		m := 1
		for _, q := range []int{2, 3, 5} {
			for n%q == 0 {
				m, n = m*to[q], n/q
			}
		}
		return m * n
	}
	shape := func(s ir.Shape) ir.Shape {
		r := make(ir.Shape, len(s))
		for d, n := range s {
			r[d] = f(n)
		}
		return r
	}
	types := p.Types()
	q := *p
	q.Inputs, q.Nodes = nil, nil
	for _, t := range p.Inputs {
		q.Inputs = append(q.Inputs, ir.TensorType{DT: t.DT, Shape: shape(t.Shape)})
	}
	for _, n := range p.Nodes {
		if n.Op == ir.Slice {
			from := types[n.Args[0].ID].Shape
			a := &ir.Attr{}
			for d, m := range n.Shape {
				if from[d]%m != 0 {
					return nil, false
				}
				step := f(from[d] / m)
				start := 0
				if n.Attr.Step[d] < 0 {
					start, step = (f(m)-1)*step, -step
				}
				a.Start, a.Step = append(a.Start, start), append(a.Step, step)
			}
			n.Attr = a
		}
		n.Shape = shape(n.Shape)
		q.Nodes = append(q.Nodes, n)
	}
	return &q, true
}

// keysOf is a program's relative form: the key of each op.
func keysOf(in *queue.Interner, p *ir.Graph) []queue.Key {
	q := queue.Queue[struct{}]{Interner: in}
	for _, t := range p.Inputs {
		q.Input(struct{}{}, t.DT, queue.NewForm(t.Shape))
	}
	for _, s := range p.Scalars {
		q.Scalar(s.DT, s.Bits)
	}
	var keys []queue.Key
	for i := range p.Nodes {
		n := p.Nodes[i]
		keys = append(keys, q.Append(&n, queue.NewForm(n.Shape), struct{}{}).Key)
	}
	return keys
}

// TestOtherSizes runs plans at sizes other than the explored ones, wherever the relative form says
// that the plan is right.
func TestOtherSizes(t *testing.T) {
	maps := []map[int]int{
		{2: 3, 3: 2, 5: 1},
		{2: 1, 3: 1, 5: 4},
		{2: 4, 3: 3, 5: 2},
		{2: 2, 3: 2, 5: 2},
		{2: 1, 3: 5, 5: 1},
	}
	ran := 0
	n := sample(800, 300, 300)
	for seed := range uint64(n) {
		p := randomProgram(seed)
		for _, m := range maps {
			q, ok := resized(p, m)
			if !ok || tooLarge(q) {
				continue
			}
			ran += serves(t, p, q) + serves(t, q, p)
		}
	}
	if ran < n+n/4 {
		t.Errorf("only %d plans ran", ran)
	}
}

// serves runs the plan of program p for program q, if that is legal. It returns the number of runs.
func serves(t *testing.T, p, q *ir.Graph) int {
	var in queue.Interner
	have, want := keysOf(&in, p), keysOf(&in, q)
	for i := range have {
		if !queue.Legal(&have[i], &want[i]) {
			return 0
		}
	}
	plan, err := Explore(segmentOf(p), testCaps(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	seg := segmentOf(q)
	if !plan.Check(seg) {
		return 0
	}
	checkPlan(t, q, seg, plan)
	return 1
}

func tooLarge(p *ir.Graph) bool {
	for _, t := range p.Types() {
		if t.Shape.Elems() > 5000 {
			return true
		}
	}
	return false
}
