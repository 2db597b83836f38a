package gputest

import (
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// narrowTypes are the dtypes of 8 and 16 bits.
var narrowTypes = ir.SetWhere(func(dt ir.DType) bool { return shader.DTypes.Has(dt) && dt.Size() < shader.ElemSize })

// WithoutNarrow runs the suites in which elements of 8 and 16 bits matter with words for all of
// them, if the adapter has other storage.
func WithoutNarrow(t *testing.T, x Target) {
	g, err := x.Open("")
	if err != nil {
		Missing(t, x.Name, err)
	}
	info := g.Info()
	_ = g.Close()
	if x.Dialect.Narrow(info.Store16, info.Store8) == 0 {
		Missing(t, "narrow", "the adapter stores words only")
	}
	x.Narrow, x.Options = runtime.NarrowOff, "narrow=off"
	Some(t, x, "Copy", "Transfers", "Narrow", "NarrowNeighbours", "NarrowSorts", "RandomLayouts", "RandomWindows", "ReduceRandom", "Scatter",
		"DotIntegers", "EnginePrograms", "EngineFloatPrograms", "EngineNarrow", "EngineNarrowPrograms")
}

// stored are the bytes of an element that the device under test should have.
func stored(t *testing.T, dt ir.DType) int64 {
	t.Helper()
	info := openGPU(t).Info()
	if under.Narrow == runtime.NarrowOn && under.Dialect.Narrow(info.Store16, info.Store8).Has(dt) {
		return int64(dt.Size())
	}
	return shader.ElemSize
}

// unary is a kernel of one op, or a copy.
func unary(op string, dt ir.DType) string {
	text := "in 0 : T\nout 1 : T\n%0 = load 0 : T\nstore 1 %0"
	if op != "" {
		text = "in 0 : T\nout 1 : T\n%0 = load 0 : T\n%1 = " + op + " %0 : T\nstore 1 %1"
	}
	return strings.ReplaceAll(text, "T", dt.String())
}

// testNarrow: a kernel reads and writes as many bytes as the device stores, which is the dtype's own
// size if shaders can access that. The description says so.
func testNarrow(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	some := false
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if !shader.DTypes.Has(dt) {
			continue
		}
		elem := stored(t, dt)
		some = some || elem < shader.ElemSize
		if got := d.Caps().ElemSize[dt]; int64(got) != elem {
			t.Errorf("%v has %d bytes, want %d", dt, got, elem)
		}
		for _, op := range []string{"", "gelu"} {
			if op != "" && !dt.IsFloat() {
				continue
			}
			for _, n := range []int64{1 << 15, 4099, 3, 1} {
				x := newTrial(parse(t, unary(op, dt)), 1, n)
				opValues(rand.New(rand.NewPCG(uint64(dt), uint64(n))), dt, x.args[0].Data)
				before := d.Stats()
				x.check(t, d, ir.Gelu.Info().Tol)
				after := d.Stats()
				if r, w := after.BytesRead-before.BytesRead, after.BytesWritten-before.BytesWritten; r != n*elem || w != n*elem {
					t.Errorf("%s of %d %v: %d bytes read, %d written, want %d", op, n, dt, r, w, n*elem)
				}
			}
		}
	}
	if says := strings.Contains(d.Caps().Description, "in their own size"); says != some {
		t.Errorf("narrow elements: %v, described as %q", some, d.Caps().Description)
	}
}

// testNarrowNeighbours: invocations write elements beside each other, of one word, without damage.
// One kernel writes the even elements and another the odd ones; then both are outputs of one kernel.
func testNarrowNeighbours(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if !narrowTypes.Has(dt) {
			continue
		}
		text := strings.ReplaceAll("in 0 : T\nin 1 : T\nout 2 : T\nout 3 : T\n%0 = load 0 : T\n%1 = load 1 : T\nstore 2 %0\nstore 3 %1", "T", dt.String())
		for _, n := range []int64{1 << 14, 1001, 5} {
			x := newTrial(parse(t, text), 1, n)
			x.fillInputs(rand.New(rand.NewPCG(uint64(dt), uint64(n))))
			x.args[2].Data = make([]byte, 2*n*int64(dt.Size()))
			x.shared[3], x.args[3].Data = 2, x.args[2].Data
			for i := range int64(2) {
				x.args[2+i].Stride[0], x.args[2+i].Offset = 2, i
			}
			x.check(t, d, ir.Tolerance{})
			one := newTrial(parse(t, unary("", dt)), 1, n)
			one.fillInputs(rand.New(rand.NewPCG(uint64(dt), uint64(n)+1)))
			one.args[1].Data = make([]byte, 3*n*int64(dt.Size()))
			one.fill(rand.New(rand.NewPCG(4, 5)), 1) // what is between must not change
			one.args[1].Stride[0], one.args[1].Offset = 3, n%3
			one.check(t, d, ir.Tolerance{})
		}
	}
}

// testNarrowSorts: rows of numbers of both signs are sorted, up and down, also where a row is longer
// than a workgroup sorts.
func testNarrowSorts(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if !narrowTypes.Has(dt) || dt == ir.Bool {
			continue
		}
		for i, n := range []int64{7, 3 * shader.SortBlock} {
			for _, op := range []ir.Op{ir.Sort, ir.ArgSort} {
				out := dt
				if op == ir.ArgSort {
					out = ir.Int32
				}
				x := newTrial(parse(t, rowOpKernel(op, dt, out, (i+int(dt))%2 > 0)), 1, 3, n)
				opValues(rand.New(rand.NewPCG(uint64(n), uint64(dt))), dt, x.args[0].Data)
				x.check(t, d, ir.Tolerance{})
			}
		}
	}
}

