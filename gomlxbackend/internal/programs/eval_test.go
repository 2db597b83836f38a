package main

import (
	"iter"
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// few is a data set of batches of one number each, whose labels are 0.
type few []float32

func (d few) Name() string { return "few" }

func (d few) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		for _, x := range d {
			batch := train.Batch{
				Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{x}, 1, 1)},
				Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)},
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// evaluated is the mean loss of a model w*x before and after w is set to another value.
func evaluated(t *testing.T, config string) (before, after float64) {
	t.Helper()
	b, err := compute.NewWithConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	store := model.NewStore()
	defer store.Finalize()
	var w *model.Variable
	trainer := train.NewTrainer(b, store, func(scope *model.Scope, x *graph.Node) *graph.Node {
		w = scope.VariableWithValue("w", float32(1))
		return graph.Mul(x, w.NodeValue(x.Graph()))
	}, loss.MeanSquaredError, optimizer.StochasticGradientDescent().Done(), nil, nil)
	mean := func() float64 {
		out, err := trainer.Eval(few{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		return float64(tensors.ToScalar[float32](out[0]))
	}
	before = mean()
	if err := w.SetValue(tensors.FromScalar(float32(2))); err != nil {
		t.Fatal(err)
	}
	return before, mean()
}

// Trainer.Eval gives the mean over all batches, of what variables hold at the time. The Go
// backend of compute 0.1.14 does not: it has GoMLX make constants of variables.
func TestEvalSeesVariables(t *testing.T) {
	before, after := evaluated(t, "millrace:cpu")
	if math.Abs(before-14.0/3) > 1e-5 || math.Abs(after-4*14.0/3) > 1e-5 {
		t.Errorf("mean losses %v and %v, want %v and %v", before, after, 14.0/3, 4*14.0/3)
	}
	before, after = evaluated(t, "go:ops_sequential")
	t.Logf("the Go backend: %v, then %v", before, after)
}
