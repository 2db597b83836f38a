package apitest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/testhook"
)

// nativePrograms are programs of goroutines on shared weights: each has its own plan and code.
var nativePrograms = []func(x, w *tensor) *tensor{
	func(x, w *tensor) *tensor { return x.Mul(w).Gelu() },
	func(x, w *tensor) *tensor { return x.Add(w).Softmax(-1) },
	func(x, w *tensor) *tensor { return x.Mul(x).Add(w).Sqrt().Cast(millrace.Float64).Exp() },
	func(x, w *tensor) *tensor { return x.Sub(w).Abs().Log().Sum(0) },
	func(x, w *tensor) *tensor { return millrace.Where(x.Gt(w), x.Sin(), w.MulScalar(3)) },
	func(x, w *tensor) *tensor { return x.Mul(w).Cast(millrace.Float16).Tanh() },
	func(x, w *tensor) *tensor { return x.Permute(1, 0).Add(w.Permute(1, 0)).Max(1) },
	func(x, w *tensor) *tensor {
		return x.MulScalar(100).Cast(millrace.Int64).Rem(w.Cast(millrace.Int64).AddScalar(3))
	},
}

const nativeRows = 24

// nativeWidths are lengths of rows, with and without a rest after the last whole vector.
var nativeWidths = [...]int{1, 7, 64, 301}

// nativeInput returns numbers that differ from seed to seed.
func nativeInput(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 8))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 3)
	}
	return x
}

func bytesOf(x *tensor) ([]byte, error) {
	var b bytes.Buffer
	_, err := x.WriteTo(&b)
	return b.Bytes(), err
}

// nativeHammerTime is 8 seconds, 5 with -short, or the value of HAMMER: make hammer runs it for longer.
func nativeHammerTime(t *testing.T) time.Duration {
	switch {
	case os.Getenv("HAMMER") != "":
		return hammerTime(t, 1)
	case testing.Short():
		return 5 * time.Second
	}
	return 8 * time.Second
}

// TestHammerNative runs machine code of different programs on shared weights, in 32 goroutines.
// Collections run all the time, a profile takes a thousand samples a second, few plans are kept
// (code is freed while other code runs), and devices are opened and closed.
func TestHammerNative(t *testing.T) {
	if machine.Level() == machine.None {
		t.Skip("no machine code here")
	}
	plain := openSpec(t, "cpu:compile=off,threads=1")
	type key struct{ program, width, seed int }
	want := map[key][]byte{}
	const seeds = 3
	for program, f := range nativePrograms {
		for width, n := range nativeWidths {
			for seed := range seeds {
				x := millrace.FromSliceOn(plain, nativeInput(uint64(seed), nativeRows*n), nativeRows, n)
				w := millrace.FromSliceOn(plain, nativeInput(99, nativeRows*n), nativeRows, n)
				b, err := bytesOf(f(x, w))
				if err != nil {
					t.Fatal(err)
				}
				want[key{program, width, seed}] = b
			}
		}
	}
	testhook.SetPlans(12)
	defer testhook.SetPlans(0)
	openNative := func() (*millrace.Device, error) {
		return millrace.Open("cpu:compile=native,tier=1,threads=2,cache=off")
	}
	shared, err := openNative()
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	weights := make([]*tensor, len(nativeWidths))
	for i, n := range nativeWidths {
		weights[i] = millrace.FromSliceOn(shared, nativeInput(99, nativeRows*n), nativeRows, n)
	}

	defer debug.SetGCPercent(debug.SetGCPercent(1))
	var profile bytes.Buffer
	runtime.SetCPUProfileRate(1000) // the next call reports that it is already set
	if err := pprof.StartCPUProfile(&profile); err != nil {
		t.Fatal(err)
	}
	defer pprof.StopCPUProfile()
	ctx, cancel := context.WithTimeout(context.Background(), nativeHammerTime(t))
	defer cancel()
	var runs, made, opened atomic.Int64
	check := func(s *millrace.Stream, rng *rand.Rand, weight func(width int) *tensor) error {
		k := key{rng.IntN(len(nativePrograms)), rng.IntN(len(nativeWidths)), rng.IntN(seeds)}
		n := nativeWidths[k.width]
		x := millrace.FromSliceOn(s, nativeInput(uint64(k.seed), nativeRows*n), nativeRows, n)
		y := nativePrograms[k.program](x, weight(k.width))
		for range rng.IntN(3) { // the following ops make it one plan of many
			y = y.Neg().Neg()
		}
		got, err := bytesOf(y)
		if err != nil {
			return fmt.Errorf("%+v: %w", k, err)
		}
		if !bytes.Equal(got, want[k]) && !sameNumbers(y, got, want[k]) {
			return fmt.Errorf("%+v: other bits", k)
		}
		runs.Add(1)
		return nil
	}
	var wg sync.WaitGroup
	for worker := range 32 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 4))
			s := shared.NewStream()
			for ctx.Err() == nil {
				err := check(s, rng, func(width int) *tensor { return weights[width] })
				if err == nil && worker%8 == 0 && rng.IntN(50) == 0 { // a device is opened and closed
					var d *millrace.Device
					if d, err = openNative(); err == nil {
						for range 5 {
							if err == nil {
								err = check(d.DefaultStream(), rng, func(width int) *tensor {
									return millrace.FromSliceOn(d, nativeInput(99, nativeRows*nativeWidths[width]), nativeRows, nativeWidths[width])
								})
							}
						}
						made.Add(d.Stats().Runtime.NativeKernels)
						opened.Add(1)
						d.Close()
					}
				}
				if err != nil {
					t.Errorf("worker %d: %v", worker, err)
					cancel()
				}
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			runtime.GC()
		}
	})
	wg.Wait()
	s := shared.Stats()
	count, live := machine.Live()
	t.Logf("%d runs, %d kernels, %d plans evicted, %d devices with %d kernels; %d mappings of %d bytes at the end",
		runs.Load(), s.Runtime.NativeKernels, s.Evictions, opened.Load(), made.Load(), count, live)
	if s.Runtime.NativeKernels == 0 || s.Runtime.NativeRefused > 0 || opened.Load() == 0 || made.Load() == 0 || s.Evictions == 0 {
		t.Errorf("something never came to run, or was refused: %+v", s)
	}
}

