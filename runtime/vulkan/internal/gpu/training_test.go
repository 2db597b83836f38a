//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/data"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
	"github.com/millrace-go/millrace/runtime/internal/gpudriver"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
)

// opened receives the device and the engines of the driver "vulkan-engines", which tests open one at
// a time. Its settings say whether there are engines at all.
var opened struct {
	t       testing.TB
	engines *engines
}

func init() {
	gpudriver.Register(gpudriver.Driver{
		Name: "vulkan-engines", Dialect: spirv.Dialect, Adapters: Adapters,
		Open: func(adapter string) (gpurun.Device, error) {
			d, err := Open(adapter)
			if err != nil {
				return nil, err
			}
			if opened.engines = newEngines(opened.t, d); opened.engines == nil {
				opened.t.Skip("the adapter has a second queue, which cannot be held")
			}
			return stopping{d, opened.engines}, nil
		},
	})
	gpudriver.Register(gpudriver.Driver{
		Name: "vulkan-one", Dialect: spirv.Dialect, Adapters: Adapters,
		Open: func(adapter string) (gpurun.Device, error) {
			d, err := Open(adapter)
			if err != nil {
				return nil, err
			}
			if opened.engines = newEngines(opened.t, d); opened.engines == nil {
				opened.t.Skip("the adapter has a second queue, which takes no set time")
			}
			d.uploads.destroy()
			d.uploads = nil
			return stopping{d, opened.engines}, nil
		},
	})
	gpudriver.Register(gpudriver.Driver{
		Name: "vulkan-plain", Dialect: spirv.Dialect, Adapters: Adapters, Open: target.Open,
	})
}

// A batch is more than uploadFrom. From the step heldFrom on, the dispatches of a step are held.
const (
	trainBatch, trainFields, trainOut = 128, 256, 8
	trainSteps, heldFrom              = 12, 6
	batchBytes                        = 4 * trainBatch * trainFields
)

// ways to run a step, and places that batches come from.
var (
	trainWays    = []string{"eager", "recorded", "bound"}
	trainSources = []string{"loader", "plain"}
)

// trainer trains a layer on a device.
type trainer struct {
	t     testing.TB
	dev   *millrace.Device
	e     *engines // nil: the plain device
	layer *nn.Linear
	step  *optim.Step
	bound *optim.BoundStep
	in    [2]*millrace.Tensor // of bound
}

