package millrace_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace-go/millrace"
)

// The layer takes batches of any size. Its function is called with values for the first size only.
// Runs at other sizes repeat the recorded operations.
func ExampleNewRecording() {
	dev, err := millrace.Open("cpu:compile=off,cache=off")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	weights := millrace.OnesOn(dev, millrace.Float32, 3, 2)
	layer := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{in[0].MatMul(weights).Relu()}, nil
	}, millrace.Axes{"batch", ""})
	s := dev.NewStream()
	for batch := 2; batch < 6; batch++ {
		out, err := layer.Run(context.Background(), millrace.OnesOn(s, millrace.Float32, batch, 3))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out[0].Shape(), dev.Stats().Recordings)
	}
	// Output:
	// [2 2] 1
	// [3 2] 1
	// [4 2] 1
	// [5 2] 1
}

// The training step sets its weight. RunWith returns before the step has run, so the program continues
// with the next batch. It waits for a loss only when it reads the loss.
func ExampleRecording_RunWith() {
	dev, err := millrace.Open("cpu:compile=off,cache=off")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	s := dev.NewStream()
	w := millrace.ZerosOn(s, millrace.Float32, 1)
	step := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		x, y := in[0], in[1]
		diff := x.Mul(w).Sub(y)
		w.Set(w.Sub(diff.Mul(x).Mean().MulScalar(0.25)))
		return []*millrace.Tensor{diff.Square().Mean()}, nil
	})
	defer step.Release()
	for i := range 10 {
		x := millrace.FromSliceOn(s, []float32{1, 2}, 2)
		y := millrace.FromSliceOn(s, []float32{3, 6}, 2)
		loss, err := step.RunWith(context.Background(), millrace.RunOptions{Give: []bool{true, true}, NoWait: true}, x, y)
		if err != nil {
			fmt.Println(err)
			return
		}
		if i%3 == 0 {
			value, err := millrace.Item[float32](loss[0])
			fmt.Printf("step %d: loss %.4f %v\n", i, value, err)
		}
		loss[0].Release()
	}
	// Output:
	// step 0: loss 22.5000 <nil>
	// step 3: loss 0.0626 <nil>
	// step 6: loss 0.0002 <nil>
	// step 9: loss 0.0000 <nil>
}

// A small computation runs very often. Its inputs and results stay in the same memory.
func ExampleRecording_Bind() {
	dev, err := millrace.Open("cpu:cache=off")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	s := dev.NewStream()
	w := millrace.FromSliceOn(s, []float64{1, 2}, 2)
	step := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		diff := w.Sub(in[0])
		w.Set(w.Sub(diff.Mul(in[1])))
		return []*millrace.Tensor{diff.Square()}, nil
	})
	x, rate := millrace.FromSliceOn(s, []float64{3, 6}, 2), millrace.ScalarOn(s, 0.5)
	b, err := step.Bind(x, rate)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	err = b.RunN(3)
	loss, _ := millrace.Values[float64](b.Results()[0])
	fmt.Println(loss, err)
	err = millrace.SetInput(b, 1, 1.0) // the rate
	if err == nil {
		err = b.Run()
	}
	weights, _ := millrace.Values[float64](w)
	fmt.Println(weights, err)
	// Output:
	// [0.25 1] <nil>
	// [3 6] <nil>
}

// score is the part of a program whose first run should be fast.
func score(p millrace.Place) ([]float64, error) {
	x := millrace.FromSliceOn(p, []float64{3, 1, 2, 5}, 2, 2)
	return millrace.Values[float64](x.Sub(x.MeanKeep(1)).Square().Sum(1).Sqrt())
}

// record runs score and exports its plans. A build step of the program would do the same, and write
// a file that the program embeds.
func record() (bundle []byte, err error) {
	dev, err := millrace.Open("cpu")
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	if _, err := score(dev); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = millrace.ExportPlans(&buf, millrace.PlanFilter{Device: "cpu"})
	return buf.Bytes(), err
}

func ExampleExportPlans() {
	bundle, err := record()
	fmt.Println(len(bundle) > 0, err)
	// Output: true <nil>
}

// A program embeds the file that ExportPlans wrote:
//
//	//go:embed app.plans
//	var plans []byte
func ExampleUsePlans() {
	plans, err := record()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := millrace.UsePlans(plans); err != nil {
		fmt.Println("starting slowly:", err)
	}
	dev, err := millrace.Open("cpu:cache=off")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	v, err := score(dev)
	s := dev.Stats()
	fmt.Println(v, err)
	fmt.Println(s.Explorations, "explorations,", s.Cache.Bundled, "plans from the bundle")
	// Output:
	// [1.4142135623730951 2.1213203435596424] <nil>
	// 0 explorations, 1 plans from the bundle
}
