package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// made are a workload's inputs at a small size.
func made(w workload) []input {
	in := w.inputs(shape{3, 5, 16})
	for i := range in {
		in[i].fill(uint64(i))
	}
	return in
}

// rounded is what an exact contestant gives: the oracle's numbers in float32, and
// zeros where it has none.
func rounded(e expected) []float32 {
	y := make([]float32, e.size)
	for i, want := range e.want {
		if e.at != nil {
			y[e.at[i]] = float32(want)
		} else {
			y[i] = float32(want)
		}
	}
	return y
}

// TestTolerances: exact results pass; one element that is off by a thousandth of
// what errors are measured against, no number, or missing does not.
func TestTolerances(t *testing.T) {
	for _, w := range workloads {
		e := w.oracle(made(w))
		y := rounded(e)
		if off := e.furthest(y, w.floor); !(off <= w.tolerance/10) {
			t.Errorf("%s: exact results are off by %g", w.name, off)
		}
		last := len(e.want) - 1
		at := last
		if e.at != nil {
			at = e.at[last]
		}
		against := math.Abs(e.want[last])
		if e.against != nil {
			against = e.against[last]
		}
		for name, v := range map[string]float64{
			"off": e.want[last] + 1e-3*max(against, w.floor), "no number": math.NaN(), "infinite": math.Inf(1),
		} {
			bad := slices.Clone(y)
			bad[at] = float32(v)
			if off := e.furthest(bad, w.floor); off <= w.tolerance {
				t.Errorf("%s: a result that is %s passes", w.name, name)
			}
		}
		if off := e.furthest(y[1:], w.floor); off <= w.tolerance {
			t.Errorf("%s: a result with an element less passes", w.name)
		}
	}
}

// TestSomethingElse: what computes another function of the same name is refused.
func TestSomethingElse(t *testing.T) {
	named := func(name string) workload {
		return workloads[slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })]
	}
	for _, pair := range [][2]string{
		{"gelu", "gelu-tanh"}, {"gelu-tanh", "gelu"}, {"gelu-custom", "gelu-tanh"}, {"softmax", "softmax-middle"}, {"chain", "chain-vary"},
	} {
		w, other := named(pair[0]), named(pair[1])
		in := made(w)
		if off := w.oracle(in).furthest(rounded(other.oracle(in)), w.floor); off <= w.tolerance {
			t.Errorf("%s passes for %s: off by %g", pair[1], pair[0], off)
		}
	}
	w := named("layernorm") // with n-1 in the variance's place of n
	in := made(w)
	e := w.oracle(in)
	y := rounded(e)
	n := float64(in[0].shape[2])
	for i := range y {
		b := float64(in[2].data[i%len(in[2].data)])
		y[i] = float32((e.want[i]-b)*math.Sqrt((n-1)/n) + b)
	}
	if off := e.furthest(y, w.floor); off <= w.tolerance {
		t.Errorf("another variance passes for layernorm: off by %g", off)
	}
}

// TestOracle: a few numbers that are known.
func TestOracle(t *testing.T) {
	x := func(s shape, v ...float32) input { return input{shape: s, data: v} }
	for name, c := range map[string]struct {
		got  expected
		want []float64
	}{
		"gelu":           {elementwise(gelu(math.Erf))([]input{x(shape{2}, 0, 1)}), []float64{0, 0.8413447460685429}},
		"gelu-tanh":      {elementwise(geluTanh)([]input{x(shape{2}, 0, 1)}), []float64{0, 0.8411919906082768}},
		"softmax":        {softmaxOver(2)([]input{x(shape{1, 1, 2}, 0, float32(math.Log(3)))}), []float64{0.25, 0.75}},
		"softmax middle": {softmaxOver(1)([]input{x(shape{1, 2, 2}, 0, 1, 0, 1)}), []float64{0.5, 0.5, 0.5, 0.5}},
		"layernorm": {layerNorm([]input{x(shape{1, 2}, 1, 3), x(shape{2}, 2, 2), x(shape{2}, 1, 1)}),
			[]float64{1 - 2/math.Sqrt(1+layerNormEps), 1 + 2/math.Sqrt(1+layerNormEps)}},
		"sum":     {sumAll([]input{x(shape{3}, 1, -2, 4)}), []float64{3}},
		"sum-0":   {sumFirst([]input{x(shape{2, 2}, 1, 2, 3, -4)}), []float64{4, -2}},
		"product": {product([]input{x(shape{2, 2}, 1, 2, 3, 4), x(shape{2, 2}, 5, 6, 7, 8)}), []float64{19, 22, 43, 50}},
	} {
		if !slices.EqualFunc(c.got.want, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-7 }) {
			t.Errorf("%s: %v, want %v", name, c.got.want, c.want)
		}
	}
	if d := math.Abs(customErf(-0.7) - math.Erf(-0.7)); d > 1.6e-7 || d == 0 {
		t.Errorf("custom erf is off by %g", d)
	}
}

// TestOurs: what is in the repository is built, runs every workload and agrees.
func TestOurs(t *testing.T) {
	t.Setenv("MILLRACE_CACHE", "off")
	var table, errs strings.Builder
	args := []string{"-source", ".", "-only", "millrace, no cgo", "-shape", "3,8,64", "-rounds", "1", "-warmup", "1"}
	if got := run(t.Context(), args, &table, &errs); got != 0 {
		t.Fatalf("exit status %d\n%s\n%s", got, &errs, &table)
	}
	text := table.String()
	if rows := strings.Count(text, "| millrace, no cgo |"); rows != 3 || strings.Contains(text, "| ✗ |") || strings.Contains(text, "| – |") {
		t.Errorf("not all is there (%d rows):\n%s", rows, text)
	}
}
