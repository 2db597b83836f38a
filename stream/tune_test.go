package stream

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// tunable is a device whose choices all compute the same and take the times that the test sets.
type tunable struct {
	*refdev.Device
	takes  []time.Duration
	wrong  uint64        // the choice whose trials write a wrong result
	broken uint64        // the choice whose launches fail outside of trials
	refuse uint64        // the choice that cannot be tried
	swaps  uint64        // the choice whose trials exchange two operands
	beyond uint64        // the choice that meets an index out of range
	limit  int64         // of the device's memory; the streams do not know it
	slow   time.Duration // the real duration of a trial

	from int  // index of the first launch of a run that can be broken
	once bool // after its first failure, the broken choice meets an index out of range

	during func() // called in the first trial
	breaks any    // panic value of Choices

	mu      sync.Mutex
	changes uint64
	tries   int
	ran     []uint64 // choices of the launches outside of trials
	begun   chan struct{}
}

func (d *tunable) Choices(l *runtime.Launch) (c runtime.Choices) {
	if d.breaks != nil {
		panic(d.breaks)
	}
	c.Facts = fmt.Sprint("points ", l.Dims[:l.Rank])
	for i := range d.takes {
		c.List = append(c.List, runtime.Choice{Name: fmt.Sprint("way ", i), Code: uint64(i)})
	}
	return c
}

var errWay = errors.New("there is no such way")

func (d *tunable) Try(l *runtime.Launch) (time.Duration, error) {
	d.mu.Lock()
	d.tries++
	if d.begun != nil && d.tries == 1 {
		close(d.begun)
	}
	d.mu.Unlock()
	if time.Sleep(d.slow); d.during != nil {
		d.during()
		d.during = nil
	}
	code := l.Choice
	if d.refuse > 0 && code == d.refuse {
		return 0, errWay
	}
	if d.swaps > 0 && code == d.swaps {
		l = swapInputs(*l)
	}
	if err := d.Device.Run([]runtime.Launch{*l}); err != nil {
		return 0, err
	}
	for i, o := range l.Prog.Kernel().(*codegen.Kernel).Operands {
		if o.Kind == codegen.Output && d.wrong > 0 && code == d.wrong {
			d.Write(l.Args[i].Buf, o.DT, 0, make([]byte, o.DT.Size()))
		}
	}
	return d.takes[code], nil
}

func (d *tunable) Changes() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes
}

func (d *tunable) Run(ls []runtime.Launch) error {
	d.mu.Lock()
	for i := range ls {
		d.ran = append(d.ran, ls[i].Choice)
		var err *runtime.LaunchError
		switch {
		case ls[i].Choice == 0:
		case ls[i].Choice == d.broken && i >= d.from:
			err = &runtime.LaunchError{Index: i, Err: errWay}
			d.broken, d.beyond = d.then(d.broken, d.beyond)
		case ls[i].Choice == d.beyond:
			err = runtime.OutOfRange(i, 9, 5)
		}
		if err != nil {
			d.mu.Unlock()
			if before := d.Device.Run(ls[:i]); before != nil {
				return before
			}
			return err
		}
	}
	d.mu.Unlock()
	return d.Device.Run(ls)
}

// then returns the values of broken and beyond after a failure.
func (d *tunable) then(broken, beyond uint64) (uint64, uint64) {
	if d.once {
		return 0, broken
	}
	return broken, beyond
}

// taken returns the choices of the launches since the last call.
func (d *tunable) taken() []uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	ran := d.ran
	d.ran = nil
	return ran
}