// sameNumbers reports whether the bytes differ only in the bits of NaNs.
func sameNumbers(y *tensor, got, want []byte) bool {
	if len(got) != len(want) {
		return false
	}
	size := y.DType().Size()
	for i := 0; i < len(got); i += size {
		if g, w := got[i:i+size], want[i:i+size]; !bytes.Equal(g, w) && !(isNaN(y.DType(), g) && isNaN(y.DType(), w)) {
			return false
		}
	}
	return true
}

func isNaN(dt millrace.DType, b []byte) bool {
	bits := uint64(0)
	for i, x := range b {
		bits |= uint64(x) << (8 * i)
	}
	switch dt {
	case millrace.Float32:
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	case millrace.Float64:
		return math.IsNaN(math.Float64frombits(bits))
	case millrace.Float16:
		return bits&0x7fff > 0x7c00
	}
	return false
}

const pausesMetric = "/sched/pauses/total/gc:seconds"

// pauses returns the collector's pauses so far, as a histogram.
func pauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: pausesMetric}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}

// percentile returns a percentile of the pauses between two histograms, and their number.
func percentile(from, to *metrics.Float64Histogram, p float64) (time.Duration, uint64) {
	total := uint64(0)
	for i := range to.Counts {
		total += to.Counts[i] - from.Counts[i]
	}
	left := uint64(float64(total) * (1 - p))
	for i := len(to.Counts) - 1; i >= 0; i-- {
		n := to.Counts[i] - from.Counts[i]
		if n > left {
			return time.Duration(to.Buckets[i] * 1e9), total
		}
		left -= n
	}
	return 0, total
}

// TestNativePauses compares how long the collector stops the world while kernels run as machine
// code and while they are interpreted, alternating: the collector waits for a call to end. The
// machine may be busy. The test therefore uses the smallest difference of a few rounds, and a limit
// far above the 200 µs of a call.
func TestNativePauses(t *testing.T) {
	if machine.Level() == machine.None {
		t.Skip("no machine code here")
	}
	const most = 5 * time.Millisecond
	turns, length := 3, 700*time.Millisecond
	if testing.Short() {
		turns, length = 3, 200*time.Millisecond
	}
	work := func(d *millrace.Device) func() error {
		x := millrace.FromSliceOn(d, nativeInput(1, 1<<20), 1024, 1024)
		return func() error {
			for _, f := range []func(x, w *tensor) *tensor{nativePrograms[0], nativePrograms[4], nativePrograms[6]} {
				y := f(x, x.Permute(1, 0))
				if err := y.Eval(); err != nil {
					return err
				}
				y.Release()
			}
			return nil
		}
	}
	measure := func(work func() error) (time.Duration, uint64) {
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		})
		from := pauses()
		for begin := time.Now(); time.Since(begin) < length; {
			if err := work(); err != nil {
				t.Error(err)
				break
			}
		}
		stop.Store(true)
		wg.Wait()
		return percentile(from, pauses(), 0.99)
	}
	native, plain := work(openSpec(t, "cpu:compile=native,tier=1,threads=2")), work(openSpec(t, "cpu:compile=off,threads=2"))
	var longer []time.Duration
	for range turns {
		n, some := measure(native)
		p, others := measure(plain)
		t.Logf("99 of 100 pauses of the collector: %v by machine code (%d), %v interpreted (%d)", n, some, p, others)
		longer = append(longer, n-p)
	}
	if least := slices.Min(longer); least > most {
		t.Errorf("pauses are at least %v longer while machine code runs", least)
	}
}
