package millrace_test

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace"
)

// Softmax gives the probabilities of two classes for three samples. It fuses with the operations
// before it: all of this is one kernel.
func ExampleTensor_Softmax() {
	logits := millrace.FromSlice([]float32{0, 0, 4, 0, -1, 1}, 3, 2)
	fmt.Println(logits.MulScalar(0.5).Softmax(-1))
	// Output:
	// [[0.5        0.5       ]
	//  [0.880797   0.11920292]
	//  [0.26894143 0.7310586 ]]
}

func ExampleCrossEntropy() {
	logits := millrace.FromSlice([]float32{0, 0, 4, 0, -1, 1}, 3, 2)
	targets := millrace.FromSlice([]int32{1, 0, 1})
	loss := millrace.CrossEntropy(logits, targets)
	fmt.Println(loss, loss.Mean())
	// A target that is no class is an error when the loss is computed.
	_, err := millrace.Values[float32](millrace.CrossEntropy(logits, targets.AddScalar(1)))
	fmt.Println(errors.Is(err, millrace.ErrIndex))
	// Output:
	// [0.6931472  0.01814985 0.12692809] 0.27940837
	// true
}

// This is a layer. The product, the bias and the activation are one kernel.
func ExampleTensor_MatMul() {
	x := millrace.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	w := millrace.FromSlice([]float32{1, 0, 0, 1, -1, 1}, 3, 2)
	b := millrace.FromSlice([]float32{0.5, -5})
	fmt.Println(x.MatMul(w).Add(b).Relu())
	// A transposed weight is read in the layout in which it is stored, without a copy.
	fmt.Println(x.MatMul(x.T()))
	// Output:
	// [[0. 0.]
	//  [0. 6.]]
	// [[14. 32.]
	//  [32. 77.]]
}

func ExampleEinsum() {
	a := millrace.Arange(millrace.Float32, 0, 6, 1).Reshape(2, 3)
	b := millrace.Arange(millrace.Float32, 0, 12, 1).Reshape(3, 4)
	square := millrace.Arange(millrace.Int32, 0, 9, 1).Reshape(3, 3)
	fmt.Println(millrace.Einsum("ij,jk->ik", a, b))      // product
	fmt.Println(millrace.Einsum("ij,ij->i", a, a))       // of rows with themselves
	fmt.Println(millrace.Einsum("ii->i", square))        // diagonal
	fmt.Println(millrace.Einsum("ii", square))           // trace
	fmt.Println(millrace.Einsum("ij,kl->", a, b))        // of everything
	fmt.Println(millrace.Einsum("...j->...", a).Shape()) // of the last dimension
	// Output:
	// [[20. 23. 26. 29.]
	//  [56. 68. 80. 92.]]
	// [ 5. 50.]
	// [0 4 8]
	// 12
	// 990.0
	// [2]
}

// Take looks up rows in a table of embeddings. Indices out of range are errors by default. With
// IndexClamp they are replaced by the nearest index in range.
func ExampleTensor_Take() {
	table := millrace.FromSlice([]float32{0, 0, 1, 10, 2, 20, 3, 30}, 4, 2)
	words := millrace.FromSlice([]int32{3, 1, 3})
	fmt.Println(table.Take(words, 0))
	fmt.Println(table.Take(words.AddScalar(1), 0, millrace.IndexClamp).Sum(0))
	// Output:
	// [[ 3. 30.]
	//  [ 1. 10.]
	//  [ 3. 30.]]
	// [ 8. 80.]
}

// The gradient of a look-up is an IndexAdd. A row that was looked up twice gets the sum of both
// gradients, added in their order.
func ExampleTensor_IndexAdd() {
	words := millrace.FromSlice([]int32{3, 1, 3})
	grad := millrace.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	fmt.Println(millrace.Zeros(millrace.Float32, 4, 2).IndexAdd(words, grad, 0))
	// Output:
	// [[0. 0.]
	//  [3. 4.]
	//  [0. 0.]
	//  [6. 8.]]
}

// ScatterSet has an index for every update. If several updates set one element, the last one stays.
func ExampleTensor_ScatterSet() {
	x := millrace.Zeros(millrace.Int32, 2, 4)
	at := millrace.FromSlice([]int64{0, 2, 2, 3, 0, 1}, 2, 3)
	u := millrace.FromSlice([]int32{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(x.ScatterSet(at, u, 1))
	fmt.Println(x.ScatterMax(at.AddScalar(2), u, 1, millrace.IndexDrop))
	// Output:
	// [[1 0 3 0]
	//  [5 6 0 4]]
	// [[0 0 1 0]
	//  [0 0 5 6]]
}

// The convolution and the activation are one kernel. Pooling follows.
func ExampleTensor_Conv() {
	image := millrace.Arange(millrace.Float32, 0, 16, 1).Reshape(1, 1, 4, 4)
	edges := millrace.FromSlice([]float32{-1, 1, -1, 1, -1, 1, 1, 1}, 2, 1, 2, 2)
	maps := image.Conv(edges, millrace.ConvOptions{}).Relu()
	fmt.Println(maps.Shape())
	fmt.Println(maps.MaxPool(millrace.Window{Size: 3}, millrace.Window{Size: 3}).Reshape(2))
	same := image.Conv(edges, millrace.ConvOptions{Stride: []int{2, 2}, Padding: [][2]int{{1, 1}, {1, 1}}})
	fmt.Println(same.Shape())
	// Output:
	// [1 2 3 3]
	// [ 2. 30.]
	// [1 2 3 3]
}

func ExampleTopK() {
	x := millrace.FromSlice([]float32{0.1, 0.7, 0.2, 0.5, 0.2, 0.3}, 2, 3)
	values, classes := millrace.TopK(x, 2, -1)
	fmt.Println(values)
	fmt.Println(classes)
	// Output:
	// [[0.7 0.2]
	//  [0.5 0.3]]
	// [[1 2]
	//  [0 2]]
}

// Assign returns a tensor in which a slice has other values; the operand does not change. If the
// operand is not needed any more, its memory is reused.
func ExampleTensor_Assign() {
	x := millrace.Zeros(millrace.Int32, 2, 4)
	row := millrace.FromSlice([]int32{1, 2})
	fmt.Println(x.Assign(row, millrace.All, millrace.R(1, 3)))
	fmt.Println(x.AssignScalar(7, millrace.At(-1)))
	// Output:
	// [[0 1 2 0]
	//  [0 1 2 0]]
	// [[0 0 0 0]
	//  [7 7 7 7]]
}