// openTunable opens a tunable device.
func openTunable(t *testing.T, dev *tunable, change func(*device.Options)) *env {
	t.Helper()
	dev.Device = refdev.New(runtime.Config{MemoryLimit: dev.limit})
	o := device.Options{Device: "ref", Explore: device.ExploreWait, Tune: device.TuneWait}
	if change != nil {
		change(&o)
	}
	d, err := OpenOn(dev, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &env{t, d}
}

// halves runs one kernel on n elements and checks its result.
func halves(e *env, n int) *Value {
	e.t.Helper()
	vals, want := make([]float32, n), make([]float32, n)
	for i := range vals {
		vals[i], want[i] = float32(i+1), float32(i+1)*2+1
	}
	y := add(e, mul(e, e.host(e.place(), ir.Shape{n}, vals...), 2), 1)
	e.want(y, want...)
	return y
}

const tms = time.Millisecond

// ways returns times in milliseconds.
func ways(n ...time.Duration) []time.Duration {
	for i := range n {
		n[i] *= tms
	}
	return n
}

func TestTuneTakesTheFastest(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 12 * tms, 7 * tms, 9 * tms}}
	e := openTunable(t, dev, nil)
	y := halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{2}) {
		t.Errorf("ran by %v", ran)
	}
	s := e.d.Stats()
	if s.Tunings != 1 || s.TuneNanos == 0 || s.Fallbacks != 0 {
		t.Errorf("%+v", s)
	}
	tries := dev.tries
	halves(e, 5)
	if dev.tries != tries || e.d.Stats().Tunings != 1 {
		t.Error("the same sizes were timed again")
	}
	halves(e, 6)
	if e.d.Stats().Tunings != 2 {
		t.Error("other facts were not timed")
	}
	if ran := dev.taken(); !slices.Equal(ran, []uint64{2, 2}) {
		t.Errorf("then by %v", ran)
	}
	text := Explain(y)
	for _, want := range []string{`kernel 0 can be run in 4 ways and runs by "way 2"`, "way 0", "0.700 of the default's time"} {
		if !strings.Contains(text, want) {
			t.Errorf("Explain does not say %q:\n%s", want, text)
		}
	}
}

// A choice with wrong results, or one that cannot run, is not used, however fast it is. This is
// reported, but does not count as a fallback of the program.
func TestTuneChecksFirst(t *testing.T) {
	var told []error
	dev := &tunable{takes: []time.Duration{10 * tms, 1 * tms, 2 * tms, 8 * tms}, wrong: 1, refuse: 2}
	e := openTunable(t, dev, func(o *device.Options) { o.Trace = &device.Trace{Error: func(err error) { told = append(told, err) }} })
	y := halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{3}) {
		t.Errorf("ran by %v", ran)
	}
	if s := e.d.Stats(); s.Fallbacks != 0 || len(told) != 2 || !strings.Contains(told[0].Error(), autotune.ErrOtherResults.Error()) || !strings.Contains(told[1].Error(), errWay.Error()) {
		t.Errorf("%d fallbacks, told of %v", s.Fallbacks, told)
	}
	if text := Explain(y); !strings.Contains(text, "not used: "+autotune.ErrOtherResults.Error()) {
		t.Error(text)
	}
}

// If a choice fails, the next one replaces it for good.
func TestTuneFallsThrough(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms, 7 * tms}}
	e := openTunable(t, dev, nil)
	halves(e, 5)
	dev.broken = 1
	halves(e, 5)
	halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{1, 1, 2, 2}) {
		t.Errorf("ran by %v", ran)
	}
	if n := e.d.Stats().Fallbacks; n != 1 {
		t.Errorf("%d fallbacks", n)
	}
	dev.broken = 2
	halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{2, 0}) {
		t.Errorf("at last by %v", ran)
	}
}

// After a choice has failed, the driver counts launches from the new start. A later fault still
// belongs to the launch that met it.
func TestTuneFaultAfterFallingThrough(t *testing.T) {
	var told []error
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms, 20 * tms}}
	e := openTunable(t, dev, func(o *device.Options) {
		o.Fusion = device.FusionOff
		o.Trace = &device.Trace{Error: func(err error) { told = append(told, err) }}
	})
	run := func() {
		x := e.host(e.place(), ir.Shape{2}, 1, 2)
		y := mul(e, mul(e, mul(e, x, 2), 2), 2)
		e.want(y, 8, 16)
	}
	run()
	dev.broken, dev.from, dev.once = 1, 1, true
	told = nil
	run()
	var at *runtime.LaunchError
	if len(told) != 2 || !errors.As(told[1], &at) || at.Index != 2 {
		t.Errorf("told of %v", told)
	}
}

// Launches that fail with the device's default choice also run op by op.
func TestTuneFaultOfALaunch(t *testing.T) {
	defer fault.Reset()
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e := openTunable(t, dev, nil)
	halves(e, 5)
	fault.Set(fault.Launch, 1)
	halves(e, 5)
	fault.Set(fault.Launch, 1)
	halves(e, 5)
	if n := e.d.Stats().Fallbacks; n != 2 {
		t.Errorf("%d fallbacks, want one of a choice and one of a launch", n)
	}
}

