package gomlxbackend

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// axes makes a shape of float32: numbers are sizes, texts names of axes.
func axes(list ...any) shapes.Shape {
	s := shapes.Shape{DType: dtypes.Float32}
	for _, a := range list {
		name, d := "", shapes.DynamicDim
		switch a := a.(type) {
		case int:
			d = a
		case string:
			name = a
		}
		s.Dimensions, s.AxisNames = append(s.Dimensions, d), append(s.AxisNames, name)
	}
	return s
}

// ramp is a buffer of small numbers.
func ramp(b *Backend, dims ...int) compute.Buffer {
	flat := make([]float32, product(dims))
	for i := range flat {
		flat[i] = float32(i*7%23)/8 - 1
	}
	return must(b.BufferFromFlatData(0, flat, shapes.Make(dtypes.Float32, dims...)))
}

func floatsOf(t *testing.T, buf compute.Buffer) ([]float32, shapes.Shape) {
	t.Helper()
	s := must(buf.Shape())
	flat := make([]float32, s.Size())
	if err := buf.ToFlatData(flat); err != nil {
		t.Fatal(err)
	}
	return flat, s
}

// encoder is a layer of a transformer, of sequences of vectors of 16.
func encoder(b *Backend, x shapes.Shape) compute.Executable {
	type value = compute.Value
	bd := b.Builder("encoder")
	f := bd.Main()
	in := must(f.Parameter("x", x, nil))
	w := must(f.Parameter("w", axes(16, 16), nil))
	weights := make([]float32, 16*8)
	for i := range weights {
		weights[i] = float32(i%5) / 16
	}
	out := must(f.Constant(weights, 16, 8))
	contract := func(a value, ai, ab []int, c value, ci, cb []int) value {
		return must(f.DotGeneral(a, ai, ab, c, ci, cb, compute.DotGeneralConfig{}))
	}
	h := contract(must(f.FusedLayerNorm(in, []int{2}, 1e-5, nil, nil)), []int{2}, nil, w, []int{0}, nil)
	scores := must(f.Mul(contract(h, []int{2}, []int{0}, in, []int{2}, []int{0}), must(f.Constant([]float32{0.25}))))
	mixed := contract(must(f.FusedSoftmax(scores, 2)), []int{2}, []int{0}, in, []int{1}, []int{0})
	sum := must(f.Add(mixed, in))
	flat := must(f.DynamicReshape(sum, compute.DynamicDimensionSpec{Name: "rows"}, compute.DynamicDimensionSpec{Static: 16}))
	y := must(f.Tanh(contract(flat, []int{1}, nil, out, []int{0}, nil)))
	length := must(f.ConvertDType(must(f.DynamicDimensionSize(in, 1)), dtypes.Float32))
	pooled := must(f.Div(must(f.ReduceSum(sum, 1)), length))
	if err := f.Return([]value{y, pooled}, nil); err != nil {
		panic(err)
	}
	return must(bd.Compile())
}

// A graph built once gives at every size what one of that size gives, to the last
// bit, and nothing is explored or compiled for a size that is like one before it.
func TestSizes(t *testing.T) {
	b := openBackend(t, "cpu,explore=wait,compile=wait,tune=off")
	e := encoder(b, axes("batch", "seq", 16))
	w := ramp(b, 16, 16)
	if out := e.Outputs(); !out[0].Equal(axes("rows", 8)) || !out[1].Equal(axes("batch", 16)) {
		t.Errorf("results of %v", out)
	}
	run := func(e compute.Executable, batch, seq int) [][]float32 {
		t.Helper()
		var lists [][]float32
		for _, out := range must(e.Execute([]compute.Buffer{ramp(b, batch, seq, 16), w}, nil, 0)) {
			flat, _ := floatsOf(t, out)
			lists = append(lists, flat)
		}
		return lists
	}
	for range 3 {
		run(e, 8, 24)
	}
	if err := b.Device().Wait(); err != nil {
		t.Fatal(err)
	}
	before := b.Device().Stats()
	var dynamic [][][]float32
	var at [][2]int
	for batch := 7; batch < 11; batch++ {
		for seq := 20; seq < 31; seq += 2 {
			at = append(at, [2]int{batch, seq})
			dynamic = append(dynamic, run(e, batch, seq))
		}
	}
	after := b.Device().Stats()
	if n, m := after.Explorations-before.Explorations, after.Runtime.Compiles-before.Runtime.Compiles; n != 0 || m != 0 {
		t.Errorf("%d explorations and %d compiles at %d sizes", n, m, len(at))
	}
	if n, m := after.Recordings-before.Recordings, after.Resizes-before.Resizes; n != 0 || m != int64(len(at)-1) {
		t.Errorf("%d recordings and %d resizes at %d sizes, of which one was known", n, m, len(at))
	}
	for i, s := range at {
		if static := run(encoder(b, axes(s[0], s[1], 16)), s[0], s[1]); !slices.EqualFunc(dynamic[i], static, slices.Equal) {
			t.Errorf("at %v: %v, want %v", s, dynamic[i], static)
		}
	}
}

