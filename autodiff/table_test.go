package autodiff

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// TestEveryOp: every op that a program can record has a rule, or a reason for having none.
func TestEveryOp(t *testing.T) {
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		if info.Name == "" || op.Class() == ir.ClassPrim {
			continue
		}
		r := rules[op]
		switch {
		case r == nil:
			t.Errorf("%s has neither a rule nor a reason", info.Name)
		case (r.back == nil) == (r.none == ""):
			t.Errorf("%s needs a rule or a reason, not both", info.Name)
		}
	}
}

// TestScatterKeeps: a scatter keeps only what its kind needs.
func TestScatterKeeps(t *testing.T) {
	at := millrace.FromSlice([]int32{0, 2})
	for how, want := range map[millrace.Combine]keeps{
		millrace.CombineAdd: operand1, millrace.CombineSet: operand1,
		millrace.CombineMul: operand1 | operand2, millrace.CombineMax: operand0 | operand1 | operand2 | result,
	} {
		x := Watch(millrace.FromSlice([]float64{1, 2, 3}))
		n := linkOf(x.Scatter(at, millrace.FromSlice([]float64{4, 5}), 0, how))
		var got keeps
		for i, k := range n.kept {
			if k != nil {
				got |= operand0 << i
			}
		}
		if got != want {
			t.Errorf("%v: keeps %b, want %b", how, got, want)
		}
	}
}

// TestFactorsKept: a factor is kept only if the other factor is followed, for its derivative.
func TestFactorsKept(t *testing.T) {
	vec, image := []int{6}, []int{1, 1, 6}
	for name, c := range map[string]struct {
		shape []int
		f     func(x, y *tensor) *tensor
	}{
		"mul":           {vec, (*tensor).Mul},
		"matmul":        {vec, (*tensor).MatMul},
		"conv":          {image, func(x, y *tensor) *tensor { return x.Conv(y, millrace.ConvOptions{}) }},
		"convtranspose": {image, func(x, y *tensor) *tensor { return x.ConvTranspose(y, millrace.ConvOptions{}) }},
	} {
		x, y := millrace.Ones(millrace.Float64, c.shape...), millrace.Ones(millrace.Float64, c.shape...)
		wx, wy := Watch(x), Watch(y)
		for i, r := range []*tensor{c.f(wx, y), c.f(x, wy), c.f(wx, wy)} {
			n := linkOf(r).node
			got := [2]bool{n.kept[0] != nil, n.kept[1] != nil}
			if want := [][2]bool{{false, true}, {true, false}, {true, true}}[i]; got != want {
				t.Errorf("%s: keeps %v, want %v", name, got, want)
			}
		}
	}
}

// TestGraphForgotten: a loss that is kept after Grad keeps nothing of the graph.
func TestGraphForgotten(t *testing.T) {
	w := Watch(millrace.FromSlice([]float64{1, 2, 3}))
	loss := w.Exp().Mul(w).Sum()
	if n := len(nodesOf(loss)); n != 4 {
		t.Errorf("%d nodes before", n)
	}
	if _, err := Grad(loss, w); err != nil {
		t.Fatal(err)
	}
	if n := len(nodesOf(loss)); n != 1 {
		t.Errorf("%d nodes behind it", n)
	}
}

// TestPartsSideBySide: derivatives of parts of one tensor are joined, not written each into zeros
// of its own.
func TestPartsSideBySide(t *testing.T) {
	const parts, width = 50, 100
	d, err := millrace.Open("cpu:cache=off,compile=off,explore=wait")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	w := Watch(millrace.UniformOn(d, millrace.Float32, 1, parts*width))
	if err := w.Eval(); err != nil {
		t.Fatal(err)
	}
	var sum *tensor
	for i := range parts {
		y := w.Slice(millrace.R(i*width, (i+1)*width)).MulScalar(float64(i + 1)).Sum()
		if sum == nil {
			sum = y
			continue
		}
		sum = sum.Add(y)
	}
	before := d.Stats()
	g, err := Grad(sum, w)
	if err != nil {
		t.Fatal(err)
	}
	v, err := millrace.Values[float32](g[0])
	if err != nil {
		t.Fatal(err)
	}
	after := d.Stats()
	for i, x := range v {
		if x != float32(i/width+1) {
			t.Fatalf("element %d: %v", i, x)
		}
	}
	if n, size := after.Runtime.BytesWritten-before.Runtime.BytesWritten, int64(4*parts*width); n > 6*size {
		t.Errorf("%d bytes written for a derivative of %d", n, size)
	}
}
