package apitest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
	"github.com/millrace-go/millrace/ir"
)

// windowsOver is the number of windows in n elements.
func windowsOver(w millrace.Window, n int) int {
	c := 0
	for start := -w.Before; start+(w.Size-1)*max(w.Dilation, 1) < n+w.After; start += max(w.Stride, 1) {
		c++
	}
	return c
}

// pooled reduces the existing elements of every window.
func pooled(a array, ws []millrace.Window, f func(row []float64) float64) array {
	first := len(a.shape) - len(ws)
	shape, inner := slices.Clone(a.shape), slices.Repeat([]int{1}, len(a.shape))
	for i, w := range ws {
		shape[first+i], inner[first+i] = windowsOver(w, a.shape[first+i]), w.Size
	}
	return made(shape, func(o []int) float64 {
		var row []float64
		each(inner, func(in []int) {
			p := slices.Clone(o)
			for i, w := range ws {
				d := first + i
				if p[d] = o[d]*max(w.Stride, 1) + in[d]*max(w.Dilation, 1) - w.Before; p[d] < 0 || p[d] >= a.shape[d] {
					return
				}
			}
			row = append(row, a.get(p...))
		})
		return f(row)
	})
}

var pools = []struct {
	shape []int
	ws    []millrace.Window
}{
	{[]int{9}, []millrace.Window{{Size: 3}}},
	{[]int{9}, []millrace.Window{{Size: 3, Stride: 2, Before: 1, After: 2}}},
	{[]int{9}, []millrace.Window{{Size: 3, Stride: 3, Dilation: 2}}},
	{[]int{2, 3, 6, 7}, []millrace.Window{{Size: 2, Stride: 2}, {Size: 3, Stride: 2, Before: 1, After: 1}}},
	{[]int{2, 3, 6, 7}, []millrace.Window{{Size: 1}, {Size: 2}}},
	{[]int{2, 6, 7}, []millrace.Window{{Size: 2}, {Size: 1}, {Size: 2, Dilation: 3}}},
	{[]int{4}, []millrace.Window{{Size: 2, Stride: 1, Before: 3}}},
	{[]int{4}, []millrace.Window{{Size: 1}}},
	{[]int{4, 3}, nil},
	{[]int{2, 1, 2, 1, 2, 1, 5, 4}, []millrace.Window{{Size: 2}, {Size: 3, Stride: 2, Before: 1}}},
	{[]int{2, 4, 4, 4, 4}, []millrace.Window{{Size: 2}, {Size: 2}, {Size: 3}}},
	{[]int{0, 5}, []millrace.Window{{Size: 2}}},
	{[]int{2, 0}, []millrace.Window{{Size: 2, Before: 1, After: 1}}},
}

func TestPoolsAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(3, 1))
		for i, c := range pools {
			for _, op := range []struct {
				name string
				call func(t *tensor, ws ...millrace.Window) *tensor
				of   func(row []float64) float64
				avg  bool
			}{
				{"sums", func(t *tensor, ws ...millrace.Window) *tensor { return t.ReduceWindow(millrace.ReduceSum, ws...) }, optable.FoldBy(0, func(a, b float64) float64 { return a + b }), false},
				{"products", func(t *tensor, ws ...millrace.Window) *tensor { return t.ReduceWindow(millrace.ReduceProd, ws...) }, optable.FoldBy(1, func(a, b float64) float64 { return a * b }), false},
				{"maxpool", (*tensor).MaxPool, nil, false},
				{"minima", func(t *tensor, ws ...millrace.Window) *tensor { return t.ReduceWindow(millrace.ReduceMin, ws...) }, nil, false},
				{"avgpool", (*tensor).AvgPool, optable.Named("Tensor.Mean").Reductions[0].Of, true},
			} {
				for j, dt := range numbers {
					if j > 0 && (i+j)%4 != 0 || op.avg && !dt.IsFloat() {
						continue
					}
					of, tol := op.of, 0.0
					lowest, highest := math.Inf(-1), math.Inf(1)
					if dt.IsInt() {
						lowest, highest = limits(dt)
					}
					switch op.name {
					case "maxpool":
						of = optable.FoldBy(lowest, optable.Larger)
					case "minima":
						of = optable.FoldBy(highest, optable.Smaller)
					case "avgpool":
						tol = tolerance(dt)
					}
					trial{name: fmt.Sprint(op.name, " ", c.ws), operands: []operandOf{{valuesFor(rng, dt, c.shape...), dt}}, dt: dt, tol: tol,
						call: func(x []*tensor) *tensor { return op.call(x[0], slices.Clone(c.ws)...) },
						want: func(a []array) array { return pooled(a[0], c.ws, of) }}.run(t, dev)
				}
			}
		}
	})
}

