package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/millrace-go/millrace"
)

const chainRuns = 200

// chain is 40 ops on one vector: arithmetic, a function and scalars.
func chain(x *millrace.Tensor) *millrace.Tensor {
	y := x
	for range 8 {
		y = y.MulScalar(0.9).AddScalar(0.1).Tanh().Mul(x).Abs()
	}
	return y
}

// timeChain runs the chain as a program does for the first time, and then again, each time on a new
// stream.
func timeChain(dev *millrace.Device, r *report) error {
	data := make([]float32, 1000)
	for i := range data {
		data[i] = float32(i%1000)/500 - 1
	}
	var times []time.Duration
	for run := range chainRuns {
		var values []float32
		begin := time.Now()
		err := dev.NewStream().Scope(func(sc *millrace.Scope) (err error) {
			values, err = millrace.Values[float32](chain(millrace.FromSliceOn(sc, data, len(data))))
			return err
		})
		if err != nil {
			return err
		}
		times = append(times, time.Since(begin))
		if run == 0 {
			r.Values = values
		} else if !slices.Equal(values, r.Values) {
			return fmt.Errorf("run %d gives other values than the first", run)
		}
	}
	r.First, times = times[0], times[1:]
	slices.Sort(times)
	r.Hot = times[len(times)/2]
	return nil
}
