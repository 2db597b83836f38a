package millrace_test

import (
	"fmt"

	"github.com/millrace-go/millrace"
)

func ExampleLinspace() {
	fmt.Println(millrace.Linspace(millrace.Float32, 0, 1, 5))
	// Output:
	// [0.   0.25 0.5  0.75 1.  ]
}

func ExampleSplit() {
	x := millrace.Arange(millrace.Int32, 0, 8, 1).Reshape(2, 4)
	for _, part := range millrace.Split(x, 1, 1, 3) {
		fmt.Println(part)
	}
	// Output:
	// [[0]
	//  [4]]
	// [[1 2 3]
	//  [5 6 7]]
}

func ExampleTensor_Diag() {
	v := millrace.FromSlice([]int32{1, 2, 3})
	m := v.Diag(1)
	fmt.Println(m)
	fmt.Println(m.Diag(1), m.Trace())
	// Output:
	// [[0 1 0 0]
	//  [0 0 2 0]
	//  [0 0 0 3]
	//  [0 0 0 0]]
	// [1 2 3] 0
}
