package autodiff_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

// TestThirdOrder: third derivatives are close to differences of second ones. So rules are right
// where they are themselves differentiated.
func TestThirdOrder(t *testing.T) {
	// A device of its own: the plans of so many programs, 40 MB, go with it.
	d := openOneOf(t, "cpu")
	defer d.Close()
	o := autodiff.Options{Follow: true}
	// along is a weighted sum of all elements of all tensors. The weights differ.
	along := func(gs []*T, k float64) *T {
		s := millrace.ZerosOn(d, millrace.Float64)
		for _, g := range gs {
			w := millrace.ArangeOn(d, millrace.Float64, 0, float64(g.Len()), 1).MulScalar(k).Sin().Reshape(g.Shape()...)
			s = s.Add(g.Mul(w).Sum())
		}
		return s
	}
	for _, c := range optable.Grads() {
		t.Run(c.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 3))
			vals := make([][]float64, len(c.Ops))
			for i, op := range c.Ops {
				vals[i] = op.Values(r)
			}
			second := func() (y *T, ws []*T) {
				for _, x := range tensors(c.Ops, vals) {
					ws = append(ws, autodiff.Watch(x.To(d)))
				}
				y = optable.Weigh(c.F(ws))
				for _, k := range []float64{1.3, 0.7} {
					g, err := o.Grad(y, ws...)
					if err != nil {
						t.Fatal(err)
					}
					y = along(g, k)
				}
				return y, ws
			}
			y, ws := second()
			got, err := autodiff.Grad(y, ws...)
			if err != nil {
				t.Fatal(err)
			}
			const h = 1e-5
			for i := range vals {
				if len(vals[i]) == 0 {
					continue
				}
				g, k := values(t, got[i]), r.IntN(len(vals[i])) // one element is enough: each second derivative depends on all
				at := vals[i][k]
				move := func(by float64) float64 {
					vals[i][k] = at + by
					y, _ := second()
					return item(t, y)
				}
				want := (move(h) - move(-h)) / (2 * h)
				if vals[i][k] = at; !(math.Abs(g[k]-want) <= float64(1e-5*max(1, math.Abs(want)))) {
					t.Errorf("operand %d, element %d: %v, by differences %v", i, k, g[k], want)
				}
			}
		})
	}
}
