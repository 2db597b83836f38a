package nn_test

import (
	"math"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/testing/devicetest"
	"github.com/millrace-go/millrace/nn"
	_ "github.com/millrace-go/millrace/runtime/opengl"
	_ "github.com/millrace-go/millrace/runtime/webgpu"
)

// twoLayers is two layers of causal attention.
type twoLayers struct{ First, Second *nn.MultiHeadAttention }

func (m *twoLayers) Forward(c *nn.Ctx, x, padding *tensor) *tensor {
	for _, l := range []*nn.MultiHeadAttention{m.First, m.Second} {
		x = l.Attend(c, x, x, x, nn.Hide{Keys: padding})
	}
	return x
}

// TestPaddingInFront: with padding in front of a text, the first positions see no key. They get no
// mean of values and no gradient. The text's own positions give the same results as without
// padding, and weights stay finite.
func TestPaddingInFront(t *testing.T) {
	const batch, length, dim = 2, 6, 8
	pads := []int{4, 1}
	for _, spec := range []string{"cpu", "cpu:fusion=off", "cpu:tier=0", "cpu:compile=wait,explore=wait", "webgpu", "opengl"} {
		t.Run(spec, func(t *testing.T) {
			d := devicetest.Open(t, spec)
			x := millrace.NormalOn(d, millrace.Float32, 5, batch, length, dim)
			var hidden []bool
			for _, n := range pads {
				for i := range length {
					hidden = append(hidden, i < n)
				}
			}
			padding := millrace.FromSliceOn(d, hidden, batch, length)
			m := &twoLayers{nn.NewMultiHeadAttention(dim, 2, nn.Causal(), nn.Seed(1), nn.On(d)), nn.NewMultiHeadAttention(dim, 2, nn.Causal(), nn.Seed(2), nn.On(d))}
			y := m.Forward(nn.Eval(), x, padding)
			for b, n := range pads {
				rows := []millrace.Range{millrace.R(b, b+1), millrace.R(n, length)}
				alone := values(t, m.Forward(nn.Eval(), x.Slice(rows...), nil))
				for i, v := range values(t, y.Slice(rows...)) {
					if math.Abs(float64(v-alone[i])) > 1e-5 {
						t.Fatalf("text %d, element %d: %v, alone %v", b, i, v, alone[i])
					}
				}
			}
			for range 2 {
				c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true})
				weight := millrace.WhereScalar(padding.Not(), millrace.OnesOn(d, millrace.Float32, batch, length), 0).Unsqueeze(-1)
				watched := autodiff.Watch(x)
				loss := m.Forward(c, watched, padding).Square().Mul(weight).Sum()
				ps, handles := c.Watched()
				grads, err := autodiff.Grad(loss, append(handles, watched)...)
				if err != nil || len(ps) != 8 {
					t.Fatalf("derivatives of %d parameters: %v", len(ps), err)
				}
				for i, g := range grads {
					for k, v := range values(t, g) {
						switch row := k / dim; {
						case math.IsNaN(float64(v)) || math.IsInf(float64(v), 0):
							t.Fatalf("derivative %d, element %d: %v", i, k, v)
						case i == len(ps) && hidden[row] && v != 0:
							t.Fatalf("padding %d has a derivative: %v", row, v)
						}
					}
				}
				for i, p := range ps {
					p.Tensor().Set(p.Tensor().Sub(grads[i].MulScalar(0.1)))
				}
			}
		})
	}
}
