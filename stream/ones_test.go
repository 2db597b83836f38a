package stream

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/plancache"
)

// batched are programs on a batch of n rows of three elements. Their forms differ for a batch of
// one.
var batched = map[string]func(e *env, n int) *Value{
	"elementwise": func(e *env, n int) *Value { return add(e, mul(e, rowsOf(e, n), 2), 1) },
	"bias": func(e *env, n int) *Value {
		b := e.host(e.place(), ir.Shape{1, 3}, 10, 20, 30)
		return e.op(ir.Add, t1(e.op(ir.Mul, t1(rowsOf(e, n)), t1(b))), t1(b))
	},
	"rows": func(e *env, n int) *Value {
		x := rowsOf(e, n)
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{1}, Keep: true}, t1(x))
		return e.op(ir.Sub, t1(x), t1(sum))
	},
	"over the batch": func(e *env, n int) *Value {
		x := rowsOf(e, n)
		sum := e.record(ir.Sum, nil, &ir.Attr{Axes: []int{0}, Keep: true}, t1(mul(e, x, 3)))
		return e.op(ir.Div, t1(x), t1(sum))
	},
	"with a release": func(e *env, n int) *Value {
		x := rowsOf(e, n)
		y := mul(e, x, 3)
		z := e.op(ir.Add, t1(y), t1(x))
		Release(y)
		return e.op(ir.Sqrt, t1(z))
	},
	"turned": func(e *env, n int) *Value {
		x := add(e, rowsOf(e, n), 1)
		return mul(e, e.record(ir.Permute, nil, &ir.Attr{Axes: []int{1, 0}}, t1(x)), 2)
	},
	"equal scalars": func(e *env, n int) *Value {
		x := rowsOf(e, n)
		return e.op(ir.Add, t1(e.op(ir.Erf, t1(mul(e, x, 2)))), t1(e.op(ir.Erf, t1(mul(e, x, 2)))))
	},
}

func rowsOf(e *env, n int) *Value {
	vals := make([]float32, 3*n)
	for i := range vals {
		vals[i] = float32(i%5) + 0.5
	}
	return e.host(e.place(), ir.Shape{n, 3}, vals...)
}

