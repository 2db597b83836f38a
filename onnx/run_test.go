package onnx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

var ctx = context.Background()

func device0(t *testing.T) *millrace.Device {
	t.Helper()
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// opened opens a model from its bytes.
func opened(t *testing.T, data []byte) *Model {
	t.Helper()
	m, err := New(device0(t), data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ran runs a model with inputs x, y, … and compares the elements of its outputs.
func ran(t *testing.T, m *Model, want map[string]string, in map[string]*millrace.Tensor) {
	t.Helper()
	out, err := m.Run(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(want) {
		t.Fatalf("%d outputs, want %d", len(out), len(want))
	}
	for name, text := range want {
		v, err := millrace.Values[float64](out[name].Cast(millrace.Float64))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(out[name].Shape(), v); got != text {
			t.Errorf("%s: got %s, want %s", name, got, text)
		}
	}
}

type tensors = map[string]*millrace.Tensor

// flattened is a network whose shape arithmetic is what exporters write: Shape, Gather, Unsqueeze,
// Concat and Reshape keep the batch and flatten the rest.
func flattened() graphParts {
	return graphParts{
		nodes: []msg{
			nodeMsg("Shape", "x", "s"),
			nodeMsg("Gather", "s zero", "n"),
			nodeMsg("Unsqueeze", "n axes", "n1"),
			nodeMsg("Concat", "n1 rest", "target", attrInt64("axis", 0)),
			nodeMsg("Reshape", "x target", "flat"),
			nodeMsg("Gemm", "flat w b", "h"),
			nodeMsg("Relu", "h", "y"),
		},
		weights: []msg{
			ints64("zero", nil, 0), ints64("axes", []int64{1}, 0), ints64("rest", []int64{1}, -1),
			floats32("w", []int64{4, 2}, 1, -1, 2, -2, 3, -3, 4, -4), floats32("b", []int64{2}, 0.5, 100),
		},
		inputs:  []msg{valueMsg("x", 1, "batch", 2, 2)},
		outputs: "y",
	}
}

func TestAnySize(t *testing.T) {
	m := opened(t, flattened().model())
	for n := range 4 {
		x := millrace.Ones(millrace.Float32, n, 2, 2)
		want := fmt.Sprintf("[%d 2] [%s]", n, strings.TrimSpace(strings.Repeat("10.5 90 ", n)))
		ran(t, m, map[string]string{"y": want}, tensors{"x": x})
	}
	if s := m.Stats(); s != (Stats{Runs: 4}) {
		t.Errorf("%+v: shapes were read from the device", s)
	}
}

func TestControlFlow(t *testing.T) {
	double := graphParts{nodes: []msg{nodeMsg("Add", "x x", "r")}, outputs: "r"}
	same := graphParts{nodes: []msg{nodeMsg("Identity", "x", "r")}, outputs: "r"}
	branch := opened(t, graphParts{
		nodes:   []msg{nodeMsg("If", "c", "y", attrBody("then_branch", double.encode()), attrBody("else_branch", same.encode()))},
		inputs:  []msg{valueMsg("c", 9), valueMsg("x", 1, "n")},
		outputs: "y",
	}.model())
	x := millrace.FromSlice([]float32{1, 2})
	ran(t, branch, map[string]string{"y": "[2] [2 4]"}, tensors{"x": x, "c": millrace.Scalar(true)})
	ran(t, branch, map[string]string{"y": "[2] [1 2]"}, tensors{"x": x, "c": millrace.Scalar(false)})
	if r := branch.Stats().Reads; r != 2 {
		t.Errorf("%d reads, want one for each run", r)
	}

	// Each turn adds x to the sum, and keeps it; turns end when the sum's maximum is 5 or more.
	body := graphParts{
		nodes: []msg{
			nodeMsg("Add", "sum x", "next"), nodeMsg("ReduceMax", "next", "top", attrInt64("keepdims", 0)),
			nodeMsg("Less", "top five", "go"), nodeMsg("Identity", "next", "kept"),
		},
		weights: []msg{floats32("five", nil, 5)},
		inputs:  []msg{valueMsg("turn", 7), valueMsg("on", 9), valueMsg("sum", 1)},
		outputs: "go next kept",
	}
	loops := opened(t, graphParts{
		nodes:   []msg{nodeMsg("Loop", "most _ x", "y all", attrBody("body", body.encode()))},
		inputs:  []msg{valueMsg("most", 7), valueMsg("x", 1, "n")},
		outputs: "y all",
	}.model())
	ran(t, loops, map[string]string{"y": "[2] [3 6]", "all": "[2 2] [2 4 3 6]"}, tensors{"x": x, "most": millrace.Scalar(int64(9))})
	ran(t, loops, map[string]string{"y": "[2] [2 4]", "all": "[1 2] [2 4]"}, tensors{"x": x, "most": millrace.Scalar(int64(1))})

	step := graphParts{
		nodes:   []msg{nodeMsg("Add", "s e", "t"), nodeMsg("Mul", "t two", "o")},
		weights: []msg{floats32("two", nil, 2)},
		inputs:  []msg{valueMsg("s", 1), valueMsg("e", 1)},
		outputs: "t o",
	}
	scans := opened(t, graphParts{
		nodes:   []msg{nodeMsg("Scan", "start x", "end all", attrBody("body", step.encode()), attrInt64("num_scan_inputs", 1))},
		weights: []msg{floats32("start", nil, 10)},
		inputs:  []msg{valueMsg("x", 1, "n")},
		outputs: "end all",
	}.model())
	ran(t, scans, map[string]string{"end": "[] [13]", "all": "[2] [22 26]"}, tensors{"x": x})
}

// A loop without an end stops with its context.
func TestLoopStops(t *testing.T) {
	c, cancel := context.WithCancel(ctx)
	body := graphParts{
		nodes:   []msg{nodeMsg("Identity", "on", "go"), nodeMsg("Add", "s s", "t")},
		inputs:  []msg{valueMsg("turn", 7), valueMsg("on", 9), valueMsg("s", 1)},
		outputs: "go t",
	}
	m := opened(t, graphParts{
		nodes:   []msg{nodeMsg("Loop", "_ _ x", "y", attrBody("body", body.encode()))},
		inputs:  []msg{valueMsg("x", 1)},
		outputs: "y",
	}.model())
	cancel()
	if _, err := m.Run(c, tensors{"x": millrace.Ones(millrace.Float32)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A model's own function, with an attribute of the call, an optional input and a function inside.
func TestFunctions(t *testing.T) {
	twice := msg(nil).text(1, "Twice").text(4, "a").text(5, "b").part(7, nodeMsg("Add", "a a", "b")).
		part(9, msg(nil).varint(2, 21)).text(10, "own")
	fn := msg(nil).text(1, "F").text(4, "a", "lo").text(5, "r").text(6, "axis").
		part(7,
			msg(nil).text(1, "a").text(2, "d").text(4, "Twice").text(7, "own"),
			nodeMsg("Clip", "d lo", "e"),
			nodeMsg("Softmax", "e", "f", attrRef("axis", "axis")),
			nodeMsg("Sub", "e f", "r")).
		part(9, msg(nil).varint(2, 21), msg(nil).text(1, "own").varint(2, 1)).text(10, "own")
	m := opened(t, graphParts{
		nodes:   []msg{msg(nil).text(1, "x").text(2, "y").text(4, "F").text(7, "own").part(5, attrInt64("axis", 0))},
		inputs:  []msg{valueMsg("x", 1, 1, 2)},
		outputs: "y",
	}.model(twice, fn))
	ran(t, m, map[string]string{"y": "[1 2] [1 3]"}, tensors{"x": millrace.FromSlice([]float32{1, 2}, 1, 2)})
}

// Weights are parameters: a model that was read learns, and the same weights serve Run.
func TestLearns(t *testing.T) {
	g := graphParts{
		nodes:   []msg{nodeMsg("MatMul", "x w", "h"), nodeMsg("Add", "h b", "y")},
		weights: []msg{floats32("w", []int64{2, 1}, 0, 0), floats32("b", []int64{1}, 0), floats32("unused", nil, 1)},
		inputs:  []msg{valueMsg("x", 1, "n", 2)},
		outputs: "y",
	}
	m := opened(t, g.model())
	params := nn.Params(m)
	if len(params) != 2 || params[0].Name != "w" || params[1].Name != "b" {
		t.Fatalf("parameters %v", params)
	}
	x := millrace.FromSlice([]float32{1, 0, 0, 1, 1, 1, 0, 0}, 4, 2)
	want := x.MatMul(millrace.FromSlice([]float32{2, -1}, 2, 1)).AddScalar(0.5)
	opt := optim.SGD(params, optim.LR(0.5))
	var failed error
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		out, err := m.Forward(c, tensors{"x": in[0]})
		if err != nil {
			failed = err
			return in[0]
		}
		return out["y"].Sub(in[1]).Square().Mean()
	})
	for range 200 {
		if _, err := step.Run(ctx, x, want); err != nil {
			t.Fatal(err, failed)
		}
	}
	out, err := m.Run(ctx, tensors{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := millrace.AllClose(out["y"], want, 1e-3, 1e-3); !ok || err != nil {
		t.Errorf("got %v, want %v: %v", out["y"], want, err)
	}
	if autodiff.Watched(out["y"]) {
		t.Error("the output of Run is watched")
	}
}

// Outputs that are a weight or an input are handles of the caller: releasing them leaves the model
// whole.
func TestOutputsAreOwn(t *testing.T) {
	m := opened(t, graphParts{
		nodes:   []msg{nodeMsg("Identity", "w", "v"), nodeMsg("Add", "x w", "y")},
		weights: []msg{floats32("w", []int64{2}, 1, 2)},
		inputs:  []msg{valueMsg("x", 1, 2)},
		outputs: "v y w x",
	}.model())
	for range 2 {
		x := millrace.Ones(millrace.Float32, 2)
		out, err := m.Run(ctx, tensors{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := millrace.Values[float32](out["y"]); err != nil || !slices.Equal(v, []float32{2, 3}) {
			t.Fatalf("got %v, %v", v, err)
		}
		for _, name := range m.Outputs() {
			out[name].Release()
		}
		if x.Err() != nil {
			t.Error("the input is released")
		}
	}
}

// TestHostAndDevice runs arithmetic on small integers on the host and, with the same values as
// inputs of the model, on the device.
func TestHostAndDevice(t *testing.T) {
	a, b := []int64{-7, 3, 0, 9}, []int64{2, -3, 5, 0}
	ops := []string{"Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}
	var nodes []msg
	for _, op := range ops {
		nodes = append(nodes, nodeMsg(op, "a b", op))
	}
	for _, op := range []string{"ReduceSum", "ReduceProd"} {
		nodes = append(nodes, nodeMsg(op, "a", op, attrInt64("keepdims", 1)))
	}
	nodes = append(nodes, nodeMsg("Neg", "a", "Neg"), nodeMsg("Gather", "a i", "Gather"), nodeMsg("Concat", "a b", "Concat", attrInt64("axis", 0)),
		nodeMsg("Slice", "a from to at by", "Slice"), nodeMsg("Cast", "a", "Cast", attrInt64("to", 1)), nodeMsg("Where", "Less a b", "Where"),
		nodeMsg("Expand", "a two", "Expand"), nodeMsg("Unsqueeze", "a i", "Unsqueeze"), nodeMsg("Squeeze", "Unsqueeze i", "Squeeze"))
	outs := append(ops, "ReduceSum", "ReduceProd", "Neg", "Gather", "Concat", "Slice", "Cast", "Where", "Expand", "Unsqueeze", "Squeeze")
	known := []msg{
		ints64("i", []int64{1}, 0), ints64("from", []int64{1}, 3), ints64("to", []int64{1}, -9), ints64("at", []int64{1}, 0),
		ints64("by", []int64{1}, -2), ints64("two", []int64{2}, 2, 1),
	}
	g := graphParts{nodes: nodes, weights: known, inputs: []msg{valueMsg("a", 7, 4), valueMsg("b", 7, 4)}, outputs: strings.Join(outs, " ")}
	onDevice := opened(t, g.model())
	g.inputs = nil
	g.weights = append(known, ints64("a", []int64{4}, a...), ints64("b", []int64{4}, b...))
	onHost := opened(t, g.model())
	want, err := onDevice.Run(ctx, tensors{"a": millrace.FromSlice(a), "b": millrace.FromSlice(b)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := onHost.Run(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range outs {
		if err := near(got[name], want[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Models that torch.onnx wrote give each row of a batch the bits that it has alone, without reads.
func TestExported(t *testing.T) {
	for name, input := range map[string]func(rows int) tensors{
		"lstm": func(rows int) tensors {
			return tensors{"series": millrace.Normal(millrace.Float32, 1, 3, 5, 6).Slice(millrace.R(0, rows))}
		},
		"resnet": func(rows int) tensors {
			return tensors{"pixels": millrace.Normal(millrace.Float32, 1, 3, 3, 24, 24).Slice(millrace.R(0, rows))}
		},
		"bert": func(rows int) tensors {
			return tensors{
				"input_ids":      millrace.Integers(millrace.Int64, 1, 0, 20, 3, 7).Slice(millrace.R(0, rows)),
				"attention_mask": millrace.Ones(millrace.Int64, rows, 7),
			}
		},
	} {
		m, err := Open("../examples/embed/testdata/models/" + name + ".onnx")
		if errors.Is(err, os.ErrNotExist) {
			t.Skip("the models are in another module of the repository")
		}
		if err != nil {
			t.Fatal(err)
		}
		all, err := m.Run(ctx, input(3))
		if err != nil {
			t.Fatal(err)
		}
		one, err := m.Run(ctx, input(1))
		if err != nil {
			t.Fatal(err)
		}
		for _, out := range m.Outputs() {
			if same, err := millrace.Equal(all[out].Slice(millrace.R(0, 1)), one[out]); !same || err != nil {
				t.Errorf("%s: a row of a batch has other bits in %s: %v", name, out, err)
			}
		}
		if s := m.Stats(); s.Reads != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Random numbers differ by run, node and call, not by process; they have the moments that the
// attributes ask for.
func TestRandom(t *testing.T) {
	attr := func(name string, v float32) msg { return msg(nil).text(1, name).float(2, v).varint(20, attrFloat) }
	g := graphParts{
		nodes: []msg{
			nodeMsg("RandomNormal", "", "n", attrIntList("shape", 10000), attr("mean", 3), attr("scale", 2)),
			nodeMsg("RandomUniformLike", "x", "u", attr("low", -1), attr("high", 5)),
			nodeMsg("RandomUniformLike", "x", "v", attr("low", -1), attr("high", 5)),
			nodeMsg("Bernoulli", "x", "b"),
		},
		inputs:  []msg{valueMsg("x", 1, 10000)},
		outputs: "n u v b",
	}
	in := tensors{"x": millrace.Full(millrace.Float32, 0.25, 10000)}
	m, again := opened(t, g.model()), opened(t, g.model())
	var runs []tensors
	for _, m := range []*Model{m, again, m} {
		out, err := m.Run(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, out)
	}
	for name, want := range map[string][2]float64{"n": {3, 2}, "u": {2, 1.732}, "b": {0.25, 0.433}} {
		mean, err := millrace.Item[float32](runs[0][name].Mean())
		std, err2 := millrace.Item[float32](runs[0][name].Std(0))
		if err != nil || err2 != nil || math.Abs(float64(mean)-want[0]) > 0.1 || math.Abs(float64(std)-want[1]) > 0.1 {
			t.Errorf("%s: mean %v, deviation %v, want %v: %v %v", name, mean, std, want, err, err2)
		}
		if same, err := millrace.Equal(runs[0][name], runs[1][name]); !same || err != nil {
			t.Errorf("%s: another model draws other numbers: %v", name, err)
		}
		if same, err := millrace.Equal(runs[0][name], runs[2][name]); same || err != nil {
			t.Errorf("%s: the second run draws the same numbers: %v", name, err)
		}
	}
	if same, err := millrace.Equal(runs[0]["u"], runs[0]["v"]); same || err != nil {
		t.Errorf("two nodes draw the same numbers: %v", err)
	}
}

// Weights in other files are read from there, also far behind 2 GiB.
func TestExternalData(t *testing.T) {
	dir := t.TempDir()
	const far = 5 << 29 // the file is sparse
	f, err := os.Create(filepath.Join(dir, "weights.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw := []byte{0, 0, 128, 63, 0, 0, 0, 64} // 1, 2
	if _, err := f.WriteAt(raw, far); err != nil {
		t.Skipf("no sparse files: %v", err)
	}
	g := graphParts{
		nodes:   []msg{nodeMsg("Add", "x w", "y")},
		weights: []msg{external("w", []int64{2}, "location", "weights.bin", "offset", fmt.Sprint(far), "length", "8")},
		inputs:  []msg{valueMsg("x", 1, 2)},
		outputs: "y",
	}
	open := func(g graphParts) (*Model, error) {
		file := filepath.Join(dir, "m.onnx")
		if err := os.WriteFile(file, g.model(), 0o644); err != nil {
			t.Fatal(err)
		}
		return Open(file)
	}
	m, err := open(g)
	if err != nil {
		t.Fatal(err)
	}
	ran(t, m, map[string]string{"y": "[2] [2 3]"}, tensors{"x": millrace.Ones(millrace.Float32, 2)})

	outside := filepath.Join(t.TempDir(), "w.bin")
	if err := os.WriteFile(outside, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.bin")); err != nil {
		t.Logf("no links: %v", err)
	}
	for _, entries := range [][]string{
		{"location", outside},
		{"location", "../w.bin"},
		{"location", "link.bin"},
		{"location", "missing.bin"},
		{"location", "weights.bin", "offset", fmt.Sprint(far + 4)},
		{"location", "weights.bin", "offset", "-8"},
		{"location", "weights.bin", "offset", fmt.Sprint(far), "length", "9"},
		{"location", "weights.bin", "offset", "x"},
		{"offset", "0"},
	} {
		g.weights = []msg{external("w", []int64{2}, entries...)}
		if m, err := open(g); err == nil || !strings.Contains(err.Error(), `"w"`) {
			t.Errorf("%v: got %v, %v", entries, m, err)
		}
	}
	if _, err := New(device0(t), g.model()); err == nil {
		t.Error("a model without a file has external data")
	}
}