func limits(dt ir.DType) (lo, hi float64) {
	if !dt.IsSigned() {
		return 0, math.Nextafter(math.Ldexp(1, dt.Bits()), 0)
	}
	return -math.Ldexp(1, dt.Bits()-1), math.Nextafter(math.Ldexp(1, dt.Bits()-1), 0)
}

func TestWindowsAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(3, 2))
		for _, w := range []millrace.Window{{Size: 1}, {Size: 3}, {Size: 2, Stride: 3}, {Size: 2, Dilation: 4, Before: 2, After: 1}, {Size: 9}, {Size: 7, Stride: 2}} {
			for axis := range 3 {
				for _, dt := range []ir.DType{ir.Float32, ir.Bool, ir.Uint8, ir.Float16} {
					trial{name: fmt.Sprintf("windows %+v along %d", w, axis), operands: []operandOf{{natural(rng, 2, 5, 6, 7), dt}}, dt: dt,
						call: func(x []*tensor) *tensor { return x[0].Windows(axis-3, w, 1) },
						want: func(a []array) array {
							n := a[0].shape[axis]
							shape := slices.Insert(slices.Clone(a[0].shape), axis+1, w.Size)
							shape[axis] = windowsOver(w, n)
							return made(shape, func(o []int) float64 {
								p := o[axis]*max(w.Stride, 1) + o[axis+1]*max(w.Dilation, 1) - w.Before
								if p < 0 || p >= n {
									return 1
								}
								return a[0].get(with(slices.Delete(slices.Clone(o), axis+1, axis+2), axis, p)...)
							})
						}}.run(t, dev)
				}
			}
		}
	})
}

// option is one option for every spatial dimension, with the defaults filled in.
func option(list []int, i, otherwise int) int {
	if len(list) == 0 {
		return otherwise
	}
	return list[i]
}

// convolved is the correlation by loops, two spatial dimensions.
func convolved(x, k array, o millrace.ConvOptions) array {
	spatial := len(x.shape) - 2
	groups := max(o.Groups, 1)
	shape := []int{x.shape[0], k.shape[0]}
	ws := make([]millrace.Window, spatial)
	for i := range ws {
		ws[i] = millrace.Window{Size: k.shape[2+i], Stride: option(o.Stride, i, 1), Dilation: option(o.Dilation, i, 1)}
		if len(o.Padding) > 0 {
			ws[i].Before, ws[i].After = o.Padding[i][0], o.Padding[i][1]
		}
		shape = append(shape, windowsOver(ws[i], x.shape[2+i]))
	}
	per := k.shape[0] / groups
	return made(shape, func(at []int) float64 {
		s := 0.0
		each(k.shape[1:], func(in []int) {
			p := []int{at[0], at[1]/per*k.shape[1] + in[0]}
			for i, w := range ws {
				j := at[2+i]*w.Stride + in[1+i]*w.Dilation - w.Before
				if j < 0 || j >= x.shape[2+i] {
					return
				}
				p = append(p, j)
			}
			s += x.get(p...) * k.get(append([]int{at[1]}, in...)...)
		})
		return s
	})
}

