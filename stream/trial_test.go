package stream

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// swapInputs returns the launch with its first two operands exchanged.
func swapInputs(l runtime.Launch) *runtime.Launch {
	args := slices.Clone(l.Args)
	var in []int
	for i, o := range l.Prog.Kernel().(*codegen.Kernel).Operands {
		if o.Kind == codegen.Input {
			in = append(in, i)
		}
	}
	args[in[0]].Buf, args[in[1]].Buf = args[in[1]].Buf, args[in[0]].Buf
	l.Args = args
	return &l
}

// No two operands of a trial have the same values. A candidate that confuses them gives another
// result.
func TestTrialOperandsDiffer(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 1 * tms, 8 * tms}, swaps: 1}
	e := openTunable(t, dev, nil)
	x, y := e.host(e.place(), ir.Shape{3}, 1, 2, 3), e.host(e.place(), ir.Shape{3}, 5, 7, 11)
	e.want(e.op(ir.Sub, t1(x), t1(y)), -4, -5, -8)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{2}) {
		t.Errorf("ran by %v", ran)
	}
}

// A trial takes no memory beyond the limit, counting the program's live memory.
func TestTrialRespectsTheLimit(t *testing.T) {
	const limit = 1 << 16
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e := openTunable(t, dev, func(o *device.Options) { o.MemoryLimit = limit })
	keep := e.host(e.place(), ir.Shape{13 << 10}, make([]float32, 13<<10)...)
	y := halves(e, 1000)
	if peak := e.d.Stats().Runtime.PeakBytes; peak > limit || !strings.Contains(Explain(y), autotune.ErrTrialSize.Error()) {
		t.Errorf("peak of %d bytes\n%s", peak, Explain(y))
	}
	Release(keep)
	if y = halves(e, 1001); e.d.Stats().Tunings != 1 {
		t.Errorf("not timed where there is room:\n%s", Explain(y))
	}
}

// A background trial does not disturb the program. It gives up its memory if the program lacks
// memory, and with TuneIdle it also stops when the program goes on.
func TestTrialYields(t *testing.T) {
	const n = 1000
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}, begun: make(chan struct{}), limit: 100 * 4 * n, slow: 5 * tms}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneIdle })
	for range autotune.After {
		halves(e, n)
	}
	holds := func() bool {
		e.d.tune.Turn.Lock()
		defer e.d.tune.Turn.Unlock()
		return len(e.d.tune.Holders) > 0
	}
	<-dev.begun
	for _, v := range []string{"lacked", "held for long"} {
		for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(tms) {
			if time.Now().After(deadline) {
				t.Fatal("no trial has memory")
			}
		}
		if v == "lacked" {
			e.d.mem.Reclaim(true) // leaves only the memory of the trial to take
			free := dev.limit - dev.Stats().AllocBytes
			b, err := e.d.mem.Alloc(free+4*n, false)
			if err != nil {
				t.Fatal(err)
			}
			if holds() {
				t.Error("memory that was lacked is held")
			}
			b.Release()
			continue
		}
		for deadline := time.Now().Add(20 * time.Second); holds(); halves(e, 2) {
			if time.Now().After(deadline) {
				t.Fatal("memory is held while the program goes on")
			}
		}
	}
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := e.d.Stats(); s.Tunings < 1 || s.Fallbacks != 0 {
		t.Errorf("%d tunings, %d fallbacks", s.Tunings, s.Fallbacks)
	}
}

// The comparison covers several pieces, and all NaNs are equal.
func TestTrialCompares(t *testing.T) {
	for _, exact := range []bool{true, false} {
		x := &autotune.Trial{X: &autotune.Tuner{Base: &device.Base{Caps: &runtime.Caps{Exact: exact}}}, Tol: ir.Tolerance{Rel: 1e-3}}
		one, other := ir.NewDense(ir.TensorType{DT: ir.Float32, Shape: ir.Shape{4}}), ir.NewDense(ir.TensorType{DT: ir.Float32, Shape: ir.Shape{4}})
		one.Set(1, 0x7fc00000)
		other.Set(1, 0xffc00001)
		want := append(make([]byte, 4*autotune.PieceElements), one.Data...)
		if err := x.Compare(ir.Float32, autotune.PieceElements, other.Data, want); err != nil {
			t.Errorf("exact %v: %v", exact, err)
		}
		if err := x.Compare(ir.Float32, 0, other.Data, want); !errors.Is(err, autotune.ErrOtherResults) {
			t.Errorf("exact %v: a NaN for zero: %v", exact, err)
		}
		one.Set(3, ir.FloatBits(ir.Float32, 1))
		other.Set(3, ir.FloatBits(ir.Float32, 1.0001))
		if err := x.Compare(ir.Float32, 0, other.Data, one.Data); errors.Is(err, autotune.ErrOtherResults) != exact {
			t.Errorf("exact %v: %v", exact, err)
		}
	}
}

// Even if the program waits for the tuner, other streams may run. The tuner waits for them; times
// measured beside them are not kept.
func TestTrialBesideOtherStreams(t *testing.T) {
	for _, c := range []struct {
		runs time.Duration
		kept int
	}{{10 * tms, 1}, {3 * autotune.Patience, 0}} {
		dir := t.TempDir()
		dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
		e := openTunable(t, dev, cached(dir))
		ended := make(chan struct{})
		dev.during = func() {
			beside(e, func() { time.Sleep(c.runs); close(ended) })
		}
		halves(e, 5)
		<-ended
		e.d.Close()
		files, err := filepath.Glob(filepath.Join(dir, "v1", "tuning-*"))
		if n := e.d.Stats().Tunings; err != nil || n != 1 || len(files) != c.kept {
			t.Errorf("beside a run of %v: %d tunings, %d kept, want %d, %v", c.runs, n, len(files), c.kept, err)
		}
	}
}
