package progen

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// TestSteps compares the derivatives of steps with differences.
func TestSteps(t *testing.T) {
	for name, p := range map[string]Step{
		"chain": Chain(3, 5), "transformer": Transformer(1, 2, 3, 4),
	} {
		if err := p.Verify(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		values := make([][]byte, len(p.Inputs))
		for i, in := range p.Inputs {
			x := ir.NewDense(in)
			for j := range in.Shape.Elems() {
				x.Set(j, uint64(math.Float32bits(0.7*float32(math.Sin(float64(3*i+j+1))))))
			}
			values[i] = x.Data
		}
		run := func() []*ir.Dense {
			out, err := ir.EvalGraph(p.Graph, values)
			if err != nil {
				t.Fatal(err)
			}
			list := make([]*ir.Dense, len(out))
			for i, id := range p.Outputs {
				list[i] = &ir.Dense{TensorType: p.Types()[id], Data: out[i]}
			}
			return list
		}
		f := func(d *ir.Dense, j int) float64 { return float64(math.Float32frombits(uint32(d.At(j)))) }
		first := run()
		for i := p.Data; i < len(p.Inputs); i++ {
			x := &ir.Dense{TensorType: p.Inputs[i], Data: values[i]}
			was := f(x, 0)
			got := (was - f(first[1+i-p.Data], 0)) / 0.01
			loss := [2]float64{}
			for k, by := range []float64{0.01, -0.01} {
				x.Set(0, uint64(math.Float32bits(float32(was+by))))
				loss[k] = f(run()[0], 0)
			}
			x.Set(0, uint64(math.Float32bits(float32(was))))
			if want := (loss[0] - loss[1]) / 0.02; math.Abs(got-want) > 0.02*(1+math.Abs(want)) {
				t.Errorf("%s, input %d: derivative %g, differences give %g", name, i, got, want)
			}
		}
	}
}
