package gomlxbackend

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

func openBackend(t *testing.T, config string) *Backend {
	t.Helper()
	b, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b.(*Backend)
}

func upload(t *testing.T, b *Backend, data []float32, dims ...int) compute.Buffer {
	t.Helper()
	buf, err := b.BufferFromFlatData(0, data, shapes.Make(dtypes.Float32, dims...))
	if err != nil {
		t.Fatal(err)
	}
	return buf
}

func download(t *testing.T, buf compute.Buffer) []float32 {
	t.Helper()
	s, err := buf.Shape()
	if err != nil {
		t.Fatal(err)
	}
	flat := make([]float32, s.Size())
	if err := buf.ToFlatData(flat); err != nil {
		t.Fatal(err)
	}
	return flat
}

// must is for graphs that are right.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// compile makes a graph of float32 vectors of n elements.
func compile(b *Backend, n, params int, graph func(f compute.Function, in []compute.Value) []compute.Value) compute.Executable {
	bd := b.Builder("test")
	f := bd.Main()
	var in []compute.Value
	for i := range params {
		in = append(in, must(f.Parameter(string(rune('a'+i)), shapes.Make(dtypes.Float32, n), nil)))
	}
	if err := f.Return(graph(f, in), nil); err != nil {
		panic(err)
	}
	return must(bd.Compile())
}

func TestConfig(t *testing.T) {
	for config, want := range map[string]string{
		"": "", "cpu": "cpu", "threads=1": ":threads=1", "cpu,threads=1,compile=off": "cpu:threads=1,compile=off", "null": "null",
		"check": ":check", " cpu": "cpu",
	} {
		o, err := parseConfig(config)
		if err != nil {
			t.Errorf("%q: %v", config, err)
			continue
		}
		device, rest, _ := strings.Cut(want, ":")
		parsed, err := millrace.ParseOptions("cpu:" + rest)
		if err != nil {
			t.Fatal(err)
		}
		parsed.Device = device
		if o.String() != parsed.String() || o.Device != device {
			t.Errorf("%q: %q, want %q", config, o.String(), parsed.String())
		}
	}
	for config, want := range map[string]string{"cpu,thraeds=2": "threads", "thraeds=2": "threads", "fpga": "fpga", "cpu,threads=two": "threads"} {
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), config) {
			t.Errorf("%q: %v; it should name the config and %q", config, err, want)
		}
	}
	if got := openBackend(t, "cpu,threads=1").Name(); got != "millrace" {
		t.Errorf("Name is %q", got)
	}
}

// Every way a result can be something else that is there already.
func TestOutputsOfTheirOwn(t *testing.T) {
	b := openBackend(t, "cpu")
	e := compile(b, 3, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		c := must(f.Constant([]float32{7, 8, 9}, 3))
		neg := must(f.Neg(in[0]))
		turned := must(f.Transpose(must(f.Reshape(in[1], 1, 3)), 1, 0))
		return []compute.Value{neg, in[0], neg, c, c, in[0], turned, must(f.Reverse(c, 0)), turned}
	})
	x, y := upload(t, b, []float32{1, 2, 3}, 3), upload(t, b, []float32{4, 5, 6}, 3)
	for _, donate := range [][]bool{nil, {false, false}, {true, true}} {
		out, err := e.Execute([]compute.Buffer{x, y}, donate, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := [][]float32{{-1, -2, -3}, {1, 2, 3}, {-1, -2, -3}, {7, 8, 9}, {7, 8, 9}, {1, 2, 3}, {4, 5, 6}, {9, 8, 7}, {4, 5, 6}}
		for i, buf := range out {
			if got := download(t, buf); !slices.Equal(got, want[i]) {
				t.Errorf("donate %v: result %d is %v, want %v", donate, i, got, want[i])
			}
			// The others must not notice.
			if err := buf.Finalize(); err != nil {
				t.Error(err)
			}
			if _, err := buf.Shape(); err == nil {
				t.Error("a finalized buffer has a shape")
			}
		}
	}
	for _, buf := range []compute.Buffer{x, y} {
		if err := buf.ToFlatData(make([]float32, 3)); err == nil {
			t.Error("a donated buffer can be read")
		}
		if err := buf.Finalize(); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.Execute([]compute.Buffer{x, y}, nil, 0); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("donated inputs: %v", err)
	}
}

// The memory of a donated input becomes that of a result, and without donation
// the input stays.
func TestDonation(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	const n = 1 << 16
	e := compile(b, n, 1, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(in[0], must(f.Constant([]float32{1}))))}
	})
	x := upload(t, b, make([]float32, n), n)
	step := func(donate bool) {
		out, err := e.Execute([]compute.Buffer{x}, []bool{donate}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !donate {
			if got := download(t, x)[n-1]; got != 0 {
				t.Fatalf("the input is %v", got)
			}
		}
		x = out[0]
	}
	step(false)
	before := b.Device().Stats().InPlace
	for range 5 {
		step(true)
	}
	if got := b.Device().Stats().InPlace - before; got != 5 {
		t.Errorf("5 donations, %d results in place", got)
	}
	if got := download(t, x)[0]; got != 6 {
		t.Errorf("the result is %v, want 6", got)
	}
}

// A buffer that is donated and an input of its own as well, too.
func TestDonatedTwice(t *testing.T) {
	b := openBackend(t, "cpu")
	e := compile(b, 2, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(in[0], in[1])), must(f.Sub(in[0], in[1]))}
	})
	for _, donate := range [][]bool{{true, false}, {false, true}, {true, true}} {
		x := upload(t, b, []float32{3, 4}, 2)
		out, err := e.Execute([]compute.Buffer{x, x}, donate, 0)
		if err != nil {
			t.Fatal(err)
		}
		if sum, diff := download(t, out[0]), download(t, out[1]); !slices.Equal(sum, []float32{6, 8}) || !slices.Equal(diff, []float32{0, 0}) {
			t.Errorf("%v: %v, %v", donate, sum, diff)
		}
	}
}

