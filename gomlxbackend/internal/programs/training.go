package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// program is one that people run with GoMLX, in small. A size is what differs from
// step to step where sizes are not known: of a batch, of a sequence or of a graph.
type program struct {
	name  string
	what  string // the size
	known int    // the size at which it is timed again and again
	least int    // of new sizes
	small int    // a size for tests
	start func(b compute.Backend) (*session, error)
}

// session is a program on a backend.
type session struct {
	step  func(size int) (float64, error) // the loss, or another number that is read
	close func()
}

// programs in the order in which they are printed.
var programs = []program{
	{"lstm", "batch", 32, 17, 3, trains(lstmModel, loss.MeanSquaredError, waves(24))},
	{"lstm, lengths", "length", 24, 9, 5, trains(lstmModel, loss.MeanSquaredError, wavesOf(32))},
	{"vae", "batch", 64, 33, 4, trains(vaeModel, nil, pictures)},
	{"gnn", "nodes", 1000, 701, 40, trains(gnnModel, loss.SparseCategoricalCrossEntropyLogits, citations)},
	{"moe", "tokens", 256, 129, 16, trains(moeModel, loss.SparseCategoricalCrossEntropyLogits, tokens)},
	{"unet", "batch", 8, 3, 2, trains(unetModel, loss.MeanSquaredError, scans)},
	{"neighbours", "queries", 64, 33, 5, neighbours},
}

// seed of the initial weights and of every draw: backends give the same bits.
const seed = 42

// batcher makes a batch of a size: inputs and labels.
type batcher func(r *rand.Rand, size int) (inputs, labels []*tensors.Tensor)

// trains is a program whose step is one of training with Adam.
func trains(net func(*model.Scope, []*graph.Node) []*graph.Node, loss train.LossFn, batch batcher) func(compute.Backend) (*session, error) {
	return func(b compute.Backend) (*session, error) {
		store := model.NewStore()
		if err := store.SetRNGStateFromSeed(seed); err != nil {
			return nil, err
		}
		trainer := train.NewTrainer(b, store, func(scope *model.Scope, _ any, inputs []*graph.Node) []*graph.Node {
			return net(scope, inputs)
		}, loss, optimizer.Adam().LearningRate(1e-3).Done(), nil, nil)
		r := rand.New(rand.NewPCG(seed, 1))
		return &session{
			step: func(size int) (float64, error) {
				inputs, labels := batch(r, size)
				metrics, err := trainer.TrainStep(train.Batch{Inputs: inputs, Labels: labels})
				if err != nil {
					return 0, fmt.Errorf("size %d: %w", size, err)
				}
				l := float64(tensors.ToScalar[float32](metrics[0]))
				for _, m := range metrics {
					if err := m.FinalizeAll(); err != nil {
						return 0, err
					}
				}
				return l, nil
			},
			close: store.Finalize,
		}, nil
	}
}

// normals is a tensor of normal numbers.
func normals(r *rand.Rand, dims ...int) *tensors.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(r.NormFloat64())
	}
	return tensors.FromFlatDataAndDimensions(values, dims...)
}

// integers is a tensor of integers below n.
func integers(r *rand.Rand, n int, dims ...int) *tensors.Tensor {
	size := 1
	for _, d := range dims {
		size *= d
	}
	values := make([]int32, size)
	for i := range values {
		values[i] = r.Int32N(int32(n))
	}
	return tensors.FromFlatDataAndDimensions(values, dims...)
}
