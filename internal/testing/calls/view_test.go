package calls_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

func values[T millrace.Element](t *testing.T, x *tensor) []T {
	t.Helper()
	v, err := millrace.Values[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRanges compares every range over small dimensions with the positions that a plain Go loop
// finds by Python's rules.
func TestRanges(t *testing.T) {
	dev := openCPU(t, "cpu")
	bounds := []int{0, 1, 2, 3, 4, 5, 9, -1, -2, -3, -4, -5, -9, millrace.End}
	for n := range 5 {
		x := millrace.ArangeOn(dev, millrace.Int32, 0, float64(n), 1)
		if err := x.Eval(); err != nil {
			t.Fatal(err)
		}
		for _, start := range bounds {
			for _, stop := range bounds {
				for _, step := range []int{1, 2, 3, 7, -1, -2, -7, 1 << 62, -1 << 63} {
					r := millrace.R(start, stop, step)
					y := x.Slice(r)
					got := values[int32](t, y)
					if want := pythonRange(n, start, stop, step); !slices.Equal(got, want) || y.Dim(0) != len(want) {
						t.Errorf("[0:%d][%v]: got %v, want %v", n, r, got, want)
					}
					y.Release()
				}
			}
		}
	}
}

// pythonRange counts positions one by one; End stands for an omitted bound.
func pythonRange(n, start, stop, step int) []int32 {
	if start < 0 {
		start += n
	}
	if stop < 0 {
		stop += n
		if stop < 0 {
			stop = -1
		}
	} else if stop == millrace.End && step < 0 {
		stop = -1
	}
	if step > 0 {
		start = max(start, 0)
	} else {
		start = min(start, n-1)
	}
	list := []int32{}
	for i := start; i >= 0 && i < n && (step > 0 && i < stop || step < 0 && i > stop); i += step {
		list = append(list, int32(i))
	}
	return list
}

// TestViews checks views of views at every stage of a tensor's life: recorded, computed inside a
// kernel, in memory.
func TestViews(t *testing.T) {
	all, r, at := millrace.All, millrace.R, millrace.At
	for _, c := range []struct {
		name  string
		view  func(x *tensor) *tensor // of shape (2,3): 0 1 2 3 4 5
		shape []int
		want  []int32
	}{
		{"reshape", func(x *tensor) *tensor { return x.Reshape(3, 2) }, []int{3, 2}, []int32{0, 1, 2, 3, 4, 5}},
		{"reshape -1", func(x *tensor) *tensor { return x.Reshape(1, -1) }, []int{1, 6}, []int32{0, 1, 2, 3, 4, 5}},
		{"transpose", func(x *tensor) *tensor { return x.T() }, []int{3, 2}, []int32{0, 3, 1, 4, 2, 5}},
		{"permute", func(x *tensor) *tensor { return x.Permute(-1, 0) }, []int{3, 2}, []int32{0, 3, 1, 4, 2, 5}},
		{"reshape of a transpose", func(x *tensor) *tensor { return x.T().Reshape(2, 3) }, []int{2, 3}, []int32{0, 3, 1, 4, 2, 5}},
		{"slice", func(x *tensor) *tensor { return x.Slice(all, r(1, 3)) }, []int{2, 2}, []int32{1, 2, 4, 5}},
		{"slice backwards", func(x *tensor) *tensor { return x.Slice(r(-1, millrace.End, -1), r(2, millrace.End, -2)) }, []int{2, 2}, []int32{5, 3, 2, 0}},
		{"position", func(x *tensor) *tensor { return x.Slice(at(1)) }, []int{3}, []int32{3, 4, 5}},
		{"element", func(x *tensor) *tensor { return x.Slice(at(-1), at(-1)) }, nil, []int32{5}},
		{"nothing", func(x *tensor) *tensor { return x.Slice(all, r(2, 1)) }, []int{2, 0}, nil},
		{"slice of a slice", func(x *tensor) *tensor { return x.Slice(all, r(1, 3)).Slice(at(1), r(1, 2)) }, []int{1}, []int32{5}},
		{"expand", func(x *tensor) *tensor { return x.Slice(at(0)).Expand(2, 3) }, []int{2, 3}, []int32{0, 1, 2, 0, 1, 2}},
		{"expand a middle dim", func(x *tensor) *tensor { return x.Unsqueeze(1).Expand(2, 2, 3) }, []int{2, 2, 3}, []int32{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
		{"flip", func(x *tensor) *tensor { return x.Flip() }, []int{2, 3}, []int32{5, 4, 3, 2, 1, 0}},
		{"flip one", func(x *tensor) *tensor { return x.Flip(-1) }, []int{2, 3}, []int32{2, 1, 0, 5, 4, 3}},
		{"flip of a transpose", func(x *tensor) *tensor { return x.T().Flip(0) }, []int{3, 2}, []int32{2, 5, 1, 4, 0, 3}},
		{"unsqueeze", func(x *tensor) *tensor { return x.Unsqueeze(-1) }, []int{2, 3, 1}, []int32{0, 1, 2, 3, 4, 5}},
		{"squeeze", func(x *tensor) *tensor { return x.Reshape(1, 6, 1).Squeeze() }, []int{6}, []int32{0, 1, 2, 3, 4, 5}},
		{"squeeze one", func(x *tensor) *tensor { return x.Reshape(1, 6, 1).Squeeze(-1) }, []int{1, 6}, []int32{0, 1, 2, 3, 4, 5}},
		{"squeeze nothing", func(x *tensor) *tensor { return x.Squeeze() }, []int{2, 3}, []int32{0, 1, 2, 3, 4, 5}},
		{"sum", func(x *tensor) *tensor { return x.Sum() }, nil, []int32{15}},
		{"sum of rows", func(x *tensor) *tensor { return x.Sum(1) }, []int{2}, []int32{3, 12}},
		{"sum of columns", func(x *tensor) *tensor { return x.SumKeep(0) }, []int{1, 3}, []int32{3, 5, 7}},
		{"sum of both", func(x *tensor) *tensor { return x.SumKeep(1, 0) }, []int{1, 1}, []int32{15}},
		{"sum of 0-d", func(x *tensor) *tensor { return x.Sum().Sum() }, nil, []int32{15}},
		{"sum of nothing", func(x *tensor) *tensor { return x.Slice(r(0, 0)).Sum(0) }, []int{3}, []int32{0, 0, 0}},
		{"max", func(x *tensor) *tensor { return x.Neg().Max() }, nil, []int32{0}},
		{"max of a transpose", func(x *tensor) *tensor { return x.T().Max(0) }, []int{2}, []int32{2, 5}},
		{"max kept", func(x *tensor) *tensor { return x.Sub(x.MaxKeep(-1)) }, []int{2, 3}, []int32{-2, -1, 0, -2, -1, 0}},
		{"max of nothing over another axis", func(x *tensor) *tensor { return x.Slice(r(0, 0)).Max(1) }, []int{0}, nil},
		{"to the eighth", func(x *tensor) *tensor { return x.Reshape(1, 1, 2, 1, 1, 3, 1, 1).T() }, []int{1, 1, 3, 1, 1, 2, 1, 1}, []int32{0, 3, 1, 4, 2, 5}},
		{"powers", func(x *tensor) *tensor { return x.PowInt(1).Add(x.PowInt(2)).Add(x.PowInt(7)).Sub(x.PowInt(0)) }, []int{2, 3}, []int32{-1, 2, 133, 2198, 16403, 78154}},
	} {
		for _, stage := range []string{"recorded", "computed", "ready"} {
			t.Run(c.name+"/"+stage, func(t *testing.T) {
				dev := openCPU(t, "cpu")
				x := millrace.FromSliceOn(dev, []int32{0, 1, 2, 3, 4, 5}, 2, 3)
				switch stage {
				case "recorded":
					x = millrace.ArangeOn(dev, millrace.Int32, 0, 6, 1).Reshape(2, 3)
				case "computed":
					x = x.AddScalar(1).SubScalar(1)
				}
				y := c.view(x)
				if fmt.Sprint(y.Shape()) != fmt.Sprint(c.shape) || y.DType() != millrace.Int32 {
					t.Errorf("%v%v, want %v; %v", y.DType(), y.Shape(), c.shape, y.Err())
				}
				if got := values[int32](t, y); !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
				if got := values[int32](t, y.AddScalar(1)); len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0]+1 {
					t.Errorf("as an operand: got %v, want %v plus 1", got, c.want)
				}
				if got := values[int32](t, x); !slices.Equal(got, []int32{0, 1, 2, 3, 4, 5}) {
					t.Errorf("the operand changed: %v", got)
				}
			})
		}
	}
}

// TestCreation checks creation in every dtype, and of empty tensors.
func TestCreation(t *testing.T) {
	f32, f64, i32, i64, u8, b := millrace.Float32, millrace.Float64, millrace.Int32, millrace.Int64, millrace.Uint8, millrace.Bool
	for _, c := range []struct {
		got  *tensor
		want string
	}{
		{millrace.Zeros(f32, 2), "[0. 0.]"},
		{millrace.Ones(i64, 1, 2), "[[1 1]]"},
		{millrace.Ones(b, 2), "[ True  True]"},
		{millrace.Zeros(b), "False"},
		{millrace.Full(u8, 255, 2), "[255 255]"},
		{millrace.Full(f64, 0.1), "0.1"},
		{millrace.Full(i32, -7, 0), "[]"},
		{millrace.Zeros(f32, 0, 1<<40), "[]"},
		{millrace.Scalar(int64(1) << 62), "4611686018427387904"},
		{millrace.Scalar(true), "True"},
		{millrace.FromSlice([]float32{}), "[]"},
		{millrace.FromSlice([]uint8(nil), 0, 3), "[]"},
		{millrace.FromSlice([]float32{5}, []int{}...), "5.0"},
		{millrace.Arange(i32, 0, 5, 1), "[0 1 2 3 4]"},
		{millrace.Arange(i32, 5, 0, -2), "[5 3 1]"},
		{millrace.Arange(u8, 250, 256, 1), "[250 251 252 253 254 255]"},
		{millrace.Arange(u8, 3, -1, -1), "[3 2 1 0]"},
		{millrace.Arange(i64, 5, 5, 1), "[]"},
		{millrace.Arange(i64, 5, 0, 1), "[]"},
		{millrace.Arange(f64, 0, 1, 0.25), "[0.   0.25 0.5  0.75]"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	shape := []int{2, 2}
	x := millrace.Zeros(f32, shape...)
	shape[0] = 7
	x.Shape()[0] = 9
	data := []float32{1, 2, 3, 4}
	y := millrace.FromSlice(data, 2, 2)
	data[0] = 100
	if got := y.Add(x).String(); got != "[[1. 2.]\n [3. 4.]]" {
		t.Errorf("memory is shared with the caller: %s", got)
	}
}

// TestRandom checks that random numbers depend only on seed and position, and have the right
// distribution.
func TestRandom(t *testing.T) {
	for _, dt := range []millrace.DType{millrace.Float32, millrace.Float64} {
		const n = 1 << 14
		u := millrace.Uniform(dt, 7, n).Cast(millrace.Float64)
		z := millrace.Normal(dt, 7, n).Cast(millrace.Float64)
		for _, c := range []struct {
			name     string
			stat     *tensor
			mean, by float64
		}{
			{"mean of uniform", u.Sum(), 0.5, 0.01},
			{"square of uniform", u.Mul(u).Sum(), 1.0 / 3, 0.01},
			{"mean of normal", z.Sum(), 0, 0.03},
			{"square of normal", z.Mul(z).Sum(), 1, 0.05},
			{"fourth power of normal", z.PowInt(4).Sum(), 3, 0.35},
		} {
			v, err := millrace.Item[float64](c.stat.DivScalar(n))
			if err != nil || v < c.mean-c.by || v > c.mean+c.by {
				t.Errorf("%v: %s is %v, want %v ± %v: %v", dt, c.name, v, c.mean, c.by, err)
			}
		}
		for _, other := range []*tensor{millrace.Uniform(dt, 8, n), millrace.Uniform(dt, 7+1<<32, n)} {
			same, err := millrace.Item[float64](other.Cast(millrace.Float64).Eq(u).Cast(millrace.Float64).Sum())
			if err != nil || same > n/100 {
				t.Errorf("%v: another seed repeats %v of %d draws: %v", dt, same, n, err)
			}
		}
		part, err := millrace.Equal(millrace.Uniform(dt, 7, 128, 128).Reshape(n).Cast(millrace.Float64), u)
		if err != nil || !part {
			t.Errorf("%v: another shape of the same positions differs: %v", dt, err)
		}
	}
}
