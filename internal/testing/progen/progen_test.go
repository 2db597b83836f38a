package progen

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// full requests everything.
var full = Config{DTypes: ir.AllDTypes, Groups: AllGroups}

// TestCoverage checks that every program verifies and evaluates, and that every op of the table and
// every tensor dtype occurs if requested.
func TestCoverage(t *testing.T) {
	seen := map[ir.Op]int{}
	dtypes := map[ir.DType]int{}
	features := map[string]int{}
	seeds := uint64(1500)
	for seed := range seeds {
		p := New(seed, full)
		if err := p.Verify(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p)
		}
		if len(p.Outputs) == 0 || len(p.Nodes) < 10 {
			t.Fatalf("seed %d: %d nodes, %d outputs", seed, len(p.Nodes), len(p.Outputs))
		}
		types := p.Types()
		for i := range p.Nodes {
			seen[p.Nodes[i].Op]++
			note(features, &p.Nodes[i], types)
		}
		for _, typ := range types {
			dtypes[typ.DT]++
			switch {
			case len(typ.Shape) == 0:
				features["0-d"]++
			case len(typ.Shape) == ir.MaxRank:
				features["full rank"]++
			}
			if typ.Shape.Elems() == 0 {
				features["empty"]++
			}
			if typ.Shape.Elems() > ir.FoldBlock {
				features["more than a block"]++
			}
		}
		if len(p.Outputs) > 1 {
			features["several outputs"]++
		}
	}
	for op := ir.Op(1); op < ir.NumOps; op++ {
		if c := op.Class(); op.String() != "" && c != ir.ClassPrim && c != ir.ClassNone && seen[op] < 10 {
			t.Errorf("%s came up %d times", op, seen[op])
		}
	}
	for d := ir.Bool; d < ir.NumDTypes; d++ {
		if d.Tensor() && dtypes[d] < 100 {
			t.Errorf("%v came up %d times", d, dtypes[d])
		}
	}
	for _, f := range []string{"0-d", "full rank", "empty", "more than a block", "several outputs", "scalar operand", "backward slice", "reduction past a block"} {
		if features[f] < 5 {
			t.Errorf("%s came up %d times", f, features[f])
		}
	}
}

func note(features map[string]int, n *ir.Node, types []ir.TensorType) {
	for _, a := range n.Args[:n.NArgs] {
		if a.Scalar && n.Op.Class() == ir.ClassElementwise {
			features["scalar operand"]++
		}
	}
	if n.Op == ir.Slice && slices.ContainsFunc(n.Attr.Step, func(s int) bool { return s < 0 }) {
		features["backward slice"]++
	}
	if n.Op.Class() == ir.ClassReduce && n.Shape.Elems() > 0 {
		if types[n.Args[0].ID].Shape.Elems()/n.Shape.Elems() > ir.FoldBlock {
			features["reduction past a block"]++
		}
	}
}

func TestDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		a, b := New(seed, full), New(seed, full)
		if a.String() != b.String() {
			t.Fatalf("seed %d: two programs", seed)
		}
		q, err := ir.ParseGraph(a.String())
		if err != nil {
			t.Fatal(err)
		}
		if q.String() != a.String() {
			t.Fatalf("seed %d: read back as\n%s\nfrom\n%s", seed, q, a)
		}
		x, y := Inputs(a, seed), Inputs(b, seed)
		if !slices.EqualFunc(x, y, func(u, v []byte) bool { return string(u) == string(v) }) {
			t.Fatalf("seed %d: two sets of values", seed)
		}
	}
}

func TestEvaluates(t *testing.T) {
	for seed := range uint64(50) {
		c := Config{Ops: 12}
		if seed%2 == 1 {
			c.DTypes, c.Groups = full.DTypes, full.Groups
		}
		p := New(seed, c)
		out, err := ir.EvalGraph(p, Inputs(p, seed))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, p)
		}
		if len(out) != len(p.Outputs) {
			t.Fatalf("seed %d: %d outputs", seed, len(out))
		}
	}
}

func TestConfig(t *testing.T) {
	c := Config{
		Ops: 30, MaxElems: 100, DTypes: ir.SetOf(ir.Float32, ir.Bool),
		Allow: func(op ir.Op, operand, result ir.DType) bool { return op != ir.Sum },
	}
	for seed := range uint64(100) {
		p := New(seed, c)
		for i, typ := range p.Types() {
			if !c.DTypes.Has(typ.DT) || typ.Shape.Elems() > 100 {
				t.Fatalf("seed %d: tensor %d is %v", seed, i, typ)
			}
		}
		for i := range p.Nodes {
			if p.Nodes[i].Op == ir.Sum {
				t.Fatalf("seed %d: a sum", seed)
			}
		}
	}
}