// convolvedBack adds the contributions of each element of x to their positions.
func convolvedBack(x, k array, o millrace.ConvOptions) array {
	spatial := len(x.shape) - 2
	groups := max(o.Groups, 1)
	per := k.shape[1]
	shape := []int{x.shape[0], per * groups}
	before := make([]int, spatial)
	for i := range spatial {
		n := (x.shape[2+i]-1)*option(o.Stride, i, 1) + (k.shape[2+i]-1)*option(o.Dilation, i, 1) + 1 + option(o.OutputPadding, i, 0)
		if len(o.Padding) > 0 {
			before[i] = o.Padding[i][0]
			n -= o.Padding[i][0] + o.Padding[i][1]
		}
		shape = append(shape, n)
	}
	r := newArray(shape...)
	each(x.shape, func(at []int) {
		group := at[1] / (x.shape[1] / groups)
		each(k.shape[1:], func(in []int) {
			p := []int{at[0], group*per + in[0]}
			for i := range spatial {
				j := at[2+i]*option(o.Stride, i, 1) + in[1+i]*option(o.Dilation, i, 1) - before[i]
				if j < 0 || j >= shape[2+i] {
					return
				}
				p = append(p, j)
			}
			r.set(r.get(p...)+x.get(at...)*k.get(append([]int{at[1]}, in...)...), p...)
		})
	})
	return r
}

func TestConvAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(3, 3))
		for i, c := range []struct {
			x, k []int
			o    millrace.ConvOptions
		}{
			{[]int{2, 3, 9}, []int{4, 3, 3}, millrace.ConvOptions{}},
			{[]int{2, 4, 9}, []int{6, 2, 3}, millrace.ConvOptions{Stride: []int{2}, Padding: [][2]int{{1, 2}}, Groups: 2}},
			{[]int{2, 3, 6, 7}, []int{4, 3, 3, 3}, millrace.ConvOptions{Padding: [][2]int{{1, 1}, {1, 1}}}},
			{[]int{1, 4, 6, 7}, []int{4, 1, 2, 3}, millrace.ConvOptions{Groups: 4, Stride: []int{1, 2}, Dilation: []int{3, 2}}},
			{[]int{2, 3, 4, 5}, []int{2, 3, 1, 1}, millrace.ConvOptions{}},
			{[]int{2, 3, 4, 5}, []int{2, 3, 4, 5}, millrace.ConvOptions{}},
			{[]int{0, 3, 4, 5}, []int{2, 3, 2, 2}, millrace.ConvOptions{}},
			{[]int{2, 0, 4, 5}, []int{2, 0, 2, 2}, millrace.ConvOptions{}},
			{[]int{2, 3, 4, 5}, []int{0, 3, 2, 2}, millrace.ConvOptions{}},
			{[]int{1, 1, 3}, []int{1, 1, 2}, millrace.ConvOptions{Padding: [][2]int{{4, 0}}}},
		} {
			for j, dt := range numbers {
				if j > 0 && (i+j)%5 != 0 || dt.Bits() == 8 {
					continue
				}
				trial{name: fmt.Sprintf("conv %+v", c.o), operands: []operandOf{{valuesFor(rng, dt, c.x...), dt}, {valuesFor(rng, dt, c.k...), dt}}, dt: dt,
					call: func(x []*tensor) *tensor { return x[0].Conv(x[1], c.o) },
					want: func(a []array) array { return convolved(a[0], a[1], c.o) }}.run(t, dev)
			}
		}
		for i, c := range []struct {
			x, k []int
			o    millrace.ConvOptions
		}{
			{[]int{2, 3, 5}, []int{3, 4, 3}, millrace.ConvOptions{}},
			{[]int{2, 4, 5}, []int{4, 3, 3}, millrace.ConvOptions{Stride: []int{2}, Padding: [][2]int{{1, 1}}, Groups: 2, OutputPadding: []int{1}}},
			{[]int{2, 3, 4, 5}, []int{3, 2, 3, 2}, millrace.ConvOptions{Stride: []int{2, 3}, Dilation: []int{2, 1}}},
			{[]int{1, 2, 4, 5}, []int{2, 2, 1, 2}, millrace.ConvOptions{Padding: [][2]int{{1, 0}, {2, 1}}}},
			{[]int{0, 2, 4, 5}, []int{2, 2, 1, 2}, millrace.ConvOptions{}},
			{[]int{0, 2, 4, 5}, []int{2, 2, 3, 2}, millrace.ConvOptions{Stride: []int{2, 2}}},
			{[]int{2, 2, 4, 5}, []int{2, 3, 3, 3}, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{1, 1}, {1, 1}}, OutputPadding: []int{1, 1}}},
			{[]int{2, 2, 4, 5}, []int{2, 3, 3, 3}, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{1, 1}, {1, 1}}}},
			{[]int{2, 2, 4, 3}, []int{2, 3, 4, 2}, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{1, 1}, {0, 0}}}},
			{[]int{2, 4, 3, 3}, []int{4, 2, 4, 4}, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{2, 1}, {0, 0}}, Groups: 2}},
			{[]int{2, 3, 3}, []int{3, 2, 12}, millrace.ConvOptions{Stride: []int{6}, Padding: [][2]int{{4, 7}}}},
			{[]int{2, 3, 4, 4}, []int{3, 2, 1, 1}, millrace.ConvOptions{Stride: []int{2, 3}, OutputPadding: []int{1, 2}}},
			{[]int{2, 3, 5}, []int{3, 2, 3}, millrace.ConvOptions{Stride: []int{4}, Dilation: []int{6}, Padding: [][2]int{{5, 1}}}},
			{[]int{2, 3, 5}, []int{3, 2, 4}, millrace.ConvOptions{Stride: []int{4}, Dilation: []int{2}}},
			{[]int{2, 3, 1, 1}, []int{3, 2, 3, 5}, millrace.ConvOptions{Stride: []int{5, 2}, Padding: [][2]int{{1, 0}, {2, 2}}}},
			{[]int{2, 3, 2}, []int{3, 2, 2}, millrace.ConvOptions{Stride: []int{3}, Padding: [][2]int{{2, 2}}}},
			{[]int{2, 0, 2, 3}, []int{0, 2, 3, 3}, millrace.ConvOptions{Stride: []int{2, 2}}},
			{[]int{2, 2, 3, 2, 4}, []int{2, 3, 2, 3, 2}, millrace.ConvOptions{}},
			{[]int{1, 4, 3, 4, 2}, []int{4, 3, 3, 2, 3}, millrace.ConvOptions{Stride: []int{2, 1, 3}, Padding: [][2]int{{1, 2}, {0, 1}, {1, 1}}, Groups: 2, OutputPadding: []int{1, 0, 2}}},
			{[]int{2, 2, 4, 3, 3}, []int{2, 2, 3, 2, 2}, millrace.ConvOptions{Stride: []int{3, 2, 2}, Dilation: []int{2, 3, 1}, Padding: [][2]int{{2, 0}, {1, 1}, {0, 0}}}},
			{[]int{1, 2, 2, 2, 2}, []int{2, 1, 1, 1, 1}, millrace.ConvOptions{Stride: []int{5, 4, 4}, Padding: [][2]int{{1, 3}, {0, 0}, {0, 0}}}},
			{[]int{1, 2, 3, 2, 2}, []int{2, 2, 4, 4, 4}, millrace.ConvOptions{Stride: []int{2, 2, 2}, Padding: [][2]int{{1, 1}, {1, 1}, {1, 1}}}},
			{[]int{1, 2, 2, 2, 2}, []int{2, 1, 3, 1, 1}, millrace.ConvOptions{Stride: []int{6, 1, 1}, Dilation: []int{4, 1, 1}, Padding: [][2]int{{8, 6}, {0, 0}, {0, 0}}}},
			{[]int{0, 2, 2, 2, 2}, []int{2, 1, 2, 2, 2}, millrace.ConvOptions{}},
		} {
			for j, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Int32, ir.BFloat16} {
				if j > 0 && (i+j)%2 != 0 {
					continue
				}
				trial{name: fmt.Sprintf("convtranspose %+v", c.o), operands: []operandOf{{valuesFor(rng, dt, c.x...), dt}, {valuesFor(rng, dt, c.k...), dt}}, dt: dt,
					call: func(x []*tensor) *tensor { return x[0].ConvTranspose(x[1], c.o) },
					want: func(a []array) array { return convolvedBack(a[0], a[1], c.o) }}.run(t, dev)
			}
		}
	})
}