func newTrainer(t testing.TB, spec, way string) *trainer {
	t.Helper()
	opened.t, opened.engines = t, nil
	dev, err := millrace.Open(spec + ":tune=off,explore=wait,cache=off")
	if err != nil {
		gputest.Missing(t, "vulkan", err)
	}
	x := &trainer{t: t, dev: dev, e: opened.engines}
	t.Cleanup(func() {
		x.hold(computes, false)
		x.hold(uploads, false)
		if x.bound != nil {
			x.bound.Close()
		}
		x.step.Close()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	weights := make([]float32, trainFields*trainOut)
	for i := range weights {
		weights[i] = float32(i%11)/50 - 0.1
	}
	x.layer = nn.NewLinear(trainFields, trainOut, nn.On(dev))
	for _, p := range []*millrace.Tensor{x.layer.Weight.Tensor(), x.layer.Bias.Tensor()} {
		n := 1
		for _, dim := range p.Shape() {
			n *= dim
		}
		value := millrace.FromSliceOn(dev, weights[:n], p.Shape()...)
		p.Set(value)
		value.Release()
	}
	var options []optim.StepOption
	if way != "eager" {
		options = append(options, optim.Record())
	}
	x.step = optim.SGD(nn.Params(x.layer), optim.LR(0.01)).Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return x.layer.Forward(c, in[0]).Sub(in[1]).Square().Mean()
	}, options...)
	if way == "bound" {
		x.in[0], x.in[1] = x.fresh(0)
		if x.bound, err = x.step.Bind(x.in[0], x.in[1]); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (x *trainer) hold(list int, on bool) {
	if x.e != nil {
		x.e.hold(list, on)
	}
}

// batchOf is batch k.
func batchOf(k int) (in, want []float32) {
	in, want = make([]float32, trainBatch*trainFields), make([]float32, trainBatch*trainOut)
	for i := range in {
		in[i] = float32((i*7+k*5)%23)/23 - 0.5
	}
	for i := range want {
		want[i] = float32((i+k)%5) / 5
	}
	return in, want
}

// fresh has the tensors of batch k.
func (x *trainer) fresh(k int) (in, want *millrace.Tensor) {
	a, b := batchOf(k)
	return millrace.FromSliceOn(x.dev, a, trainBatch, trainFields), millrace.FromSliceOn(x.dev, b, trainBatch, trainOut)
}

// batches are the batches of a source, in order.
func (x *trainer) batches(source string) iter.Seq2[int, [2]*millrace.Tensor] {
	if source == "plain" {
		return func(yield func(int, [2]*millrace.Tensor) bool) {
			for k := range trainSteps {
				in, want := x.fresh(k)
				on := yield(k, [2]*millrace.Tensor{in, want})
				in.Release()
				want.Release()
				if !on {
					return
				}
			}
		}
	}
	var ins, wants []float32
	for k := range trainSteps {
		a, b := batchOf(k)
		ins, wants = append(ins, a...), append(wants, b...)
	}
	src, err := data.FromColumns(data.ColumnOf(ins, trainFields), data.ColumnOf(wants, trainOut))
	if err != nil {
		x.t.Fatal(err)
	}
	loader, err := data.NewLoader(src, data.Options{Batch: trainBatch, On: x.dev})
	if err != nil {
		x.t.Fatal(err)
	}
	return func(yield func(int, [2]*millrace.Tensor) bool) {
		k := 0
		for b, err := range loader.Batches(context.Background()) {
			if err != nil {
				x.t.Fatal(err)
			}
			on := yield(k, [2]*millrace.Tensor{b.X, b.Y})
			b.Release()
			if k++; !on {
				return
			}
		}
	}
}

// run runs a step with a batch. A bound step gets the batch of a loader by Set, any other by the
// elements.
func (x *trainer) run(k int, source string, in, want *millrace.Tensor) (loss *millrace.Tensor) {
	x.t.Helper()
	var err error
	switch {
	case x.bound == nil:
		loss, err = x.step.Run(context.Background(), in, want)
	case source == "plain":
		x.put(k)
	default:
		x.in[0].Set(in)
		x.in[1].Set(want)
	}
	if err == nil && x.bound != nil {
		loss, err = x.bound.Loss(), x.bound.Run()
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return loss
}

func (x *trainer) value(y *millrace.Tensor) []float32 {
	x.t.Helper()
	v, err := millrace.Values[float32](y)
	if err != nil {
		x.t.Fatal(err)
	}
	return v
}

// TestTraining: while the dispatches of a step are held, the batches of the following steps arrive on
// the device, and reading a loss does not wait for an upload. Losses and weights have the same bits
// as on a device with one queue.
func TestTraining(t *testing.T) {
	t.Setenv(settingsIn, "apart")
	for _, way := range trainWays {
		for _, source := range trainSources {
			t.Run(fmt.Sprint(way, " ", source), func(t *testing.T) {
				var results [2][]float32
				for i, spec := range []string{"vulkan-plain", "vulkan-engines"} {
					results[i] = train(t, newTrainer(t, spec, way), source)
				}
				if !slices.Equal(results[0], results[1]) {
					t.Errorf("with two queues %v, with one %v", results[1], results[0])
				}
			})
		}
	}
}

// put uploads batch k, in place if the step is bound.
func (x *trainer) put(k int) {
	x.t.Helper()
	if x.bound == nil {
		in, want := x.fresh(k)
		in.Release()
		want.Release()
		return
	}
	in, want := batchOf(k)
	if err := errors.Join(optim.SetInput(x.bound, 0, in...), optim.SetInput(x.bound, 1, want...)); err != nil {
		x.t.Fatal(err)
	}
}

// train runs all steps and returns the losses, and the weights.
func train(t *testing.T, x *trainer, source string) (results []float32) {
	others := int64(0) // bytes that were uploaded for something else
	if x.e != nil {
		others = x.e.uploaded()
	}
	for k, in := range x.batches(source) {
		if k < heldFrom || x.e == nil {
			results = append(results, x.value(x.run(k, source, in[0], in[1]))...)
			continue
		}
		if err := x.dev.Wait(); err != nil {
			t.Fatal(err)
		}
		x.hold(computes, true)
		before := x.e.counts(computes)
		ran := make(chan *millrace.Tensor, 1)
		go func() { ran <- x.run(k, source, in[0], in[1]) }()
		x.e.await(func() bool { return x.e.taken[computes] > before }) // the step is submitted
		want := others + int64(min(k+2, trainSteps))*batchBytes
		if source == "plain" {
			want = x.e.uploaded() + batchBytes
			if x.bound != nil { // a run may submit other work before it reads its inputs
				ran <- <-ran
			}
			x.put(k + 1)
		}
		x.e.await(func() bool { return x.e.bytes[uploads] >= want })
		if x.e.counts(computes) != before {
			t.Error("the dispatches were not held")
		}
		x.hold(uploads, true) // no upload ends from here on
		late := make(chan *millrace.Tensor)
		go func() { y, _ := x.fresh(k + 2); late <- y }()
		x.e.await(func() bool { return len(x.e.lists[uploads])+x.e.taken[uploads] > x.e.done[uploads] })
		x.hold(computes, false)
		results = append(results, x.value(<-ran)...)
		x.hold(uploads, false)
		(<-late).Release()
		others += batchBytes
	}
	return append(results, x.value(x.layer.Weight.Tensor())...)
}

// BenchmarkTraining: steps with a loader on a card whose dispatches and copies take a set time, about
// the same for a step and its batch, with one queue and with two. It prints the part of the time of
// uploads in which dispatches ran.
func BenchmarkTraining(b *testing.B) {
	b.Setenv(settingsIn, "apart")
	for _, way := range trainWays {
		for _, spec := range []string{"vulkan-one", "vulkan-engines"} {
			b.Run(way+"/"+spec, func(b *testing.B) {
				x := newTrainer(b, spec, way)
				for k, in := range x.batches("loader") { // makes plans and recordings
					x.run(k, "loader", in[0], in[1])
				}
				e := x.e
				e.mu.Lock()
				e.perDispatch, e.perByte, e.busy = 400*time.Microsecond, 20, [2][]interval{}
				e.mu.Unlock()
				b.ResetTimer()
				for n := 0; n < b.N; {
					for k, in := range x.batches("loader") {
						loss := x.run(k, "loader", in[0], in[1])
						if n++; n == b.N {
							x.value(loss)
							break
						}
					}
				}
				b.StopTimer()
				e.mu.Lock()
				defer e.mu.Unlock()
				all, beside := time.Duration(0), time.Duration(0)
				for _, u := range e.busy[uploads] {
					all += u.to.Sub(u.from)
					for _, c := range e.busy[computes] {
						beside += max(0, earlier(u.to, c.to).Sub(later(u.from, c.from)))
					}
				}
				if all > 0 {
					b.ReportMetric(100*float64(beside)/float64(all), "%-hidden")
				}
				e.perDispatch, e.perByte = 0, 0
			})
		}
	}
}

func earlier(x, y time.Time) time.Time {
	if x.Before(y) {
		return x
	}
	return y
}

func later(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}
