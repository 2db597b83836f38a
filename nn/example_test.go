package nn_test

import (
	"fmt"
	"os"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/nn"
)

// classifier is a model: a struct of layers with a Forward method.
type classifier struct {
	Hidden *nn.Linear
	Out    *nn.Linear
}

func newClassifier(opts ...nn.Option) *classifier {
	return &classifier{nn.NewLinear(2, 8, opts...), nn.NewLinear(8, 2, opts...)}
}

func (m *classifier) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
	return m.Out.Forward(c, m.Hidden.Forward(c, x).Tanh())
}

// A training step by hand: forward pass, gradients, new weights. The steps of package optim do
// the same in one line, with better update rules.
func Example() {
	m := newClassifier(nn.Seed(1))
	x := millrace.FromSlice([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2)
	y := millrace.FromSlice([]int32{0, 1, 1, 0}) // exclusive or
	d, err := millrace.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 200 {
		err := d.Scope(func(sc *millrace.Scope) error {
			c := nn.NewCtx(nn.CtxOptions{Train: true, Watch: true, Scope: sc})
			loss := nn.CrossEntropy(m.Forward(c, x.To(sc)), y)
			params, handles := c.Watched()
			grads, err := autodiff.Grad(loss, handles...)
			if err != nil {
				return err
			}
			if err := c.Commit(); err != nil {
				return err
			}
			for i, p := range params {
				p.Tensor().Set(p.Tensor().Sub(grads[i]))
			}
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(m.Forward(nn.Eval(), x).ArgMax(-1))
	// Output: [0 1 1 0]
}

func ExampleParams() {
	m := struct {
		Embed  *nn.Embedding `nn:"wte"`
		Layers []nn.Sequential
		Norm   *nn.LayerNorm
	}{
		nn.NewEmbedding(10, 4),
		[]nn.Sequential{nn.NewSequential(nn.NewLinear(4, 4, nn.NoBias()), nn.GELU{}), nn.NewSequential(nn.NewBatchNorm1d(4, nn.Plain()))},
		nn.NewLayerNorm(4),
	}
	for _, p := range nn.Params(m) {
		fmt.Println(p.Name, p.Tensor().Shape(), p.Buffer())
	}
	// Output:
	// wte.weight [10 4] false
	// layers.0.0.weight [4 4] false
	// layers.1.0.running_mean [4] true
	// layers.1.0.running_var [4] true
	// layers.1.0.num_batches_tracked [] true
	// norm.weight [4] false
	// norm.bias [4] false
}

// Weights that PyTorch saved, by safetensors.torch.save_file(model.state_dict(), path),
// load into a model with the same names.
func ExampleLoad() {
	m := struct{ Layers []*nn.Linear }{[]*nn.Linear{nn.NewLinear(12, 16), nn.NewLinear(16, 16), nn.NewLinear(16, 5)}}
	fmt.Println(nn.Load("testdata/mlp.safetensors", m))

	m.Layers = m.Layers[:2]
	fmt.Println(nn.Load("testdata/mlp.safetensors", m))
	// Output:
	// <nil>
	// loading testdata/mlp.safetensors: the file and the model differ:
	// 	missing in the model: layers.2.bias, layers.2.weight; nn.LoadOptions{Partial: true}.Load leaves them out
}

func ExampleSave() {
	file, err := os.CreateTemp("", "*.safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	file.Close()
	defer os.Remove(file.Name())

	// The state of random numbers is part of a training run's state, like an optimiser's.
	m, random := newClassifier(), nn.NewRandom(1)
	if err := nn.Save(file.Name(), m, random); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(nn.Load(file.Name(), newClassifier(), nn.NewRandom(2)))
	// Output: <nil>
}