// TestExtremeWindowsAlongAxes: maxima and minima of windows are taken along one axis after another,
// and for small windows by comparing elements. They have the same bits as whole windows, including
// NaN, zeros of both signs and padding.
func TestExtremeWindowsAlongAxes(t *testing.T) {
	rng := rand.New(rand.NewPCG(40, 2))
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e-40}
	for _, spec := range []string{"cpu:tier=0", "cpu:compile=wait", "cpu:denormals=flush"} {
		dev := openSpec(t, spec)
		for i, dt := range numbers {
			for j, ws := range [][]millrace.Window{
				{{Size: 9, Stride: 3}, {Size: 9, Stride: 3}},
				{{Size: 5, Before: 2, After: 2}, {Size: 7, Before: 3, After: 1}},
				{{Size: 4, Dilation: 2, Before: 1}, {Size: 1}, {Size: 6, Stride: 2, After: 3}},
				{{Size: 3}, {Size: 3}, {Size: 4}},
				{{Size: 2, Stride: 2}, {Size: 2, Stride: 2}},
				{{Size: 3, Stride: 2, Before: 1, After: 1}, {Size: 3, Stride: 2, Before: 1, After: 1}},
				{{Size: 13}, {Size: 17, Before: 3, After: 2}},
			} {
				if spec != "cpu:tier=0" && (i+j)%3 > 0 {
					continue
				}
				shape := []int{2, 14, 13, 15}
				data := make([]float64, 2*14*13*15)
				for at := range data {
					data[at] = float64(rng.IntN(50))
					if dt.IsFloat() && rng.IntN(8) == 0 {
						data[at] = special[rng.IntN(len(special))]
					}
				}
				wide := millrace.FromSliceOn(dev, data, shape...)
				x := wide.Cast(dt)
				inMemory(t, x)
				for how, edge := range map[millrace.Reduction]float64{millrace.ReduceMax: math.Inf(-1), millrace.ReduceMin: math.Inf(1)} {
					if !dt.IsFloat() {
						edge = 0 // these have no padding here
						if j == 1 || j == 2 || j > 4 {
							continue
						}
					}
					got := x.ReduceWindow(how, ws...)
					v, inside := x, []int(nil)
					for k, w := range ws {
						axis := len(shape) - len(ws) + k + len(inside)
						v = v.Windows(axis, w, edge)
						inside = append(inside, axis+1)
					}
					want := v.Max(inside...)
					if how == millrace.ReduceMin {
						want = v.Min(inside...)
					}
					differ := got.Bitcast(bitsOf(dt)).Ne(want.Bitcast(bitsOf(dt)))
					if n, err := millrace.Item[bool](differ.Any()); err != nil || n {
						t.Errorf("%s: %v, windows %+v: other bits; %v", spec, dt, ws, err)
					}
				}
			}
		}
	}
}

// BenchmarkMaxPool takes the maxima of 9x9 windows at a stride of 3, of 64 images.
func BenchmarkMaxPool(b *testing.B) {
	dev, err := millrace.Open("cpu")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	x := millrace.NormalOn(dev, millrace.Float32, 1, 4, 16, 128, 128)
	if err := x.Eval(); err != nil {
		b.Fatal(err)
	}
	w := millrace.Window{Size: 9, Stride: 3}
	benchTensor(b, dev, "9by3", func() *millrace.Tensor { return x.MaxPool(w, w) })
}

// BenchmarkResize doubles the height and width of images, as PyTorch's interpolate does.
func BenchmarkResize(b *testing.B) {
	dev, err := millrace.Open("cpu")
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	x := millrace.NormalOn(dev, millrace.Float32, 1, 8, 3, 256, 256)
	if err := x.Eval(); err != nil {
		b.Fatal(err)
	}
	opt := millrace.ResizeOptions{Mode: millrace.ResizeLinear}
	benchTensor(b, dev, "linear", func() *millrace.Tensor { return millrace.Resize(x, opt, 512, 512) })
}
