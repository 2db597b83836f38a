package millrace_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
