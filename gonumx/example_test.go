package gonumx_test

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/gonumx"
)

// Symmetric, triangular and banded matrices become dense, and a transposed one a view.
func ExampleFromMatrix() {
	s := mat.NewSymDense(2, []float64{1, 2, 0, 3}) // only the upper triangle is read
	fmt.Println(gonumx.FromMatrix(s))
	fmt.Println(gonumx.FromMatrix(mat.NewDense(1, 3, []float64{1, 2, 3}).T()).Shape())
	// Output:
	// [[1. 2.]
	//  [2. 3.]]
	// [3 1]
}

// Values of float32 come back as gonum's float64.
func ExampleMatrix() {
	x := millrace.FromSlice([]float32{3, 4}, 1, 2)
	m, err := gonumx.Matrix(x.Div(x.Norm2(1).Unsqueeze(1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, c := m.Dims()
	fmt.Printf("%d by %d, norm %.1f\n", r, c, mat.Norm(m, 2))
	// Output: 1 by 2, norm 1.0
}
