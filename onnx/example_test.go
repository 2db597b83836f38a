package onnx_test

import (
	"context"
	"fmt"
	"os"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/onnx"
)

// A model runs with inputs of any size that it does not fix.
func ExampleOpen() {
	m, err := onnx.Open("testdata/linear.onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Inputs(), m.Outputs())
	for _, x := range []*millrace.Tensor{
		millrace.FromSlice([]float32{1, 2}, 1, 2),
		millrace.FromSlice([]float32{1, 2, 3, 4}, 2, 2),
	} {
		out, err := m.Run(context.Background(), map[string]*millrace.Tensor{"x": x})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out["y"])
	}
	// Output:
	// [x] [y]
	// [[1.5]]
	// [[1.5]
	//  [4.5]]
}

// A model may be part of the program.
func ExampleNew() {
	data, err := os.ReadFile("testdata/linear.onnx") // or embedded
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := millrace.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := onnx.New(d, data)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range m.State() {
		fmt.Println(p.Name, p.Tensor().Shape())
	}
	// Output:
	// w [2 1]
	// b [1]
}