// TestBasic: programs with the zero Config hold basic ops and dtypes only.
func TestBasic(t *testing.T) {
	for seed := range uint64(200) {
		p := New(seed, Config{})
		for _, typ := range p.Types() {
			if !Basic.Has(typ.DT) {
				t.Fatalf("seed %d: a tensor of %v", seed, typ.DT)
			}
		}
		for i := range p.Nodes {
			if op := p.Nodes[i].Op; groupOf(op) != 0 {
				t.Fatalf("seed %d: %v", seed, op)
			}
		}
	}
}

// TestGroups: each group makes all its ops, often enough for a test of a few hundred programs, and
// no faulty index.
func TestGroups(t *testing.T) {
	for grp := Group(1); grp < AllGroups; grp <<= 1 {
		seen := map[ir.Op]int{}
		for seed := range uint64(150) {
			p := New(seed, Config{Ops: 10, MaxElems: 500, Groups: grp})
			for i := range p.Nodes {
				seen[p.Nodes[i].Op]++
			}
			if seed < 30 || grp >= Gathers {
				if _, err := ir.EvalGraph(p, Inputs(p, seed)); err != nil {
					t.Fatalf("group %b, seed %d: %v\n%s", grp, seed, err, p)
				}
			}
		}
		for op, n := range seen {
			if other := groupOf(op); other != 0 && other != grp {
				t.Errorf("group %b: %v came up %d times", grp, op, n)
			}
		}
		for _, op := range opsOfGroup[grp] {
			if seen[op] < 10 {
				t.Errorf("group %b: %v came up %d times", grp, op, seen[op])
			}
		}
	}
}

func TestShrink(t *testing.T) {
	// The failure: an exp of a value that a mul made.
	fails := func(p *ir.Graph) bool {
		made := make([]ir.Op, len(p.Inputs))
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if n.Op == ir.Exp && made[n.Args[0].ID] == ir.Mul {
				return true
			}
			if n.HasResult() {
				made = append(made, n.Op)
			}
		}
		return false
	}
	found := 0
	for seed := uint64(0); found < 5 && seed < 5000; seed++ {
		p := New(seed, Config{Ops: 30})
		if !fails(p) {
			continue
		}
		found++
		text := p.String()
		q := Shrink(p, fails)
		if !fails(q) || q.Verify() != nil || len(q.Nodes) != 2 || len(q.Outputs) != 1 {
			t.Errorf("seed %d: shrunk to\n%s", seed, q)
		}
		if p.String() != text {
			t.Errorf("seed %d: the program was changed", seed)
		}
	}
	if found < 5 {
		t.Errorf("only %d programs to shrink", found)
	}
}

// TestShrinkOutputs: if two results must stay, the other outputs are removed.
func TestShrinkOutputs(t *testing.T) {
	fails := func(p *ir.Graph) bool {
		seen := map[int32]int{}
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Op == ir.Sum {
				if seen[n.Args[0].ID]++; seen[n.Args[0].ID] == 2 {
					return true
				}
			}
		}
		return false
	}
	found := 0
	for seed := uint64(0); found < 3 && seed < 20000; seed++ {
		p := New(seed, Config{Ops: 30})
		if !fails(p) {
			continue
		}
		found++
		if q := Shrink(p, fails); !fails(q) || len(q.Nodes) > 2 || len(q.Outputs) > 2 || len(q.Inputs) > 1 {
			t.Errorf("seed %d: shrunk to\n%s", seed, q)
		}
	}
	if found < 3 {
		t.Errorf("only %d programs to shrink", found)
	}
}

// FuzzProgram checks that any bytes make a program that verifies and survives printing.
func FuzzProgram(f *testing.F) {
	f.Add([]byte("millrace"))
	for seed := range uint64(4) {
		s := newSeeded(seed, 0)
		b := make([]byte, 200)
		for i := range b {
			b[i] = byte(s.intn(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := FromBytes(data, Config{MaxElems: 200, DTypes: full.DTypes, Groups: full.Groups})
		text := p.String()
		q, err := ir.ParseGraph(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if q.String() != text {
			t.Fatalf("read back as\n%s\nfrom\n%s", q, text)
		}
	})
}

func BenchmarkOracle(b *testing.B) {
	seed := uint64(0)
	for b.Loop() {
		p := New(seed, Config{})
		if _, err := ir.EvalGraph(p, Inputs(p, seed)); err != nil {
			b.Fatal(err)
		}
		seed++
	}
}
