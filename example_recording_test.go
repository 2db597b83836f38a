package millrace_test

import (
	"fmt"

	"github.com/millrace-go/millrace"
)

// A layer for batches of any size: its function is called with values for the first
// size, and for others what it did is run.
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
		out, err := layer.Run(s, []*millrace.Tensor{millrace.OnesOn(s, millrace.Float32, batch, 3)}, nil)
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
