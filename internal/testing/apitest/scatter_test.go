package apitest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
	"github.com/millrace-go/millrace/ir"
)

func TestScatterAgainstLoops(t *testing.T) {
	combine := []struct {
		how millrace.Combine
		f   func(old, x float64) float64
	}{
		{millrace.CombineSet, func(_, x float64) float64 { return x }},
		{millrace.CombineAdd, func(old, x float64) float64 { return old + x }},
		{millrace.CombineMax, optable.Larger},
		{millrace.CombineMin, optable.Smaller},
		{millrace.CombineMul, func(old, x float64) float64 { return old * x }},
	}
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(5, 3))
		for i, c := range []struct {
			shape, idx []int
			axis       int
		}{
			{[]int{5}, []int{3}, 0},
			{[]int{5}, []int{40}, -1},
			{[]int{300}, []int{5000}, 0},
			{[]int{7, 300}, []int{90, 300}, 0},
			{[]int{5, 4}, []int{9, 4}, 0},
			{[]int{5, 4}, []int{5, 2}, 1},
			{[]int{2, 3, 4}, []int{2, 6, 4}, -2},
			{[]int{5, 4}, []int{0, 4}, 0},
			{[]int{3, 0}, []int{2, 0}, 0},
		} {
			for m, mode := range modes {
				for j, dt := range every {
					if j != 0 && (i+j+m)%4 != 0 {
						continue
					}
					for _, op := range combine {
						if dt == ir.Bool && op.how != millrace.CombineSet || op.how == millrace.CombineMul && c.idx[0] >= 40 {
							continue
						}
						axis := (c.axis + len(c.shape)) % len(c.shape)
						n := c.shape[axis]
						values := func(shape []int) array {
							if dt == ir.Bool {
								return truths(rng, shape...)
							}
							return natural(rng, 3, shape...)
						}
						trial{name: fmt.Sprint("scatter along ", c.axis, " mode ", mode, " by ", op.how), dt: dt,
							operands: []operandOf{{values(c.shape), dt}, {indices(rng, n, mode, c.idx...), []ir.DType{ir.Int32, ir.Int64}[j%2]}, {values(c.idx), dt}},
							call:     func(x []*tensor) *tensor { return x[0].Scatter(x[1], x[2], c.axis, op.how, mode) },
							want: func(a []array) array {
								r := array{a[0].shape, slices.Clone(a[0].v)}
								each(c.idx, func(at []int) {
									if p := place(a[1].get(at...), n, mode); p >= 0 {
										q := with(at, axis, p)
										r.set(op.f(r.get(q...), a[2].get(at...)), q...)
									}
								})
								return r
							}}.run(t, dev)
					}
				}
			}
		}
	})
}

// TestPutAgainstLoops: indices of any rank, each naming a slice.
func TestPutAgainstLoops(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		rng := rand.New(rand.NewPCG(5, 4))
		for i, c := range []struct {
			shape, idx, u []int
			axis          int
		}{
			{[]int{5}, []int{3}, []int{3}, 0},
			{[]int{5, 4}, []int{7}, []int{7, 4}, 0},
			{[]int{5, 4}, []int{7}, []int{4}, 0},
			{[]int{5, 4}, []int{2, 3}, []int{5, 2, 3}, -1},
			{[]int{5, 4, 3}, []int{2, 2, 2}, []int{2, 1, 2, 3}, 1},
			{[]int{5, 4}, []int{}, []int{4}, 0},
			{[]int{5, 4}, []int{}, []int{}, 1},
			{[]int{5, 4}, []int{0}, []int{5, 0}, 1},
			{[]int{5, 0}, []int{3}, []int{}, 0},
			{[]int{2, 1, 2, 1, 2, 1, 2, 3}, []int{4}, []int{4}, 7},
		} {
			for m, mode := range modes {
				axis := (c.axis + len(c.shape)) % len(c.shape)
				n := c.shape[axis]
				dt := every[(i*3+m)%len(every)]
				set := (i+m)%2 == 0 || dt == ir.Bool
				full := slices.Concat(c.shape[:axis], c.idx, c.shape[axis+1:])
				trial{name: fmt.Sprint("put along ", c.axis, " mode ", mode), dt: dt,
					operands: []operandOf{{few(rng, dt, c.shape...).atMost(20), dt}, {indices(rng, n, mode, c.idx...), []ir.DType{ir.Int32, ir.Int64}[m%2]}, {few(rng, dt, c.u...).atMost(9), dt}},
					call: func(x []*tensor) *tensor {
						if set {
							return x[0].IndexSet(x[1], x[2], c.axis, mode)
						}
						return x[0].IndexAdd(x[1], x[2], c.axis, mode)
					},
					want: func(a []array) array {
						r := array{a[0].shape, slices.Clone(a[0].v)}
						each(full, func(at []int) {
							p := place(a[1].get(at[axis:axis+len(c.idx)]...), n, mode)
							if p < 0 {
								return
							}
							q := slices.Concat(at[:axis], []int{p}, at[axis+len(c.idx):])
							v := a[2].cast(at)
							if !set {
								v += r.get(q...)
							}
							r.set(v, q...)
						})
						return r
					}}.run(t, dev)
			}
		}
	})
}

