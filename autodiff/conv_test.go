package autodiff_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// TestConvMemory: derivatives of convolutions and pools write no unfolded windows. The memory in
// use is a few times the image, not as many times as a window has elements, and there are few
// kernels.
func TestConvMemory(t *testing.T) {
	const image = 4 * 8 * 24 * 24 * 4 // bytes
	for _, c := range []struct {
		name    string
		f       func(x, k *T) *T
		images  float64 // largest memory in use beside the operands, in images
		kernels int64
	}{
		{"conv", func(x, k *T) *T {
			return x.Conv(k, millrace.ConvOptions{Padding: [][2]int{{2, 2}, {2, 2}}}).Square()
		}, 3.2, 7},
		{"stride", func(x, k *T) *T {
			return x.Conv(k, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{2, 2}, {2, 2}}}).Square()
		}, 5.5, 12},
		{"maxpool", func(x, k *T) *T {
			return x.MaxPool(millrace.Window{Size: 5, Stride: 2, Before: 2, After: 2}, millrace.Window{Size: 5, Stride: 2, Before: 2, After: 2}).Square().Sum().Mul(k.Sum())
		}, 8, 20},
		{"avgpool", func(x, k *T) *T {
			return x.AvgPool(millrace.Window{Size: 5, Stride: 2, Before: 2, After: 2}, millrace.Window{Size: 5, Stride: 2, Before: 2, After: 2}).Square().Sum().Mul(k.Sum())
		}, 8, 20},
		{"maxpool3", func(x, k *T) *T {
			return x.MaxPool(millrace.Window{Size: 3, Stride: 2, Before: 1, After: 1}, millrace.Window{Size: 3, Stride: 2, Before: 1, After: 1}).Square().Sum().Mul(k.Sum())
		}, 5.4, 20},
	} {
		d := open(t, "cpu:tier=0,threads=1,explore=wait,cache=off")
		x := millrace.NormalOn(d, millrace.Float32, 1, 4, 8, 24, 24)
		k := millrace.NormalOn(d, millrace.Float32, 2, 8, 8, 5, 5)
		var peak float64
		var kernels int64
		for range 2 {
			for _, v := range []*T{x, k} {
				if err := v.Eval(); err != nil {
					t.Fatal(err)
				}
			}
			d.ResetPeak()
			before := d.Stats()
			_, g, err := autodiff.ValueAndGrad(func(in []*T) *T { return c.f(in[0], in[1]).Sum() }, x, k)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.DefaultStream().Sync(context.Background()); err != nil {
				t.Fatal(err)
			}
			for _, v := range g {
				if err := v.Eval(); err != nil {
					t.Fatal(err)
				}
			}
			after := d.Stats()
			peak, kernels = float64(after.Runtime.PeakBytes-before.Runtime.AllocBytes)/image, after.Kernels-before.Kernels
			for _, v := range g {
				v.Release()
			}
		}
		t.Logf("%s: %.2f images, %d kernels", c.name, peak, kernels)
		if peak > c.images || kernels > c.kernels {
			t.Errorf("%s: %.2f images in memory, %d kernels; %.1f and %d are enough", c.name, peak, kernels, c.images, c.kernels)
		}
	}
}

// TestTakeMemory: for every batch size the derivative of an embedding scatters into one table, not
// into one table per text that are then summed.
func TestTakeMemory(t *testing.T) {
	d := open(t, "cpu:explore=wait,compile=off")
	const rows, width, batch, length = 500, 16, 20, 6
	ids := make([]int32, batch*length)
	for i := range ids {
		ids[i] = int32(i * 37 % rows)
	}
	w := autodiff.Watch(millrace.UniformOn(d, millrace.Float32, 1, rows, width))
	w.Eval()
	x := millrace.FromSliceOn(d, ids, batch, length)
	d.ResetPeak()
	g, err := autodiff.Grad(w.Take(x, 0).Square().Sum(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := g[0].Eval(); err != nil {
		t.Fatal(err)
	}
	// The table, zeros, and the sum, which does not overwrite the zeros because an index may be out
	// of range.
	table, reads := int64(4*rows*width), int64(4*batch*length*width)
	if peak := d.Stats().Runtime.PeakBytes; peak > 3*table+4*reads {
		t.Errorf("%d bytes at once: %.1f tables", peak, float64(peak)/float64(table))
	}
}

// TestConvKernelsBothWays: if the derivative by the input is needed too, the derivative by the
// kernels is computed from windows of the result's derivative, else from windows of the input. Both
// are the same sums in another order.
func TestConvKernelsBothWays(t *testing.T) {
	d := open(t, "cpu:tier=0,threads=1,cache=off")
	r := rand.New(rand.NewPCG(3, 14))
	for range 60 {
		dims, groups := 1+r.IntN(2), 1+r.IntN(2)
		opt := millrace.ConvOptions{Groups: groups}
		x, k := []int{1 + r.IntN(3), groups * (1 + r.IntN(3))}, []int{groups * (1 + r.IntN(3))}
		k = append(k, x[1]/groups)
		for range dims {
			size, dilation := 1+r.IntN(4), 1+r.IntN(2)
			reach := (size - 1) * dilation
			x, k = append(x, reach+1+r.IntN(6)), append(k, size)
			opt.Dilation = append(opt.Dilation, dilation)
			opt.Padding = append(opt.Padding, [2]int{r.IntN(reach + 2), r.IntN(reach + 2)})
			if stride := 1 + r.IntN(4); stride < 3 {
				opt.Stride = append(opt.Stride, stride)
			}
		}
		if len(opt.Stride) < dims {
			opt.Stride = nil
		}
		in := []*T{millrace.NormalOn(d, millrace.Float64, r.Uint64(), x...), millrace.NormalOn(d, millrace.Float64, r.Uint64(), k...)}
		values := func(f func(x, k *T) *T, by int, of ...*T) []float64 {
			_, g, err := autodiff.ValueAndGrad(func(w []*T) *T {
				if len(w) == 1 {
					w = []*T{in[0], w[0]}
				}
				return f(w[0], w[1]).Sum()
			}, of...)
			if err != nil {
				t.Fatalf("%v by %v, %+v: %v", x, k, opt, err)
			}
			v, err := millrace.Values[float64](g[by])
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		f := func(x, k *T) *T { return x.Conv(k, opt).Square() }
		both, alone := values(f, 1, in...), values(f, 0, in[1])
		for i := range both {
			if math.Abs(both[i]-alone[i]) > 1e-12*(1+math.Abs(alone[i])) {
				t.Fatalf("%v by %v, %+v: element %d of the kernels' derivative is %v, and %v by the input's windows", x, k, opt, i, both[i], alone[i])
			}
		}
	}
}