// testEngineNarrow: a tensor takes n elements of the device's size, and its bits come back.
func testEngineNarrow(t *testing.T) {
	d := openEngine(t)
	const n = 1 << 16
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i%201) - 100
	}
	x := millrace.FromSliceOn(d, data)
	up := x.Neg() // brings x to the device
	must(t, up.Eval())
	defer goruntime.KeepAlive([]*millrace.Tensor{x, up}) // memory that is freed meanwhile counts as well
	for _, c := range []struct {
		as millrace.DType
		dt ir.DType
	}{{millrace.BFloat16, ir.BFloat16}, {millrace.Float16, ir.Float16}, {millrace.Int16, ir.Int16}, {millrace.Int8, ir.Int8}, {millrace.Float32, ir.Float32}} {
		before := d.Stats().Runtime.AllocBytes
		y := x.AddScalar(0.5).Cast(c.as)
		must(t, y.Eval())
		if got := d.Stats().Runtime.AllocBytes - before; got != n*stored(t, c.dt) {
			t.Errorf("%d elements of %v take %d bytes, want %d", n, c.dt, got, n*stored(t, c.dt))
		}
		back := y.Cast(millrace.Float32)
		for i, v := range values(t, back) {
			want := data[i] + 0.5
			switch {
			case c.dt.IsInt():
				want = float32(int32(want))
			case c.dt == ir.BFloat16:
				want = float32(ir.BitsFloat(c.dt, ir.FloatBits(c.dt, float64(want))))
			}
			if v != want {
				t.Fatalf("element %d of %v is %v, want %v", i, c.dt, v, want)
			}
		}
		back.Release()
		y.Release()
	}
	noFallbacks(t, d)
}

// testEngineNarrowPrograms runs random programs over dtypes of 8 and 16 bits: integers have the
// oracle's bits, floats are compared op by op.
func testEngineNarrowPrograms(t *testing.T) {
	d := openEngine(t)
	for seed := range programs(t, 12) {
		c := progen.Config{Ops: 12, MaxElems: 600, Groups: groups, DTypes: narrowTypes &^ ir.Floats}
		randomProgram(t, 5<<32+seed, progen.New(5<<32+seed, c), func(prog *ir.Graph) error {
			return matches(d, prog, progen.Inputs(prog, seed), 2, func(int) {})
		})
		c.DTypes = narrowTypes
		c.Allow = func(op ir.Op, _, _ ir.DType) bool { // a product in another order may overflow on its way to 0
			return op != ir.Prod && op != ir.CumProd
		}
		randomProgram(t, 6<<32+seed, progen.New(6<<32+seed, c), func(prog *ir.Graph) error { return floatProgram(d, prog, seed) })
	}
	noFallbacks(t, d)
}

// benchNarrow times kernels over (32,512,2048) in turns: of float32, and of halves in their own size
// and in words. It reports the medians in milliseconds.
func benchNarrow(b *testing.B) {
	const rows, cols = 32 * 512, 2048
	forms := []struct {
		name, dtype string
		mode        runtime.NarrowMode
	}{
		{"float32", "float32", runtime.NarrowOn},
		{"bfloat16", "bfloat16", runtime.NarrowOn}, {"bfloat16-in-words", "bfloat16", runtime.NarrowOff},
		{"float16", "float16", runtime.NarrowOn}, {"float16-in-words", "float16", runtime.NarrowOff},
	}
	devices := map[runtime.NarrowMode]*device{}
	for _, mode := range []runtime.NarrowMode{runtime.NarrowOn, runtime.NarrowOff} {
		devices[mode] = openDevice(b, runtime.Config{Narrow: mode})
	}
	for _, c := range []struct{ name, src string }{
		{"copy", copyKernel}, {"gelu", geluKernel}, {"softmax", rowtext.Softmax}, {"layernorm", rowtext.Norm}, {"sum", reduceKernel("sum", "float32")},
	} {
		b.Run(c.name, func(b *testing.B) {
			took := make([][]float64, len(forms))
			var list []*runtime.Launch
			for _, f := range forms {
				x := newTrial(parse(b, strings.ReplaceAll(c.src, "float32", f.dtype)), 1, rows, cols)
				if !x.k.HasRows() {
					x = newTrial(x.k, 1, rows*cols)
				}
				for i, o := range x.k.Operands {
					if o.Kind == codegen.Input {
						opValues(rand.New(rand.NewPCG(5, uint64(i))), o.DT, x.args[i].Data)
					}
				}
				for _, s := range x.k.Scalars {
					x.scalars = append(x.scalars, ir.FloatBits(s, cols))
				}
				list = append(list, x.warm(b, devices[f.mode]))
			}
			for b.Loop() {
				for i, l := range list {
					start := time.Now()
					must(b, runAndWait(devices[forms[i].mode], []runtime.Launch{*l}))
					took[i] = append(took[i], time.Since(start).Seconds()*1e3)
				}
			}
			for i, f := range forms {
				slices.Sort(took[i])
				b.ReportMetric(took[i][len(took[i])/2], f.name+"-ms")
			}
		})
	}
}
