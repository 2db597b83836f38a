package millrace_test

import (
	"fmt"
	"math"

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

func ExampleTensor_Format() {
	x := millrace.FromSlice([]float32{0.5, -1.25, 100, 1e-3}, 2, 2)
	fmt.Printf("%.2f\n%+v\n", x, x)
	fmt.Printf("%4d\n", x.Cast(millrace.Int32))
	// Output:
	// [[  0.50  -1.25]
	//  [100.00   0.00]]
	// float32[2 2] on cpu
	// [[ 5.00e-01 -1.25e+00]
	//  [ 1.00e+02  1.00e-03]]
	// [[   0   -1]
	//  [ 100    0]]
}

func ExamplePrintOptions() {
	x := millrace.Arange(millrace.Float32, 0, 20, 1).DivScalar(3)
	fmt.Println(millrace.PrintOptions{Threshold: 10, Edge: 2, Precision: 3}.Sprint(x))
	// Output:
	// [0.    0.333 ... 6.    6.333]
}

func ExampleMaskedSelect() {
	x := millrace.FromSlice([]float32{1, -2, 3, -4, 5, -6}, 2, 3)
	above := x.GtScalar(0)
	fmt.Println(millrace.MaskedSelect(x, above))
	fmt.Println(millrace.NonZero(millrace.Int32, above))
	fmt.Println(above.SumAs(millrace.Int32, 1))
	// Output:
	// [1. 3. 5.]
	// [[0 0]
	//  [0 2]
	//  [1 1]]
	// [2 1]
}

func ExampleUniqueAll() {
	x := millrace.FromSlice([]int32{3, 1, 3, 2, 1, 3})
	values, inverse, counts := millrace.UniqueAll(millrace.Int64, x)
	fmt.Println(values, inverse, counts)
	// Output:
	// [1 2 3] [2 0 2 1 0 2] [2 1 3]
}

func ExampleHistogram() {
	x := millrace.FromSlice([]float32{0.1, 0.4, 0.45, 0.8, 1})
	counts, edges := millrace.Histogram(millrace.Int64, x, 4, 0, 1)
	fmt.Println(counts, edges)
	fmt.Println(x.Median(), x.Quantile(0.25))
	// Output:
	// [1 2 0 2] [0.   0.25 0.5  0.75 1.  ]
	// 0.45 0.4
}

// A deck is shuffled and dealt. A generator gives the same seeds on every machine, and its state can
// be saved.
func ExampleGenerator() {
	g := millrace.NewGenerator(2026)
	deck := millrace.Permutation(millrace.Int32, g.Seed(), 52)
	fmt.Println(deck.Slice(millrace.R(0, 5)))
	state, err := g.MarshalBinary()
	if err != nil {
		panic(err)
	}
	dice := millrace.Integers(millrace.Int32, g.Seed(), 1, 7, 6)
	var again millrace.Generator
	if err := again.UnmarshalBinary(state); err != nil {
		panic(err)
	}
	same, err := millrace.Equal(dice, millrace.Integers(millrace.Int32, again.Seed(), 1, 7, 6))
	fmt.Println(same, err)
	// Output:
	// [ 1  9 49 17 45]
	// true <nil>
}

func ExampleRFFT() {
	// The wave has two periods in eight elements.
	x := millrace.Arange(millrace.Float32, 0, 8, 1).MulScalar(math.Pi / 2).Cos()
	re, im := millrace.RFFT(x, 0)
	fmt.Printf("%.1f\n", re.Square().Add(im.Square()).Sqrt())
	fmt.Printf("%.1f\n", millrace.IRFFT(re, im, 8, 0).Abs())
	// Output:
	// [0.0 0.0 4.0 0.0 0.0]
	// [1.0 0.0 1.0 0.0 1.0 0.0 1.0 0.0]
}

func ExampleResize() {
	image := millrace.FromSlice([]float32{0, 10, 20, 30}, 2, 2)
	fmt.Printf("%.1f\n", millrace.Resize(image, millrace.ResizeOptions{Mode: millrace.ResizeLinear}, 2, 4))
	// Output:
	// [[ 0.0  2.5  7.5 10.0]
	//  [20.0 22.5 27.5 30.0]]
}
