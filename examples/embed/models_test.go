package main

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/onnx-gomlx/onnx/parser"
	"github.com/millrace-go/millrace/gomlxbackend"
)

// numbers are those of a tensor, as testdata/models.py writes them.
type numbers struct {
	Shape  []int
	Values []float64
}

func (n numbers) tensor(t *testing.T, dt dtypes.DType) *tensors.Tensor {
	t.Helper()
	switch dt {
	case dtypes.Float32:
		return tensors.FromFlatDataAndDimensions(converted[float32](n.Values), n.Shape...)
	case dtypes.Int64:
		return tensors.FromFlatDataAndDimensions(converted[int64](n.Values), n.Shape...)
	}
	t.Fatalf("no numbers are of %s", dt)
	return nil
}

func converted[T float32 | int64](values []float64) []T {
	list := make([]T, len(values))
	for i, v := range values {
		list[i] = T(v)
	}
	return list
}

// Models of three kinds give what onnxruntime gives, at sizes that change with each
// run, and the same through GoMLX's own backend, so that the numbers are known to
// be the fault of neither.
func TestModels(t *testing.T) {
	for name, open := range map[string]func(string) (compute.Backend, error){"millrace": gomlxbackend.New, "go": gobackend.New} {
		for _, kind := range []string{"resnet", "bert", "lstm"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				b, err := open("")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(b.Finalize)
				runModel(t, b, "testdata/models/"+kind)
			})
		}
	}
}

func runModel(t *testing.T, b compute.Backend, path string) {
	raw, err := os.ReadFile(path + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Outputs []string
		Runs    []struct {
			Inputs  map[string]numbers
			Outputs []numbers
		}
	}
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	m, err := parser.ParseFile(path + ".onnx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	store := model.NewStore()
	t.Cleanup(store.Finalize)
	if err := m.VariablesToScope(store.RootScope()); err != nil {
		t.Fatal(err)
	}
	names, declared := m.Inputs()
	exec, err := model.NewExec(b, store, func(scope *model.Scope, in []*graph.Node) []*graph.Node {
		feed := map[string]*graph.Node{}
		for i, name := range names {
			feed[name] = in[i]
		}
		return m.CallGraph(scope, in[0].Graph(), feed, expected.Outputs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(exec.Finalize)
	if len(expected.Runs) == 0 {
		t.Fatal("nothing is expected")
	}
	for i, run := range expected.Runs {
		var in []any
		for k, name := range names {
			in = append(in, run.Inputs[name].tensor(t, declared[k].DType))
		}
		out, err := exec.Exec(in...)
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		if len(out) != len(run.Outputs) {
			t.Fatalf("run %d: %d outputs, want %d", i, len(out), len(run.Outputs))
		}
		for k, want := range run.Outputs {
			compare(t, i, expected.Outputs[k], out[k], want)
		}
	}
}

// compare wants the same shape, and elements that differ by a few roundings of a
// float32 of a sum's size.
func compare(t *testing.T, run int, output string, got *tensors.Tensor, want numbers) {
	t.Helper()
	if err := got.Shape().CheckDims(want.Shape...); err != nil {
		t.Errorf("run %d: %s: %v", run, output, err)
		return
	}
	values, err := tensors.CopyFlatData[float32](got)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, v := range values {
		worst = max(worst, math.Abs(float64(v)-want.Values[i])/max(1, math.Abs(want.Values[i])))
	}
	if !(worst <= 5e-6) {
		t.Errorf("run %d: %s differs by %.1e", run, output, worst)
	}
	t.Logf("run %d: %s differs by %.1e", run, output, worst)
}
