package apitest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
	"github.com/millrace-go/millrace/ir"
)

// norms are the compositions of the library that keep the shape, along one axis.
func norms() (all []optable.Norm) {
	for _, o := range optable.All() {
		all = append(all, o.Norms...)
	}
	return all
}

func TestNormsAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(6, 1))
		for _, op := range norms() {
			for i, c := range rowCases {
				for axis := range c.shape {
					for j, dt := range floats {
						if j > 0 && (i+j+axis)%3 != 0 || op.Full && c.shape[axis] == 0 {
							continue
						}
						given := axis - len(c.shape)*(i%2)
						trial{name: fmt.Sprint(op.Name, " along ", given), operands: []operandOf{{real(rng, c.shape...), dt}}, dt: dt, tol: 4 * tolerance(dt),
							call: func(x []*tensor) *tensor { return op.Call(x[0], given) },
							want: func(a []array) array { return a[0].mapped([]int{axis}, op.Of) }}.run(t, dev)
					}
				}
			}
		}
		for _, dt := range floats {
			for _, c := range [][][]int{{{4, 6}, {6}, {1}}, {{2, 3, 6}, {3, 6}, {2, 1, 6}}, {{0, 6}, {6}, {6}}} {
				for _, axes := range [][]int{nil, {-1}, {0}, {0, 1}} {
					axis := resolved(axes, len(c[0]))
					if axes == nil {
						axis = []int{len(c[0]) - 1}
					}
					affine := func(a []array, f func([]float64) []float64, bias bool) array {
						n := a[0].mapped(axis, f)
						return made(n.shape, func(at []int) float64 {
							x := n.get(at...) * a[1].cast(at)
							if bias {
								x += a[2].cast(at)
							}
							return x
						})
					}
					ops := []operandOf{{real(rng, c[0]...), dt}, {real(rng, c[1]...), dt}, {real(rng, c[2]...), dt}}
					trial{name: fmt.Sprint("layernorm over ", axes), operands: ops, dt: dt, tol: 8 * tolerance(dt),
						call: func(x []*tensor) *tensor { return x[0].LayerNorm(x[1], x[2], 1e-3, axes...) },
						want: func(a []array) array { return affine(a, optable.Named("Tensor.LayerNorm").Norms[0].Of, true) }}.run(t, dev)
					trial{name: fmt.Sprint("rmsnorm over ", axes), operands: ops[:2], dt: dt, tol: 8 * tolerance(dt),
						call: func(x []*tensor) *tensor { return x[0].RMSNorm(x[1], 1e-3, axes...) },
						want: func(a []array) array { return affine(a, optable.Named("Tensor.RMSNorm").Norms[0].Of, false) }}.run(t, dev)
				}
			}
		}
	})
}

// TestSoftmaxOfSpecials: infinities and NaN pass through softmax as documented.
func TestSoftmaxOfSpecials(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		x := array{[]int{5, 3}, []float64{1, -inf, 1, inf, 0, 0, nan, 0, 0, -inf, -inf, -inf, 1e30, -1e30, 0}}
		for _, c := range []struct {
			name string
			call func(t *tensor) *tensor
			want array
		}{
			{"softmax", func(t *tensor) *tensor { return t.Softmax(1) }, array{[]int{5, 3}, []float64{.5, 0, .5, nan, nan, nan, nan, nan, nan, nan, nan, nan, 1, 0, 0}}},
			{"maskedsoftmax", func(t *tensor) *tensor { return t.MaskedSoftmax(nil, 1) }, array{[]int{5, 3}, []float64{.5, 0, .5, nan, nan, nan, nan, nan, nan, 0, 0, 0, 1, 0, 0}}},
			{"maskedlogsoftmax", func(t *tensor) *tensor { return t.MaskedLogSoftmax(nil, 1) }, array{[]int{5, 3}, []float64{-math.Ln2, -inf, -math.Ln2, nan, nan, nan, nan, nan, nan, -inf, -inf, -inf, 0, -2e30, -1e30}}},
			{"logsumexp", func(t *tensor) *tensor { return t.LogSumExp(-1) }, array{[]int{5}, []float64{1 + math.Ln2, inf, nan, -inf, 1e30}}},
		} {
			trial{name: c.name, operands: []operandOf{{x, ir.Float32}}, dt: ir.Float32, tol: 1e-6,
				call: func(x []*tensor) *tensor { return c.call(x[0]) },
				want: func([]array) array { return c.want }}.run(t, dev)
		}
	})
}

// around adds the ops that a model has before and after: a scale, then a bias and a residual.
func around(f func(t *tensor) *tensor) func(x, bias *tensor) *tensor {
	return func(x, bias *tensor) *tensor {
		return f(x.MulScalar(0.5)).Add(bias).Add(x)
	}
}