// A process uses the times of an earlier process and times nothing itself.
func TestTuningsOutliveTheirDevice(t *testing.T) {
	dir := t.TempDir()
	run := func(takes ...time.Duration) (device.Stats, []uint64, *Value) {
		dev := &tunable{takes: takes}
		e := openTunable(t, dev, cached(dir))
		y := halves(e, 5)
		defer e.d.Close()
		return e.d.Stats(), dev.taken(), y
	}
	first, _, _ := run(10*tms, 5*tms)
	again, ran, _ := run(10*tms, 50*tms)
	if first.Tunings != 1 || again.Tunings != 0 || again.TuneNanos != 0 || !slices.Equal(ran, []uint64{1}) {
		t.Errorf("%d tunings, then %d, run by %v", first.Tunings, again.Tunings, ran)
	}
	if other, ran, _ := run(10*tms, 50*tms, 7*tms); other.Tunings != 1 || other.Cache.Refused != 1 || !slices.Equal(ran, []uint64{2}) {
		t.Errorf("other candidates: %d tunings, %d refused, run by %v", other.Tunings, other.Cache.Refused, ran)
	}
	files, err := filepath.Glob(filepath.Join(dir, "v1", "tuning-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], data[:len(data)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if s, _, _ := run(10*tms, 5*tms, 7*tms); s.Tunings != 1 || s.Cache.Damaged != 1 {
		t.Errorf("a damaged table: %d tunings, %+v", s.Tunings, s.Cache)
	}
}

// With tune=off, no launch is timed, and earlier times are not used.
func TestTuneOff(t *testing.T) {
	dir := t.TempDir()
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e := openTunable(t, dev, cached(dir))
	halves(e, 5)
	e.d.Close()
	dev = &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e = openTunable(t, dev, func(o *device.Options) { cached(dir)(o); o.Tune = device.TuneOff })
	for range 2 * autotune.After {
		halves(e, 5)
	}
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := e.d.Stats(); s.Tunings != 0 || dev.tries != 0 || slices.Max(dev.taken()) != 0 {
		t.Errorf("%d tunings, %d tries", s.Tunings, dev.tries)
	}
}

// In the background, a segment is timed when it has run often enough and nothing else runs. A
// program that waits for the device leaves it idle.
func TestTuneInTheBackground(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneBackground })
	for range autotune.After - 1 {
		halves(e, 5)
	}
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if dev.tries != 0 {
		t.Error("timed before it was worth it")
	}
	halves(e, 5)
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := e.d.Stats().Tunings; n != 1 {
		t.Errorf("%d tunings", n)
	}
	if ran := dev.taken(); slices.Max(ran) != 0 {
		t.Errorf("ran by %v", ran)
	}
	halves(e, 5)
	if ran := dev.taken(); !slices.Equal(ran, []uint64{1}) {
		t.Errorf("then by %v", ran)
	}
	dev.mu.Lock()
	dev.changes++ // the device has other code now; a tuning is still valid if the facts are
	dev.mu.Unlock()
	halves(e, 5)
	if s := e.d.Stats(); s.Tunings != 1 {
		t.Errorf("%d tunings after a change that changes no facts", s.Tunings)
	}
}

// A background trial also runs without a waiting program, when the device is idle.
func TestTuneWhenIdle(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneBackground })
	for range autotune.After {
		halves(e, 5)
	}
	for deadline := time.Now().Add(20 * time.Second); e.d.Stats().Tunings == 0; time.Sleep(tms) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was timed")
		}
	}
}

