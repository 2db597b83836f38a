//go:build cgo && linux && amd64 && !android && !noopengl

package gputest_test

import (
	"math"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
	_ "github.com/millrace-go/millrace/runtime/opengl"
	_ "github.com/millrace-go/millrace/runtime/webgpu"
)

// TestThreeDevices: a program that uses the CPU, WebGPU and OpenGL at once gets the right values
// from all of them, also for tensors that move between them.
func TestThreeDevices(t *testing.T) {
	var devices []*millrace.Device
	for _, name := range []string{"cpu", "webgpu", "opengl"} {
		d, err := millrace.Open(name)
		if err != nil {
			gputest.Missing(t, name, err)
		}
		defer d.Close()
		devices = append(devices, d)
	}
	const rows, cols = 64, 96
	data := make([]float32, rows*cols)
	for i := range data {
		data[i] = float32(i*7919%1013)/500 - 1
	}
	program := func(d *millrace.Device, scale float64) ([]float32, error) {
		x := millrace.FromSliceOn(d, data, rows, cols).MulScalar(scale)
		return millrace.Values[float32](x.Gelu().MatMul(x.T()).Softmax(1).Add(x.Sum(1)))
	}
	var all sync.WaitGroup
	results := make([][][]float32, len(devices))
	for i, d := range devices {
		results[i] = make([][]float32, 20)
		all.Go(func() {
			for turn := range results[i] {
				v, err := program(d, 1+float64(turn)/10)
				if err != nil {
					t.Errorf("%s: %v", d.Name(), err)
					return
				}
				results[i][turn] = v
			}
		})
	}
	all.Wait()
	for i, d := range devices {
		for turn, got := range results[i] {
			for j, want := range results[0][turn] {
				if len(got) != rows*rows || math.Abs(float64(got[j]-want)) > 1e-4*(1+math.Abs(float64(want))) {
					t.Fatalf("%s, turn %d: element %d of %d is not %v", d.Name(), turn, j, len(got), want)
				}
			}
		}
	}
	// In a cycle: each device adds to the result of the previous one.
	x := millrace.FromSliceOn(devices[0], data, rows, cols)
	for _, d := range append(devices[1:], devices[0]) {
		x = x.AddScalar(1).To(d)
	}
	got, err := millrace.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if want := data[i] + 3; math.Abs(float64(v-want)) > 1e-6 {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
}