// oneKernel runs f once for its plan, then once more, in a scope. It checks for one launch that
// wrote only the result, and no memory except operands and result afterwards.
func oneKernel(t *testing.T, dev *millrace.Device, name string, f func() *tensor) {
	t.Helper()
	for pass := range 2 {
		before := dev.Stats()
		var r *tensor
		err := dev.Scope(func(sc *millrace.Scope) error {
			r = sc.Keep(f())
			return r.Eval()
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		after := dev.Stats()
		if n := after.Runtime.Launches - before.Runtime.Launches; n != 1 {
			why := r.Explain()
			if i := strings.Index(why, "\n\n"); i > 0 {
				why = why[:i]
			}
			t.Errorf("%s, pass %d: %d kernels, want 1\n%s", name, pass+1, n, why)
		}
		size := int64(r.Len() * r.DType().Size())
		// Sizes are rounded up to the pool's classes.
		if n := after.Runtime.AllocBytes - before.Runtime.AllocBytes; n > size+size/4+64 {
			t.Errorf("%s, pass %d: %d bytes more than before, the result has %d", name, pass+1, n, size)
		}
		r.Release()
		if err := dev.Sync(context.Background()); err != nil {
			t.Error(err)
		}
		if n := dev.Stats().Runtime.AllocBytes - before.Runtime.AllocBytes; n > 0 {
			t.Errorf("%s, pass %d: %d bytes are left", name, pass+1, n)
		}
	}
}

// TestRowsAreOneKernel: row compositions are one kernel along any axis, with the ops before and
// after, written by hand or by the library's method.
func TestRowsAreOneKernel(t *testing.T) {
	for _, spec := range []string{"ref", "cpu:tier=0", "cpu:tier=0,fusion=greedy"} {
		t.Run(spec, func(t *testing.T) {
			dev := openSpec(t, spec)
			x := millrace.UniformOn(dev, millrace.Float32, 1, 6, 10, 20)
			inMemory(t, x)
			for axis := range 3 {
				shape := []int{1, 1, 1}
				shape[axis] = x.Dim(axis)
				bias := millrace.UniformOn(dev, millrace.Float32, 2, shape...)
				inMemory(t, bias)
				for _, op := range norms() {
					for how, f := range map[string]func(t *tensor, axis int) *tensor{"method": op.Call, "by hand": op.Hand} {
						name := fmt.Sprint(op.Name, " along ", axis, " ", how)
						oneKernel(t, dev, name, func() *tensor { return f(x, axis) })
						oneKernel(t, dev, name+" with neighbours", func() *tensor {
							return around(func(t *tensor) *tensor { return f(t, axis) })(x, bias)
						})
					}
				}
				for name, f := range map[string]func(t *tensor) *tensor{
					"logsumexp": func(t *tensor) *tensor { return t.LogSumExp(axis) },
					"var":       func(t *tensor) *tensor { return t.Var(1, axis) },
					"std":       func(t *tensor) *tensor { return t.Std(0, axis) },
					"mean":      func(t *tensor) *tensor { return t.Mean(axis) },
					"norm2":     func(t *tensor) *tensor { return t.Norm2(axis) },
				} {
					oneKernel(t, dev, fmt.Sprint(name, " along ", axis), func() *tensor { return f(x) })
					oneKernel(t, dev, fmt.Sprint(name, " along ", axis, " with neighbours"), func() *tensor {
						return f(x.MulScalar(2)).AddScalar(1).Unsqueeze(axis).Mul(x)
					})
				}
				oneKernel(t, dev, "layernorm with weight and bias", func() *tensor { return x.LayerNorm(bias, bias, 1e-5, axis) })
			}
		})
	}
}

func TestCrossEntropyAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(6, 2))
		for i, shape := range [][]int{{7}, {5, 7}, {2, 3, 300}, {0, 4}, {1, 2, 1, 2, 1, 2, 1, 3}} {
			for j, dt := range floats {
				n := shape[len(shape)-1]
				trial{name: "crossentropy", dt: dt, tol: 4 * tolerance(dt),
					operands: []operandOf{{real(rng, shape...), dt}, {natural(rng, n, shape[:len(shape)-1]...), []ir.DType{ir.Int32, ir.Int64}[(i+j)%2]}},
					call:     func(x []*tensor) *tensor { return millrace.CrossEntropy(x[0], x[1]) },
					want: func(a []array) array {
						return made(shape[:len(shape)-1], func(at []int) float64 {
							row := make([]float64, n)
							for k := range row {
								row[k] = a[0].get(append(slices.Clone(at), k)...)
							}
							return optable.Named("Tensor.LogSumExp").Reductions[0].Of(row) - row[int(a[1].get(at...))]
						})
					}}.run(t, dev)
			}
		}
		x := real(rng, 8, 30).tensor(dev, ir.Float32)
		y := natural(rng, 30, 8).tensor(dev, ir.Int32)
		inMemory(t, x, y)
		oneKernel(t, dev, "crossentropy", func() *tensor { return millrace.CrossEntropy(x, y) })
		oneKernel(t, dev, "crossentropy of scaled logits", func() *tensor { return millrace.CrossEntropy(x.MulScalar(0.5), y).AddScalar(1) })
	})
}