// What no result needs is not recorded, and equal nodes are one.
func TestDeadAndEqualNodes(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	e := compile(b, 4, 1, func(f compute.Function, in []compute.Value) []compute.Value {
		for range 10 {
			must(f.Exp(must(f.Sin(in[0]))))
		}
		var y []compute.Value
		for range 3 {
			y = append(y, must(f.Add(must(f.Neg(in[0])), must(f.Constant([]float32{2})))))
		}
		return []compute.Value{must(f.Mul(must(f.Mul(y[0], y[1])), y[2]))}
	})
	before := b.Device().Stats().Ops
	out, err := e.Execute([]compute.Buffer{upload(t, b, []float32{1, 2, 3, 4}, 4)}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Device().Stats().Ops - before; got != 4 {
		t.Errorf("%d ops recorded, want 4", got)
	}
	if got := download(t, out[0]); !slices.Equal(got, []float32{1, 0, -1, -8}) {
		t.Errorf("%v", got)
	}
}

// A graph that ran once runs by the plans it has, also compiled anew.
func TestPlansServeGraphs(t *testing.T) {
	b := openBackend(t, "cpu,compile=off,explore=wait,cache=off")
	graph := func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.ReduceSum(must(f.Exp(must(f.Mul(in[0], in[1])))), 0)), must(f.Tanh(in[0]))}
	}
	var explored int64
	for i := range 4 {
		e := compile(b, 100*(i+2), 2, graph)
		x := upload(t, b, make([]float32, 100*(i+2)), 100*(i+2))
		for range 3 {
			if _, err := e.Execute([]compute.Buffer{x, x}, nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			explored = int64(b.Device().Stats().Explorations)
		}
	}
	if got := int64(b.Device().Stats().Explorations); got != explored || got == 0 {
		t.Errorf("%d explorations, %d after the first graph", got, explored)
	}
}

// Builders, executables and buffers in many goroutines at once, some of which
// never finalise anything.
func TestConcurrentHammer(t *testing.T) {
	b := openBackend(t, "cpu")
	shared := compile(b, 64, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Sub(must(f.Mul(in[0], in[1])), in[0])), must(f.ReduceSum(in[0], 0))}
	})
	weights := upload(t, b, slices.Repeat([]float32{3}, 64), 64)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				k := float32(g*100 + i)
				own := compile(b, 64, 1, func(f compute.Function, in []compute.Value) []compute.Value {
					return []compute.Value{must(f.Add(in[0], must(f.Constant([]float32{k}))))}
				})
				x, err := b.BufferFromFlatData(0, slices.Repeat([]float32{k}, 64), shapes.Make(dtypes.Float32, 64))
				if err != nil {
					t.Error(err)
					return
				}
				out, err := own.Execute([]compute.Buffer{x}, []bool{i%2 == 0}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				two, err := shared.Execute([]compute.Buffer{out[0], weights}, []bool{i%3 == 0, false}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				got, sum := make([]float32, 64), make([]float32, 1)
				if err := errors.Join(two[0].ToFlatData(got), two[1].ToFlatData(sum)); err != nil {
					t.Error(err)
					return
				}
				if got[63] != 4*k || sum[0] != 128*k {
					t.Errorf("%v, %v for %v", got[63], sum[0], k)
				}
				if i%4 == 0 {
					own.Finalize()
					for _, buf := range append(two, x, out[0]) {
						go buf.Finalize()
					}
				}
			}
		})
	}
	wg.Wait()
}

// Numbers of every dtype come back as they were.
func TestRoundTrip(t *testing.T) {
	b := openBackend(t, "cpu")
	for dt := range dtypeRows {
		flat := dtypes.MakeAnySlice(dt, 3)
		bytes := dtypes.UnsafeByteSliceFromAny(flat)
		for i := range bytes {
			bytes[i] = byte(37 * (i + 1))
			if dt == dtypes.Bool {
				bytes[i] = byte(i % 2)
			}
		}
		if used := 3 * dt.Bits() % 8; used > 0 {
			bytes[len(bytes)-1] &= 1<<used - 1 // behind the last element is nothing
		}
		buf, err := b.BufferFromFlatData(0, flat, shapes.Make(dt, 3, 1))
		if err != nil {
			t.Errorf("%s: %v", dt, err)
			continue
		}
		back := dtypes.MakeAnySlice(dt, 3)
		if err := buf.ToFlatData(back); err != nil || !slices.Equal(dtypes.UnsafeByteSliceFromAny(back), bytes) {
			t.Errorf("%s: %v, want %v (%v)", dt, back, flat, err)
		}
		if got := b.Capabilities().DTypes[dt]; !got {
			t.Errorf("%s is not among the capabilities", dt)
		}
	}
}

// Every method of a nil *Buffer returns an error, or nil, and none panics.
func TestNilBuffer(t *testing.T) {
	var none *Buffer
	flat, dataErr := none.Data()
	_, shapeErr := none.Shape()
	num, numErr := none.DeviceNum()
	moved, moveErr := none.CopyToDevice(0)
	for name, err := range map[string]error{
		"Data": dataErr, "Shape": shapeErr, "DeviceNum": numErr, "CopyToDevice": moveErr,
		"ToFlatData": none.ToFlatData([]float32{0}), "Finalize": none.Finalize(),
	} {
		if err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if flat != nil || num != 0 || moved != nil || none.Backend() != nil {
		t.Errorf("%v, %d, %v, %v", flat, num, moved, none.Backend())
	}
}
