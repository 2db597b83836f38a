package gputest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/apitest"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// testEngineEager runs random programs again and again without a Recording, with other values, on
// several streams at once. They give the oracle's bits. A device with recordings prepares most of
// their launches.
func testEngineEager(t *testing.T) {
	d := openSettled(t)
	n := programs(t, 10)
	randomPrograms(t, n, 6<<32, progen.Config{Ops: 8, MaxElems: 600, DTypes: shader.DTypes &^ ir.Floats}, func(prog *ir.Graph, seed uint64) error {
		return eagerProgram(d, prog, seed)
	})
	noFallbacks(t, d)
	s := d.Stats().Runtime
	if _, ok := openGPU(t).(gpurun.Recorder); ok && (s.Prepared < s.Launches/2) {
		t.Errorf("of %d launches %d ran prepared and %d as recorded", s.Launches, s.Prepared, s.Replayed)
	}
	t.Logf("of %d launches %d ran prepared and %d as recorded, %d recordings, %d lists in vain", s.Launches, s.Prepared, s.Replayed, s.Recorded, s.Unsteady)
}

func eagerProgram(d *millrace.Device, prog *ir.Graph, seed uint64) error {
	several := func(who uint64) error {
		s, rng := d.NewStream(), rand.New(rand.NewPCG(seed, who))
		for i := range uint64(12) {
			inputs := progen.Inputs(prog, seed+who+i%3)
			want, err := ir.EvalTensors(prog, inputs)
			if err != nil {
				return fmt.Errorf("oracle: %w", err)
			}
			r := apitest.NewRunner(s, prog, inputs)
			for j := range prog.Nodes {
				r.Step(j)
			}
			for _, id := range prog.Outputs {
				got, err := apitest.Bytes(r.Tensors[id])
				if err == nil {
					err = apitest.Differ(want[id].TensorType, got, want[id].Data)
				}
				if err != nil {
					return fmt.Errorf("run %d of %d, tensor %%%d: %w", i, who, id, err)
				}
			}
			for _, x := range r.Tensors {
				if x != nil && (seed%2 == 0 || rng.IntN(8) > 0) { // its memory is free for the next run
					x.Release()
				}
			}
		}
		return nil
	}
	if err := several(0); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for w := range errs {
		wg.Go(func() { errs[w] = several(uint64(w + 1)) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// testEngineEagerFaults: an index out of range in a loop fails the tensor that depends on it, with the
// index and the line of the op, and nothing else.
func testEngineEagerFaults(t *testing.T) {
	d := openSettled(t)
	for i := range 40 {
		x := millrace.FromSliceOn(d, []float32{1, 2, float32(i)}, 3)
		at := []int32{2, 0}
		if i%5 == 4 {
			at[1] = int32(i)
		}
		rows := millrace.FromSliceOn(d, at, 2)
		double := x.MulScalar(2)
		taken, beside := double.Take(rows, 0).AddScalar(1), double.SubScalar(3)
		switch err := taken.Eval(); {
		case i%5 == 4:
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("index %d,", i)) || !strings.Contains(err.Error(), "eager.go") {
				t.Errorf("run %d: %v", i, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			if v := values(t, taken); v[0] != float32(2*i+1) || v[1] != 3 {
				t.Errorf("run %d: %v", i, v)
			}
		}
		if v := values(t, beside); v[0] != -1 || v[2] != float32(2*i-3) {
			t.Errorf("run %d: beside it %v", i, v)
		}
		for _, x := range []*millrace.Tensor{x, rows, double, taken, beside} {
			x.Release()
		}
	}
	if s := d.Stats().Runtime; s.Prepared == 0 {
		if _, ok := openGPU(t).(gpurun.Recorder); ok {
			t.Error("nothing ran prepared")
		}
	}
}

// testEngineEagerSteady: a loop whose tensors are released runs its launches as recorded once its
// memory comes again, also with an upload in each run.
func testEngineEagerSteady(t *testing.T) {
	d := openSettled(t)
	_, records := openGPU(t).(gpurun.Recorder)
	w := millrace.UniformOn(d, millrace.Float32, 3, 24, 24)
	must(t, w.Eval())
	want, count := []float32(nil), d.Stats().Runtime
	const runs = 60
	for i := range runs {
		if i == runs/2 {
			count = d.Stats().Runtime
		}
		x := millrace.FromSliceOn(d, slices.Repeat([]float32{0.5, -1, 0.25}, 64), 8, 24)
		all := []*millrace.Tensor{x}
		for range 15 {
			x = x.MatMul(w)
			all = append(all, x)
		}
		got := values(t, x)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("run %d: %v, want %v", i, got, want)
		}
		for _, x := range all {
			x.Release()
		}
	}
	must(t, d.Sync(context.Background()))
	s := d.Stats().Runtime
	launches, replayed, recorded := s.Launches-count.Launches, s.Replayed-count.Replayed, s.Recorded-count.Recorded
	if launches < 15*runs/2 || records && (replayed < launches*3/4 || recorded > 3) {
		t.Errorf("%d of %d launches ran as recorded, %d recordings", replayed, launches, recorded)
	}
}

// benchEager times a loop whose run is a plan of 15 launches and waits for it. It releases its tensors, or
// leaves them to the garbage collector.
func benchEager(b *testing.B) {
	for _, release := range []bool{true, false} {
		b.Run(fmt.Sprintf("15 launches, released %v", release), func(b *testing.B) {
			d, err := millrace.Open(under.device("explore=wait", "tune=off"))
			if err != nil {
				missing(b, err)
			}
			defer d.Close()
			w := millrace.UniformOn(d, millrace.Float32, 3, 4, 4)
			must(b, w.Eval())
			var all [15]*millrace.Tensor
			run := func() {
				x := w
				for i := range all {
					x = x.MatMul(w)
					all[i] = x
				}
				must(b, all[len(all)-1].Eval())
				for _, x := range all {
					if release {
						x.Release()
					}
				}
			}
			for range 20 {
				run()
			}
			must(b, d.Sync(context.Background()))
			before := d.Stats().Runtime
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				run()
				n++
			}
			must(b, d.Sync(context.Background()))
			s := d.Stats().Runtime
			b.ReportMetric(float64(s.Launches-before.Launches)/float64(n), "launches/op")
			b.ReportMetric(float64(s.Replayed-before.Replayed)/float64(n), "replayed/op")
		})
	}
}
