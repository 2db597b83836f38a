package autodiff_test

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
)

// This example fits a line through three points by gradient descent.
func Example() {
	x, y := millrace.FromSlice([]float64{0, 1, 2}), millrace.FromSlice([]float64{1, 3, 5})
	slope, start := autodiff.Watch(millrace.Scalar(0.0)), autodiff.Watch(millrace.Scalar(0.0))
	for range 200 {
		loss := x.Mul(slope).Add(start).Sub(y).Square().Mean()
		grads, err := autodiff.Grad(loss, slope, start)
		if err != nil {
			fmt.Println(err)
			return
		}
		slope.Set(slope.Sub(grads[0].MulScalar(0.2))) // slope stays watched
		start.Set(start.Sub(grads[1].MulScalar(0.2)))
	}
	fmt.Printf("%.2f %.2f\n", slope, start)
	// Output: 2.00 1.00
}

// The gradient by each factor of a product is the other factor.
func ExampleGrad() {
	x := autodiff.Watch(millrace.FromSlice([]float32{1, 2, 3}))
	y := autodiff.Watch(millrace.FromSlice([]float32{4, 5, 6}))
	grads, err := autodiff.Grad(x.Mul(y).Sum(), x, y)
	fmt.Println(grads[0], grads[1], err)
	// Output: [4. 5. 6.] [1. 2. 3.] <nil>
}

// ValueAndGrad gives the value and the gradients of a function of tensors that are not watched.
func ExampleValueAndGrad() {
	length := func(in []*millrace.Tensor) *millrace.Tensor { return in[0].Norm2() }
	value, grads, err := autodiff.ValueAndGrad(length, millrace.FromSlice([]float32{3, 4}))
	fmt.Println(value, grads[0], err)
	// Output: 5.0 [0.6 0.8] <nil>
}

// Gradients that are followed have gradients: the second derivative of x³ is 6x.
func ExampleOptions_Grad() {
	x := autodiff.Watch(millrace.FromSlice([]float64{1, 2}))
	first, err := autodiff.Options{Follow: true}.Grad(x.PowInt(3).Sum(), x)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := autodiff.Grad(first[0].Sum(), x)
	fmt.Println(first[0], second[0], err)
	// Output: [ 3. 12.] [ 6. 12.] <nil>
}

// A result of several elements needs a weight for each of them.
func ExampleVJP() {
	x := autodiff.Watch(millrace.FromSlice([]float64{1, 2, 3}))
	y := x.CumSum(0)
	weights := millrace.FromSlice([]float64{1, 0, 10})
	grads, err := autodiff.VJP([]*millrace.Tensor{y}, []*millrace.Tensor{weights}, []*millrace.Tensor{x})
	fmt.Println(grads[0], err)
	// Output: [11. 10. 10.] <nil>
}

// JVP says how fast the results change when the arguments move along a direction.
func ExampleJVP() {
	f := func(in []*millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{in[0].Square()} }
	x, along := millrace.FromSlice([]float64{1, 2, 3}), millrace.FromSlice([]float64{1, 0, 1})
	out, d, err := autodiff.JVP(f, []*millrace.Tensor{x}, []*millrace.Tensor{along})
	fmt.Println(out[0], d[0], err)
	// Output: [1. 4. 9.] [2. 0. 6.] <nil>
}

func ExampleHessianVectorProduct() {
	f := func(in []*millrace.Tensor) *millrace.Tensor { return in[0].PowInt(3).Sum() }
	x, v := millrace.FromSlice([]float64{1, 2}), millrace.FromSlice([]float64{1, 10})
	hv, err := autodiff.HessianVectorProduct(f, []*millrace.Tensor{x}, []*millrace.Tensor{v})
	fmt.Println(hv[0], err)
	// Output: [  6. 120.] <nil>
}

// A checkpoint keeps no value between its argument and its result: the function runs once more when
// the gradient is taken.
func ExampleCheckpoint() {
	x := autodiff.Watch(millrace.FromSlice([]float64{1, 2}))
	y := autodiff.Checkpoint(func(in []*millrace.Tensor) []*millrace.Tensor {
		return []*millrace.Tensor{in[0].Square().Square()}
	}, x)
	grads, err := autodiff.Grad(y[0].Sum(), x)
	fmt.Println(grads[0], err)
	// Output: [ 4. 32.] <nil>
}

// Rounding has the gradient 0. A straight-through estimator passes the gradient on.
func ExampleCustom() {
	round := func(in []*millrace.Tensor) []*millrace.Tensor { return []*millrace.Tensor{in[0].Round()} }
	pass := func(in, out, d []*millrace.Tensor) []*millrace.Tensor { return d }
	x := autodiff.Watch(millrace.FromSlice([]float64{0.2, 1.7}))
	y := autodiff.Custom(round, pass, x)[0]
	grads, err := autodiff.Grad(y.Square().Sum(), x)
	fmt.Println(y, grads[0], err)
	// Output: [0. 2.] [0. 4.] <nil>
}

// A detached tensor is a constant for gradients.
func ExampleDetach() {
	x := autodiff.Watch(millrace.FromSlice([]float64{2, 3}))
	grads, err := autodiff.Grad(x.Mul(autodiff.Detach(x)).Sum(), x)
	fmt.Println(grads[0], err)
	// Output: [2. 3.] <nil>
}