func bytesOf(t *testing.T, v *Value) []byte {
	t.Helper()
	b := make([]byte, 4*v.Shape().Elems())
	if err := Read(v, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// A plan recorded with a larger batch comes from a bundle. It serves a batch of one that runs
// first, and then any other batch. The values are the same as without the bundle.
func TestOnesFromABundle(t *testing.T) {
	for name, f := range batched {
		t.Run(name, func(t *testing.T) {
			data := bundleOf(t, func(e *env) { bytesOf(t, f(e, 4)) })
			e := open(t)
			use(t, e.d, data)
			for _, n := range []int{1, 1, 7, 4, 1} {
				fresh := open(t)
				want := bytesOf(t, f(fresh, n))
				if got := bytesOf(t, f(e, n)); !slices.Equal(got, want) {
					t.Errorf("batch of %d: %x, want %x", n, got, want)
				}
			}
			s := e.d.Stats()
			if s.Explorations != 0 || s.Cache.Bundled != 1 || s.Cache.Refused != 0 || s.Fallbacks != 0 || s.PlanHits != s.Segments {
				t.Errorf("%d explorations, %d of %d segments hit, %+v", s.Explorations, s.PlanHits, s.Segments, s.Cache)
			}
		})
	}
}

// The text of a stored plan states sizes. They are used only if the ops allow them and the plan
// serves the segment. Other texts are refused or have no effect, and no value changes.
func TestHostileOnes(t *testing.T) {
	refused, explored := int64(0), int64(0)
	for name, f := range batched {
		data := bundleOf(t, func(e *env) { bytesOf(t, f(e, 4)) })
		want := bytesOf(t, f(open(t), 1))
		var lines []string
		edited(t, data, func(e *plancache.Entry) { lines = strings.SplitAfter(string(e.Value), "\n") })
		for i, line := range lines {
			for _, by := range []string{"", strings.ReplaceAll(line, "4", "1"), strings.ReplaceAll(line, "3", "4"), strings.ReplaceAll(line, "%1", "%0"),
				strings.ReplaceAll(line, "(4,3)", "(1099511627776,1099511627776)"), strings.ReplaceAll(line, "mul", "add"), strings.ReplaceAll(line, "0", "1")} {
				if by == line {
					continue
				}
				e := open(t)
				use(t, e.d, edited(t, data, func(e *plancache.Entry) {
					e.Value = []byte(strings.Join(lines[:i], "") + by + strings.Join(lines[i+1:], ""))
				}))
				if got := bytesOf(t, f(e, 1)); !slices.Equal(got, want) {
					t.Errorf("%s: with %q for %q: %x, want %x", name, by, line, got, want)
				}
				s := e.d.Stats()
				refused += s.Cache.Refused
				explored += s.Explorations
			}
		}
	}
	if refused < 50 || explored < refused {
		t.Errorf("%d refused, %d explored", refused, explored)
	}
}

// The trie may have the plan and not find it, because the form of another program leads to
// another node. The segment is then explored once.
func TestOnesBesideAnotherForm(t *testing.T) {
	data := bundleOf(t, func(e *env) { bytesOf(t, batched["elementwise"](e, 4)) })
	e := open(t)
	use(t, e.d, data)
	e.want(mul(e, e.host(e.place(), ir.Shape{1, 3}, 1, 2, 3), 3), 3, 6, 9)
	before := e.d.Stats().Explorations
	for range 4 {
		bytesOf(t, batched["elementwise"](e, 1))
	}
	if n := e.d.Stats().Explorations - before; n > 1 {
		t.Errorf("%d explorations", n)
	}
}

// withOnes returns a program in which all dimensions of the given size are 1. It returns nil if
// its ops do not allow that.
func withOnes(p *ir.Graph, size int) *ir.Graph {
	ones := func(s ir.Shape) ir.Shape {
		s = slices.Clone(s)
		for i := range s {
			if s[i] == size {
				s[i] = 1
			}
		}
		return s
	}
	q := &ir.Graph{Scalars: p.Scalars, Outputs: p.Outputs, Nodes: slices.Clone(p.Nodes), Inputs: slices.Clone(p.Inputs)}
	for i := range q.Inputs {
		q.Inputs[i].Shape = ones(q.Inputs[i].Shape)
	}
	for i := range q.Nodes {
		q.Nodes[i].Shape = ones(q.Nodes[i].Shape)
	}
	if q.Verify() != nil {
		return nil
	}
	return q
}

// Random programs are recorded at their sizes, and then run with 1 in place of one of these
// sizes. With and without the bundle they give the oracle's bits.
func TestRandomOnes(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 20
	}
	ran, bundled, explored, refused := 0, int64(0), int64(0), int64(0)
	for seed := range uint64(n) {
		p := progen.New(seed, progen.Config{Ops: 10, Groups: groups[seed%2]})
		for _, in := range p.Inputs {
			for _, size := range in.Shape {
				q := withOnes(p, size)
				if size < 2 || q == nil {
					continue
				}
				first := open(t)
				runSeeded(t, first.d, p, seed)
				var data bytes.Buffer
				if err := exportOf(&data, planstore.PlanFilter{}, []*Device{first.d}); err != nil {
					continue // all tensors are empty
				}
				e := open(t, func(o *device.Options) { o.Check = seed%3 == 0 })
				use(t, e.d, data.Bytes())
				runSeeded(t, e.d, q, seed)
				s := e.d.Stats()
				ran++
				bundled += s.Cache.Bundled
				explored += s.Explorations
				refused += s.Cache.Refused
			}
		}
	}
	t.Logf("%d programs: %d plans from bundles, %d explorations, %d refused", ran, bundled, explored, refused)
	if ran < n || explored > bundled/5 || refused > bundled/50 {
		t.Error("too few plans served")
	}
}

// runSeeded runs a program; the seed determines its inputs, reads, syncs and scopes.
func runSeeded(t *testing.T, d *Device, p *ir.Graph, seed uint64) {
	t.Helper()
	inputs := progen.Inputs(p, seed)
	want, err := ir.EvalGraph(p, inputs)
	if err != nil {
		return // other tests check errors at record time
	}
	if err := runOnce(d, p, inputs, want, rand.New(rand.NewPCG(seed, 7))); err != nil {
		t.Errorf("seed %d: %v\n%v", seed, err, p)
	}
}