// atMost keeps sums in the range of any dtype.
func (a array) atMost(n float64) array {
	for i := range a.v {
		a.v[i] = min(a.v[i], n)
	}
	return a
}

// TestScatterBroadcasts: shapes to which operands broadcast.
func TestScatterBroadcasts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *millrace.Device) {
		x := millrace.ZerosOn(dev, millrace.Float32, 2, 3)
		for _, c := range []struct{ idx, u []int }{{[]int{4, 3}, nil}, {[]int{4, 1}, []int{3}}, {[]int{1, 1}, []int{4, 1}}, {[]int{4, 3}, []int{1, 3}}, {[]int{1, 3}, []int{4, 3}}} {
			idx, u := millrace.OnesOn(dev, millrace.Int32, c.idx...), millrace.OnesOn(dev, millrace.Float32, c.u...)
			v, err := millrace.Values[float32](x.ScatterAdd(idx, u, 0))
			if err != nil || !slices.Equal(v, []float32{0, 0, 0, 4, 4, 4}) {
				t.Errorf("indices %v, updates %v: %v, %v", c.idx, c.u, v, err)
			}
		}
	})
}

// TestScatterInPlace: a scatter into a tensor without further readers needs only its own kernel and
// no memory, and computes updates and indices in it. A tensor with other readers is not
// overwritten.
func TestScatterInPlace(t *testing.T) {
	for _, spec := range []string{"cpu:tier=0", "ref"} {
		dev := openSpec(t, spec)
		idx := millrace.FromSliceOn(dev, []int32{7, 3, 7})
		u := millrace.OnesOn(dev, millrace.Float32, 3, 64)
		x := millrace.ZerosOn(dev, millrace.Float32, 1000, 64)
		inMemory(t, idx, u, x)
		before := dev.Stats()
		kept := x.IndexAdd(idx, u, 0)
		if err := kept.Eval(); err != nil {
			t.Fatal(err)
		}
		if s := dev.Stats(); s.InPlace != before.InPlace {
			t.Errorf("%s: in the place of what is kept", spec)
		}
		before = dev.Stats()
		y := x.IndexAdd(idx.RemScalar(5), u.MulScalar(0.5), 0)
		x.Release()
		if err := y.Eval(); err != nil {
			t.Fatal(err)
		}
		after := dev.Stats()
		if n := after.InPlace - before.InPlace; n != 1 {
			t.Errorf("%s: %d in place", spec, n)
		}
		if n := after.Kernels - before.Kernels; n != 1 {
			t.Errorf("%s: %d kernels", spec, n)
		}
		if n := after.Runtime.BytesWritten - before.Runtime.BytesWritten; spec != "ref" && n > 4*3*64 {
			t.Errorf("%s: %d bytes written", spec, n)
		}
		v, err := millrace.Values[float32](y)
		if err != nil || v[2*64] != 1 || v[3*64+5] != 0.5 || v[4*64] != 0 {
			t.Errorf("%s: %v, %v", spec, err, v[2*64:4*64:4*64])
		}
	}
}

// TestScatterOrder: sums of floats have one order, on any number of threads.
func TestScatterOrder(t *testing.T) {
	n, rows := 20000, 50
	for _, spec := range []string{"cpu:tier=0,threads=1", "cpu:tier=0,threads=2", "cpu:tier=0,threads=5", "cpu:compile=wait,threads=3"} {
		dev := openSpec(t, spec)
		for _, d := range []int{1, 24} {
			idx := millrace.ArangeOn(dev, millrace.Int32, 0, float64(n), 1).MulScalar(7919).RemScalar(float64(rows))
			u := millrace.NormalOn(dev, millrace.Float32, 5, n, d).Exp()
			got, err := millrace.Values[float32](millrace.OnesOn(dev, millrace.Float32, rows, d).IndexAdd(idx, u, 0))
			if err != nil {
				t.Fatal(err)
			}
			values, _ := millrace.Values[float32](u)
			want := make([]float32, rows*d)
			for i := range want {
				want[i] = 1
			}
			for i := range n {
				for j := range d {
					want[i*7919%rows*d+j] += values[i*d+j]
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: not the sums in order", spec)
			}
		}
	}
}
