package stream

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/plancache/lookup"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// A launch that is not timed because the budget is spent says so. A launch that found no place in
// the queue is tried again.
func TestTuneAsksAgain(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune, o.TuneBudget = device.TuneBackground, 10*time.Second })
	x := &e.d.tune
	x.Mu.Lock()
	x.Running, x.Queue = true, make([]*autotune.Trial, autotune.MaxTrials)
	x.Mu.Unlock()
	for range autotune.After {
		halves(e, 5)
	}
	x.Mu.Lock()
	x.Running, x.Queue = false, nil
	x.Mu.Unlock()
	for range autotune.After {
		halves(e, 5)
	}
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := e.d.Stats().Tunings; n != 1 {
		t.Errorf("%d tunings after the queue was full", n)
	}
	x.Spent.Store(int64(time.Minute))
	var y *Value
	for range autotune.After {
		y = halves(e, 6)
	}
	if text := Explain(y); !strings.Contains(text, autotune.ErrBudget.Error()) {
		t.Error(text)
	}
	dev = &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e = openTunable(t, dev, func(o *device.Options) { o.TuneBudget = 1 })
	halves(e, 5)
	y = halves(e, 6)
	if n := e.d.Stats().Tunings; n != 1 || !strings.Contains(Explain(y), autotune.ErrBudget.Error()) {
		t.Errorf("%d tunings that were waited for\n%s", n, Explain(y))
	}
}

// A bundle's tunings also apply to launches that were looked up before.
func TestTuneUsesLaterBundles(t *testing.T) {
	from := openTunable(t, &tunable{takes: []time.Duration{10 * tms, 5 * tms}}, nil)
	halves(from, 5)
	data := exported(t, from.d)
	dev := &tunable{takes: []time.Duration{10 * tms, 50 * tms}}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneBackground })
	halves(e, 5)
	use(t, e.d, data)
	halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{0, 1}) || dev.tries != 0 {
		t.Errorf("ran by %v, %d tries", ran, dev.tries)
	}
}

// They also apply if the bundle comes while the launches are looked up.
func TestTuneUsesBundlesMeanwhile(t *testing.T) {
	from := openTunable(t, &tunable{takes: []time.Duration{10 * tms, 5 * tms}}, nil)
	halves(from, 5)
	data := exported(t, from.d)
	dev := &tunable{takes: []time.Duration{10 * tms, 50 * tms}}
	var d *Device
	came := false
	e := openTunable(t, dev, func(o *device.Options) {
		cached(t.TempDir())(o)
		o.Tune = device.TuneBackground
		o.Trace = &device.Trace{Cache: func(ev device.CacheEvent) {
			if ev.Kind == lookup.KindTuning && ev.Outcome == "miss" && !came {
				came = true
				use(t, d, data)
			}
		}}
	})
	d = e.d
	halves(e, 5)
	halves(e, 5)
	if ran := dev.taken(); !came || !slices.Equal(ran, []uint64{0, 1}) || dev.tries != 0 {
		t.Errorf("came %v, ran by %v, %d tries", came, ran, dev.tries)
	}
}

// One process finds out that runs are too long, and its bundle tells the others. If two tables
// have the same key, the one with times is exported.
func TestBundledTuningsSpareTrials(t *testing.T) {
	run := func(source []byte, takes time.Duration) (*tunable, *env, []byte) {
		dev := &tunable{takes: []time.Duration{takes, 5 * tms}}
		e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneBackground })
		if source != nil {
			use(t, e.d, source)
		}
		for range autotune.After {
			halves(e, 5)
		}
		if err := e.d.Wait(); err != nil {
			t.Fatal(err)
		}
		return dev, e, exported(t, e.d)
	}
	first, long, data := run(nil, 20*autotune.Longest)
	if first.tries != 1 {
		t.Fatalf("%d tries", first.tries)
	}
	again, _, more := run(data, 20*autotune.Longest)
	if again.tries != 0 {
		t.Errorf("%d tries with a bundle", again.tries)
	}
	if third, _, _ := run(more, 20*autotune.Longest); third.tries != 0 {
		t.Errorf("%d tries with a bundle of who had one", third.tries)
	}
	_, short, _ := run(nil, 10*tms)
	for _, order := range [][]*Device{{long.d, short.d}, {short.d, long.d}} {
		var b bytes.Buffer
		if err := exportOf(&b, planstore.PlanFilter{}, order); err != nil {
			t.Fatal(err)
		}
		if dev, _, _ := run(b.Bytes(), 10*tms); !slices.Equal(dev.taken(), slices.Repeat([]uint64{1}, autotune.After)) || dev.tries != 0 {
			t.Errorf("%d tries", dev.tries)
		}
	}
}

// The number of known tunings is bounded. Tunings that wait to be timed are not evicted.
func TestTuneEvicts(t *testing.T) {
	e := openTunable(t, &tunable{takes: []time.Duration{10 * tms, 5 * tms}}, nil)
	halves(e, 5)
	x := &e.d.tune
	x.Mu.Lock()
	for i := len(x.Known); i < autotune.MaxTunings; i++ {
		k := &autotune.Tuning{Key: fmt.Sprint("key ", i)}
		k.Asked.Store(i%2 == 0)
		x.Known[k.Key] = k
	}
	x.Mu.Unlock()
	for n := range 20 {
		halves(e, 6+n)
	}
	x.Mu.Lock()
	defer x.Mu.Unlock()
	pending := 0
	for _, k := range x.Known {
		if k.Pending() {
			pending++
		}
	}
	if len(x.Known) != autotune.MaxTunings || pending != autotune.MaxTunings/2-1 {
		t.Errorf("%d known, %d of them pending", len(x.Known), pending)
	}
}

// onlyGeometry returns the only plan of a device and the geometry with which it ran.
func onlyGeometry(t *testing.T, d *Device) (*planstore.Known, *planstore.Geometry) {
	t.Helper()
	var ent *planstore.Known
	d.plans.Trie.All(func(_ []queue.Key, _ segment.End, plans []*planstore.Known) { ent = plans[0] })
	if ent == nil || ent.Memo.Last() == nil {
		t.Fatal("nothing ran")
	}
	return ent, ent.Memo.Last()
}

// The tuner reads files without its lock, so other goroutines can use its table.
func TestTuneReadsOutsideItsLock(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		var x *autotune.Tuner
		reads := 0
		e := openTunable(t, &tunable{takes: []time.Duration{10 * tms, 5 * tms}}, func(o *device.Options) {
			cached(dir)(o)
			o.Trace = &device.Trace{Cache: func(ev device.CacheEvent) {
				if ev.Kind != lookup.KindTuning || ev.Outcome == "written" {
					return
				}
				if reads++; !x.Mu.TryLock() {
					t.Error("a table is read under the tuner's lock")
					return
				}
				x.Mu.Unlock()
			}}
		})
		x = &e.d.tune
		halves(e, 5)
		if e.d.Close(); reads != 1 {
			t.Errorf("%d reads", reads)
		}
	}
}
