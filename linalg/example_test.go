package linalg_test

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/linalg"
)

// A line through points by least squares: the normal equations, solved.
func ExampleSolve() {
	x := millrace.FromSlice([]float64{0, 1, 2, 3})
	y := millrace.FromSlice([]float64{1, 3, 5, 7})
	a := millrace.Stack(1, millrace.Ones(millrace.Float64, 4), x)
	w := linalg.Solve(a.T().MatMul(a), a.T().MatMul(y))
	fmt.Printf("%.3f\n", w)
	// Output: [1.000 2.000]
}

// The best line through points that are not on one line.
func ExampleLeastSquares() {
	x := millrace.FromSlice([]float64{0, 1, 2, 3})
	y := millrace.FromSlice([]float64{1.1, 2.9, 5.1, 6.9})
	a := millrace.Stack(1, millrace.Ones(millrace.Float64, 4), x)
	fmt.Printf("%.3f\n", linalg.LeastSquares(a, y))
	// Output: [1.060 1.960]
}

// For a matrix without an inverse the result carries an error.
func ExampleInverse() {
	a := millrace.FromSlice([]float64{2, 0, 0, 4}, 2, 2)
	fmt.Println(linalg.Inverse(a))
	err := linalg.Inverse(millrace.Ones(millrace.Float64, 2, 2)).Err()
	fmt.Println(err != nil)
	// Output:
	// [[0.5  0.  ]
	//  [0.   0.25]]
	// true
}

// The derivative of log det A is the inverse of Aᵀ.
func ExampleSlogDet() {
	a := autodiff.Watch(millrace.FromSlice([]float64{2, 0, 0, 4}, 2, 2))
	_, logabs := linalg.SlogDet(a)
	d, err := autodiff.Grad(logabs, a)
	fmt.Println(d[0], err)
	// Output:
	// [[0.5  0.  ]
	//  [0.   0.25]] <nil>
}

// The best approximation of rank 1.
func ExampleSVD() {
	a := millrace.FromSlice([]float64{3, 0, 0, 0, 2, 0}, 2, 3)
	u, s, vt := linalg.SVD(a)
	first := millrace.R(0, 1)
	fmt.Printf("%.1f\n", s)
	fmt.Printf("%.1f\n", u.Slice(millrace.All, first).Mul(s.Slice(first)).MatMul(vt.Slice(first)))
	// Output:
	// [3.0 2.0]
	// [[3.0 0.0 0.0]
	//  [0.0 0.0 0.0]]
}