// In the background, launches that would block others too long are not timed, and tuning ends
// when its budget is spent.
func TestTuneLimits(t *testing.T) {
	dev := &tunable{takes: []time.Duration{2 * autotune.Longest, 5 * tms}}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneBackground })
	var y *Value
	for range autotune.After {
		y = halves(e, 5)
	}
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if s := e.d.Stats(); s.Tunings != 0 || dev.tries > 4 || !strings.Contains(Explain(y), "too long") {
		t.Errorf("%d tunings, %d tries\n%s", s.Tunings, dev.tries, Explain(y))
	}
	dev = &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e = openTunable(t, dev, func(o *device.Options) { o.Tune, o.TuneBudget = device.TuneBackground, 1 })
	for n := range 4 {
		for range autotune.After {
			halves(e, 5+n)
		}
		if err := e.d.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if s := e.d.Stats(); s.Tunings != 1 {
		t.Errorf("%d tunings for a nanosecond", s.Tunings)
	}
	// The trial does not get its memory.
	dev = &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e = openTunable(t, dev, func(o *device.Options) { o.MemoryLimit = 100 })
	if y = halves(e, 5); e.d.Stats().Tunings != 0 || !strings.Contains(Explain(y), autotune.ErrTrialSize.Error()) {
		t.Error(Explain(y))
	}
}

// One process finds out that runs are too long, and later processes know it. A program that waits
// for the tuner allows long runs.
func TestTuneRemembersWhatIsTooLong(t *testing.T) {
	dir := t.TempDir()
	run := func(mode device.TuneMode) (device.Stats, int, string) {
		dev := &tunable{takes: []time.Duration{20 * autotune.Longest, 5 * tms}}
		e := openTunable(t, dev, func(o *device.Options) { cached(dir)(o); o.Tune = mode })
		defer e.d.Close()
		var y *Value
		for range autotune.After {
			y = halves(e, 5)
		}
		if err := e.d.Wait(); err != nil {
			t.Fatal(err)
		}
		return e.d.Stats(), dev.tries, Explain(y)
	}
	if s, tries, text := run(device.TuneBackground); s.Tunings != 0 || tries != 1 || !strings.Contains(text, "too long") {
		t.Errorf("first: %d tunings, %d tries\n%s", s.Tunings, tries, text)
	}
	if s, tries, text := run(device.TuneBackground); s.Tunings != 0 || tries != 0 || s.Cache.Refused != 0 || !strings.Contains(text, "too long") {
		t.Errorf("then: %d tunings, %d tries, %+v\n%s", s.Tunings, tries, s.Cache, text)
	}
	if s, _, text := run(device.TuneWait); s.Tunings != 1 {
		t.Errorf("waiting: %d tunings\n%s", s.Tunings, text)
	}
	if s, _, text := run(device.TuneBackground); s.Tunings != 0 || !strings.Contains(text, `runs by "way 1"`) {
		t.Errorf("at last: %d tunings\n%s", s.Tunings, text)
	}
}

// A trial that is estimated to take too long takes no memory and is not run.
func TestTuneEstimatesFirst(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneBackground })
	e.d.Caps.Bandwidth = 1000
	var y *Value
	for range autotune.After {
		y = halves(e, 50)
	}
	if err := e.d.Wait(); err != nil {
		t.Fatal(err)
	}
	if dev.tries != 0 || !strings.Contains(Explain(y), "too long: 400ms") {
		t.Errorf("%d tries\n%s", dev.tries, Explain(y))
	}
}

// Close ends the current trial.
func TestTuneEndsWithItsDevice(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms}, begun: make(chan struct{})}
	e := openTunable(t, dev, func(o *device.Options) { o.Tune = device.TuneBackground })
	for n := range 8 {
		for range autotune.After {
			halves(e, 5+n)
		}
	}
	<-dev.begun
	if err := e.d.Close(); err != nil {
		t.Fatal(err)
	}
	e.d.tune.Mu.Lock()
	defer e.d.tune.Mu.Unlock()
	if e.d.tune.Running || len(e.d.tune.Queue) > 0 {
		t.Error("timing goes on")
	}
	if live := dev.Stats().AllocBytes; live > 8*1024 {
		t.Errorf("%d bytes are live", live)
	}
}

// The test hook makes the device use each choice in turn, whatever it costs.
func TestForcedVariant(t *testing.T) {
	dev := &tunable{takes: []time.Duration{10 * tms, 5 * tms, 20 * tms}}
	e := openTunable(t, dev, nil)
	defer testhook.SetChoice(-1)
	for k := range 5 {
		testhook.SetChoice(k)
		halves(e, 5)
		if ran := dev.taken(); !slices.Equal(ran, []uint64{uint64(k % 3)}) {
			t.Errorf("choice %d: %v", k, ran)
		}
	}
	if dev.tries != 0 {
		t.Error("timed for nothing")
	}
}
