package millrace_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace-go/millrace"
)

// Ops are recorded. Reading values runs them, here as one kernel.
func Example() {
	x := millrace.FromSlice([]float32{-2, -1, 0, 1, 2})
	y := x.Mul(x).AddScalar(1).Sqrt()
	v, err := millrace.Values[float32](y)
	fmt.Println(v, err)
	// Output: [2.236068 1.4142135 1 1.4142135 2.236068] <nil>
}

// Control flow may depend on values, because functions are not traced.
func Example_controlFlow() {
	// Newton's method for the square roots of 2, 3 and 5.
	a := millrace.FromSlice([]float64{2, 3, 5})
	x, steps := a, 0
	for {
		x = x.Add(a.Div(x)).MulScalar(0.5)
		steps++
		worst, err := millrace.Item[float64](x.Mul(x).Sub(a).Abs().Max())
		if err != nil {
			fmt.Println(err)
			return
		}
		if worst < 1e-12 {
			break
		}
	}
	fmt.Println(x, steps)
	// Output: [1.41421356 1.73205081 2.23606798] 5
}

func ExampleFromSlice() {
	x := millrace.FromSlice([]int32{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(x)
	fmt.Println(x.DType(), x.Shape())
	// Output:
	// [[1 2 3]
	//  [4 5 6]]
	// int32 [2 3]
}

func ExampleArange() {
	fmt.Println(millrace.Arange(millrace.Int64, 0, 10, 3))
	fmt.Println(millrace.Arange(millrace.Float32, 1, 0, -0.25))
	// Output:
	// [0 3 6 9]
	// [1.   0.75 0.5  0.25]
}

// The same seed gives the same numbers, on every device and each time they are computed.
func ExampleUniform() {
	a := millrace.Uniform(millrace.Float32, 42, 1000)
	b := millrace.Uniform(millrace.Float32, 42, 1000)
	same, err := millrace.Equal(a, b)
	fmt.Println(same, err)
	in, err := millrace.Item[float32](a.GeScalar(0).And(a.LtScalar(1)).Cast(millrace.Float32).Sum())
	fmt.Println(in, err)
	// Output:
	// true <nil>
	// 1000 <nil>
}

// Shapes are aligned at the last dimension. A dimension of 1 broadcasts to any size.
func ExampleTensor_Add_broadcast() {
	row := millrace.FromSlice([]float32{1, 2, 3})
	col := millrace.FromSlice([]float32{10, 20}, 2, 1)
	fmt.Println(row.Add(col))
	// Output:
	// [[11. 12. 13.]
	//  [21. 22. 23.]]
}

// Scalars are converted to the tensor's dtype. The name has the order of the operands.
func ExampleTensor_ScalarSub() {
	x := millrace.FromSlice([]int32{1, 2, 3})
	fmt.Println(x.SubScalar(10), x.ScalarSub(10))
	// Output: [-9 -8 -7] [9 8 7]
}

func ExampleTensor_Slice() {
	x := millrace.Arange(millrace.Int32, 0, 12, 1).Reshape(3, 4)
	fmt.Println(x.Slice(millrace.All, millrace.R(1, 3)))
	fmt.Println(x.Slice(millrace.At(-1)))
	fmt.Println(x.Slice(millrace.R(-1, millrace.End, -1), millrace.R(0, millrace.End, 2)))
	// Output:
	// [[ 1  2]
	//  [ 5  6]
	//  [ 9 10]]
	// [ 8  9 10 11]
	// [[ 8 10]
	//  [ 4  6]
	//  [ 0  2]]
}

func ExampleTensor_Reshape() {
	x := millrace.Arange(millrace.Int32, 0, 6, 1)
	fmt.Println(x.Reshape(2, -1).T())
	// Output:
	// [[0 3]
	//  [1 4]
	//  [2 5]]
}

func ExampleTensor_Sum() {
	x := millrace.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	fmt.Println(x.Sum(), x.Sum(0), x.Max(-1))
	fmt.Println(x.Sub(x.MaxKeep(1)))
	// Output:
	// 21.0 [5. 7. 9.] [3. 6.]
	// [[-2. -1.  0.]
	//  [-2. -1.  0.]]
}

func ExampleWhere() {
	x := millrace.FromSlice([]float32{-1, 2, -3, 4})
	fmt.Println(millrace.Where(x.GtScalar(0), x, x.MulScalar(0.5)))
	// Output: [-0.5  2.  -1.5  4. ]
}

// Dtypes are not promoted: Cast converts an operand.
func ExampleTensor_Cast() {
	i := millrace.FromSlice([]int32{1, 2, 3})
	f := millrace.FromSlice([]float32{0.5, 0.5, 0.5})
	fmt.Println(errors.Is(i.Mul(f).Err(), millrace.ErrDType))
	fmt.Println(i.Cast(millrace.Float32).Mul(f))
	// Output:
	// true
	// [0.5 1.  1.5]
}

// A bad op does not panic: its result carries the error, and so does every result that is
// computed from it.
func ExampleOpError() {
	x := millrace.Ones(millrace.Float32, 2, 3)
	y := millrace.Ones(millrace.Float32, 4)
	_, err := millrace.Values[float32](x.Add(y).Exp().Sum())
	var op *millrace.OpError
	if errors.As(err, &op) && errors.Is(err, millrace.ErrShape) {
		file, _, _ := strings.Cut(filepath.Base(op.Caller), ":")
		fmt.Println(op.Op, op.Shapes, file)
	}
	// Output: add [(2,3) (4)] example_test.go
}

// At the end of a scope, all results that were computed from its tensors are released. Keep moves a
// result out of the scope.
func ExampleStream_Scope() {
	dev, err := millrace.Open("cpu")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	weights := millrace.FromSliceOn(dev, []float32{1, 2, 3})
	var out *millrace.Tensor
	err = dev.NewStream().Scope(func(sc *millrace.Scope) error {
		x := millrace.FromSliceOn(sc, []float32{10, 10, 10})
		out = sc.Keep(weights.Mul(x).AddScalar(1))
		return nil
	})
	fmt.Println(out, weights, err)
	// Output: [11. 21. 31.] [1. 2. 3.] <nil>
}

// Set gives a handle a new value and frees the old one.
func ExampleTensor_Set() {
	w := millrace.FromSlice([]float32{1, 1})
	for range 3 {
		gradient := w.MulScalar(0.5)
		w.Set(w.Sub(gradient))
	}
	fmt.Println(w)
	// Output: [0.125 0.125]
}

func ExampleTensor_Release() {
	x := millrace.Ones(millrace.Float32, 2)
	y := x.AddScalar(1)
	x.Release() // y keeps the values of x that it needs
	fmt.Println(y)
	fmt.Println(errors.Is(x.Exp().Err(), millrace.ErrReleased))
	// Output:
	// [2. 2.]
	// true
}

// If one operand is not on the default stream, the result is on the stream of that operand.
func ExampleDevice_NewStream() {
	dev, err := millrace.Open("cpu:threads=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	shared := millrace.FromSliceOn(dev, []float32{1, 2})
	results := make(chan string)
	for i := range 2 {
		go func() {
			request := dev.NewStream()
			defer request.Close()
			x := millrace.FullOn(request, millrace.Float32, float64(10*i), 2)
			results <- x.Add(shared).String()
		}()
	}
	a, b := <-results, <-results
	fmt.Println(min(a, b), max(a, b))
	// Output: [1. 2.] [11. 12.]
}

func ExampleTensor_To() {
	one, err1 := millrace.Open("cpu")
	two, err2 := millrace.Open("cpu:tier=0")
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	defer one.Close()
	defer two.Close()
	x := millrace.FromSliceOn(one, []float32{1, 2})
	y := millrace.FromSliceOn(two, []float32{3, 4})
	fmt.Println(x.Add(y).Err() != nil, x.To(two).Add(y))
	// Output: true [4. 6.]
}

func ExampleOptions() {
	o := millrace.Options{Device: "cpu", Threads: 2, Compile: millrace.CompileWait}
	fmt.Println(o)
	same, err := millrace.ParseOptions(o.String())
	fmt.Println(same == o, err)
	// Output:
	// cpu:threads=2,compile=wait
	// true <nil>
}

// Programs import the drivers of other devices for their side effect. The error lists the imported
// drivers, and the package to import for a known name.
func ExampleOpen_missing() {
	_, err := millrace.Open("abacus")
	fmt.Println(errors.Is(err, millrace.ErrNoDriver))
	// Output: true
}

// Counters show that a second pass over the same code, with another batch size, makes no new plan.
func ExampleDevice_Stats() {
	dev, err := millrace.Open("cpu:tier=0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	step := func(n int) error {
		x := millrace.OnesOn(dev, millrace.Float32, n, 8)
		return x.AddScalar(1).Mul(x).Sqrt().Eval()
	}
	if err := step(32); err != nil {
		fmt.Println(err)
	}
	before := dev.Stats()
	if err := step(7); err != nil {
		fmt.Println(err)
	}
	after := dev.Stats()
	fmt.Println(after.Explorations-before.Explorations, after.Runtime.Launches-before.Runtime.Launches)
	// Output: 0 1
}

// The engine calls hooks while it works.
func ExampleTrace() {
	var kernels int
	dev, err := millrace.OpenOptions(millrace.Options{Device: "cpu", Trace: &millrace.Trace{
		Flush: func(e millrace.FlushEvent) { kernels += e.Kernels },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	x := millrace.FromSliceOn(dev, []float32{1, 2, 3})
	err = x.Exp().AddScalar(1).Log().Eval()
	fmt.Println(kernels, err)
	// Output: 1 <nil>
}

func ExampleStream_Sync() {
	dev, err := millrace.Open("cpu")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	x := millrace.OnesOn(dev, millrace.Float32, 3)
	y := x.MulScalar(2)
	fmt.Println(dev.Sync(context.Background())) // y is in memory
	fmt.Println(y)
	// Output:
	// <nil>
	// [2. 2. 2.]
}

func ExampleTensor_Explain() {
	x := millrace.FromSlice([]float32{1, 2, 3})
	text := x.Mul(x).AddScalar(1).Explain()
	fmt.Println(strings.Contains(text, "mul") && strings.Contains(text, "add"))
	// Output: true
}

func ExampleAllClose() {
	a := millrace.FromSlice([]float64{1, 2})
	b := millrace.FromSlice([]float64{1, 2.00001})
	same, _ := millrace.Equal(a, b)
	near, err := millrace.AllClose(a, b, 1e-4, 0)
	fmt.Println(same, near, err)
	// Output: false true <nil>
}