// More sizes than are kept, from several goroutines, and after some of them were given
// up: where sizes are of axes, and where a number decides one.
func TestManySizes(t *testing.T) {
	for _, asks := range []bool{false, true} {
		t.Run(fmt.Sprint("number decides ", asks), func(t *testing.T) { manySizes(t, asks) })
	}
}

func manySizes(t *testing.T, asks bool) {
	b := openBackend(t, "cpu,compile=off")
	bd := b.Builder("sizes")
	f := bd.Main()
	x := must(f.Parameter("x", axes("n"), nil))
	sum := must(f.Add(x, x))
	if asks {
		k := must(f.Parameter("k", shapes.Make(dtypes.Int32), nil))
		y := must(f.DynamicReshape(sum, compute.DynamicDimensionSpec{Name: "n"}, compute.DynamicDimensionSpec{Name: "k", Value: k}))
		sum = must(f.ReduceSum(y, 1))
	}
	if err := f.Return([]compute.Value{sum, must(f.ReduceSum(x))}, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	one := must(b.BufferFromFlatData(0, []int32{1}, shapes.Make(dtypes.Int32)))
	execute := func(n, of int, give bool) ([]compute.Buffer, error) {
		flat := make([]float32, n)
		for k := range flat {
			flat[k] = float32(k + of)
		}
		in, donate := []compute.Buffer{must(b.BufferFromFlatData(0, flat, shapes.Make(dtypes.Float32, n)))}, []bool{give}
		if asks {
			in, donate = append(in, one), append(donate, false)
		}
		return e.Execute(in, donate, 0)
	}
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := range 2 * mostSizes {
				n := (i*(g+1))%100 + 1
				out, err := execute(n, g, i%2 == 0)
				if err != nil {
					t.Error(err)
					return
				}
				got, s := floatsOf(t, out[0])
				if want := float32(2 * (n - 1 + g)); s.Rank() != 1 || len(got) != n || got[n-1] != want {
					t.Errorf("%d: %v of %s, want %v last", n, got, s, want)
				}
			}
		})
	}
	wg.Wait()
	stats := b.Device().Stats()
	if n := len(e.(*TemplateExecutable).made); n > mostSizes || asks == (n == 0) {
		t.Errorf("%d graphs are kept", n)
	}
	if !asks && (stats.Recordings > 16 || stats.Resizes < 90) { // a size of 1 is one of its own, and some begin at once
		t.Errorf("%d recordings, %d resizes", stats.Recordings, stats.Resizes)
	}
	e.Finalize()
	if _, err := execute(3, 0, false); err == nil {
		t.Error("executed after Finalize")
	}
	if n := b.Device().Stats().LiveBytes; n > 1<<20 {
		t.Errorf("%d bytes are held", n)
	}
}

