package nn_test

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// Layers one after another, of which some learn.
func ExampleNewSequential() {
	model := nn.NewSequential(nn.NewConv2d(1, 4, 3, nn.Seed(1)), nn.ReLU{}, nn.GlobalAvgPool{}, nn.NewLinear(4, 10))
	images := millrace.Uniform(millrace.Float32, 1, 8, 1, 28, 28)
	fmt.Println(model.Forward(nn.Eval(), images).Shape())
	// Output: [8 10]
}

// Scores of two classes, and the classes that are right. The loss is a mean over the batch.
func ExampleCrossEntropy() {
	scores := millrace.FromSlice([]float32{2, 0, 0, 2, 0, 2}, 3, 2)
	classes := millrace.FromSlice([]int32{0, 1, 0})
	fmt.Printf("%.4f\n", nn.CrossEntropy(scores, classes))
	fmt.Printf("%.4f\n", nn.CrossEntropy(scores, classes, nn.Each()))
	// Output:
	// 0.7936
	// [0.1269 0.1269 2.1269]
}

// A sequence whose first position is padding: no other one looks at it, and its own row,
// which sees nothing, is finite.
func ExampleMultiHeadAttention_Attend() {
	attention := nn.NewMultiHeadAttention(8, 2, nn.Seed(1))
	attention.Causal = true
	x := millrace.Normal(millrace.Float32, 1, 1, 4, 8) // batch, positions, features
	padding := millrace.FromSlice([]bool{true, false, false, false}, 1, 4)
	y := attention.Attend(nn.Eval(), x, x, x, nn.Hide{Keys: padding})
	fmt.Println(y.Shape(), y.IsFinite().All())
	// Output: [1 4 8] True
}

// A file whose names begin otherwise, and of which only a part is wanted.
func ExampleLoadOptions_Load() {
	first := struct{ Encoder *nn.Linear }{nn.NewLinear(12, 16)}
	opt := nn.LoadOptions{
		Partial: true,
		Rename: func(entry string) string {
			return map[string]string{"layers.0.weight": "encoder.weight", "layers.0.bias": "encoder.bias"}[entry]
		},
	}
	fmt.Println(opt.Load("testdata/mlp.safetensors", first))
	// Output: <nil>
}