// Closures see what no size changes, and sizes as numbers.
func TestSizesInClosures(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	bd := b.Builder("closures")
	f := bd.Main()
	x := must(f.Parameter("x", axes("n"), nil))
	length := must(f.ConvertDType(must(f.DynamicDimensionSize(x, 0)), dtypes.Float32))
	sum := must(f.ReduceSum(x))
	yes, no := must(f.Closure()), must(f.Closure())
	for g, y := range map[compute.Function]compute.Value{yes: must(yes.Div(sum, length)), no: must(no.Neg(length))} {
		if err := g.Return([]compute.Value{y}, nil); err != nil {
			t.Fatal(err)
		}
	}
	mean := must(f.If(must(f.GreaterThan(sum, must(f.Constant([]float32{0})))), yes, no))
	if _, err := must(f.Closure()).Neg(x); !compute.IsNotImplemented(err) {
		t.Errorf("a closure captures what has a dynamic axis: %v", err)
	}
	if err := f.Return(mean, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	for _, c := range []struct {
		in   []float32
		want float32
	}{{[]float32{1, 2, 3}, 2}, {[]float32{4, 5}, 4.5}, {[]float32{-1, -1, -1, -1}, -4}, {[]float32{7}, 7}} {
		in := must(b.BufferFromFlatData(0, c.in, shapes.Make(dtypes.Float32, len(c.in))))
		if got, _ := floatsOf(t, must(e.Execute([]compute.Buffer{in}, nil, 0))[0]); got[0] != c.want {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
	}
}

// Sizes that inputs decide, which are read at each Execute.
func TestSizesFromInputs(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	bd := b.Builder("read")
	f := bd.Main()
	x := must(f.Parameter("x", axes("n", 6), nil))
	columns := must(f.Parameter("columns", shapes.Make(dtypes.Int32), nil))
	twice := must(f.Mul(columns, must(f.Constant([]int32{2}))))
	y := must(f.DynamicReshape(x, compute.DynamicDimensionSpec{Name: "rest"}, compute.DynamicDimensionSpec{Name: "columns", Value: twice}))
	if s := must(f.Shape(y)); s.AxisName(0) != "rest" || s.AxisName(1) != "columns" || !s.IsAxisDynamic(0) || !s.IsAxisDynamic(1) {
		t.Errorf("a %s", s)
	}
	if err := f.Return([]compute.Value{must(f.ReduceSum(y, 0))}, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	for _, c := range []struct {
		rows, half int
		refused    bool
	}{{2, 3, false}, {2, 1, false}, {4, 6, false}, {2, 3, false}, {3, 2, true}, {1, -1, true}, {1, 0, true}} {
		if c.rows == 3 {
			c.half = 4 // 18 elements in rows of 8
		}
		number := must(b.BufferFromFlatData(0, []int32{int32(c.half)}, shapes.Make(dtypes.Int32)))
		out, err := e.Execute([]compute.Buffer{ramp(b, c.rows, 6), number}, nil, 0)
		if (err != nil) != c.refused {
			t.Errorf("%d by 2·%d: %v", c.rows, c.half, err)
			continue
		}
		if err != nil {
			if !strings.Contains(err.Error(), "DynamicReshape") || !strings.Contains(err.Error(), fmt.Sprint("n=", c.rows)) {
				t.Errorf("%v says not which op with which sizes", err)
			}
			continue
		}
		got, s := floatsOf(t, out[0])
		want := make([]float32, 2*c.half)
		all, _ := floatsOf(t, ramp(b, c.rows, 6))
		for i, v := range all {
			want[i%len(want)] += v
		}
		if s.Rank() != 1 || !slices.Equal(got, want) {
			t.Errorf("%d by 2·%d: %v, want %v", c.rows, c.half, got, want)
		}
	}
}

// Inputs that do not fit their marks, and graphs that cannot be.
func TestBadSizes(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	bd := b.Builder("bad")
	f := bd.Main()
	x := must(f.Parameter("x", axes("batch", 3), nil))
	y := must(f.Parameter("y", axes("batch", "seq"), nil))
	type value = compute.Value
	for _, c := range []struct {
		name string
		want []string
		do   func() (value, error)
	}{
		{"Parameter", []string{"axis 0", "name"}, func() (value, error) {
			return f.Parameter("z", shapes.Shape{DType: dtypes.Float32, Dimensions: []int{-1}}, nil)
		}},
		{"Add", []string{"batch=?", "seq=?"}, func() (value, error) { return f.Add(x, y) }},
		{"Reshape", []string{"batch=?"}, func() (value, error) { return f.Reshape(x, 12) }},
		{"DynamicReshape", []string{"batch=?", "open"}, func() (value, error) {
			return f.DynamicReshape(x, compute.DynamicDimensionSpec{Name: "a"}, compute.DynamicDimensionSpec{Name: "b"})
		}},
		{"DynamicReshape", []string{"batch=?", "scalar integer"}, func() (value, error) {
			return f.DynamicReshape(x, compute.DynamicDimensionSpec{Name: "a", Value: x}, compute.DynamicDimensionSpec{Static: 3})
		}},
		{"DynamicReshape", []string{"name"}, func() (value, error) {
			return f.DynamicReshape(x, compute.DynamicDimensionSpec{Value: x})
		}},
		{"DynamicDimensionSize", []string{"axis 2", "batch=?"}, func() (value, error) { return f.DynamicDimensionSize(x, 2) }},
		{"Iota", []string{"other"}, func() (value, error) { return f.Iota(axes("other", 2), 0) }},
		{"BroadcastInDim", []string{"other"}, func() (value, error) { return f.BroadcastInDim(x, axes("other", 3), []int{0, 1}) }},
	} {
		v, err := c.do()
		if err == nil || v != nil {
			t.Errorf("%s: %v, %v", c.name, v, err)
			continue
		}
		for _, want := range append(c.want, c.name) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
	}
	if err := f.Return([]value{must(f.Neg(x)), y}, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	i32 := must(b.BufferFromFlatData(0, make([]int32, 6), shapes.Make(dtypes.Int32, 2, 3)))
	for _, c := range []struct {
		in   []compute.Buffer
		want string
	}{
		{[]compute.Buffer{ramp(b, 2, 3)}, "1 inputs were given for 2"},
		{[]compute.Buffer{ramp(b, 2, 4), ramp(b, 2, 5)}, `input 0 ("x") is a (Float32)[2, 4], the parameter a (Float32)[batch=?, 3]`},
		{[]compute.Buffer{ramp(b, 6), ramp(b, 2, 5)}, `input 0 ("x")`},
		{[]compute.Buffer{i32, ramp(b, 2, 5)}, `input 0 ("x")`},
		{[]compute.Buffer{ramp(b, 2, 3), ramp(b, 4, 5)}, `axis "batch"`},
		{[]compute.Buffer{nil, ramp(b, 4, 5)}, `input 0 ("x")`},
	} {
		if _, err := e.Execute(c.in, nil, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v does not say %q", err, c.want)
		}
	}
	for _, dims := range [][2]int{{0, 2}, {2, 0}, {1, 1}} {
		out, err := e.Execute([]compute.Buffer{ramp(b, dims[0], 3), ramp(b, dims[0], dims[1])}, nil, 0)
		if err != nil {
			t.Errorf("%v: %v", dims, err)
			continue
		}
		if s := must(out[1].Shape()); !slices.Equal(s.Dimensions, dims[:]) {
			t.Errorf("%v: a %s", dims, s)
		}
	}
}
