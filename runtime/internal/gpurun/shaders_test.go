package gpurun

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// gate holds up compiles of texts that contain a word, until it is opened.
type gate struct {
	word    string
	arrived chan bool // one for each waiting compile
	open    chan bool
}

// shut gives f's compiler a gate. It is opened when the test ends, before the device is closed.
func shut(t *testing.T, f *fake, word string) (g *gate, opened func()) {
	g = &gate{word: word, arrived: make(chan bool, 100), open: make(chan bool)}
	f.compiling = func(source string) {
		if strings.Contains(source, g.word) {
			g.arrived <- true
			<-g.open
		}
	}
	opened = sync.OnceFunc(func() { close(g.open) })
	t.Cleanup(opened)
	return g, opened
}

// soon fails the test if f does not return.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s waits\n%s", what, debug.Stack())
	}
}

func opKernel(op string) string { return strings.Replace(negKernel, "neg", op, 1) }

// TestRunsBesideCompiling: while a shader is being compiled, other Runs proceed, with existing
// shaders and new ones, and so do the engine's other calls.
func TestRunsBesideCompiling(t *testing.T) {
	d, f := open(t, runtime.Config{})
	known, slow, fresh := launch(t, d, copyKernel, 1, 100), launch(t, d, opKernel("sqrt"), 1, 100), launch(t, d, opKernel("abs"), 1, 100)
	run := func(l *runtime.Launch) func() {
		return func() {
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Error(err)
			}
		}
	}
	run(known)()
	g, opened := shut(t, f, "sqrt(")
	var first sync.WaitGroup
	first.Go(run(slow))
	<-g.arrived
	soon(t, "a Run of a known shader", run(known))
	soon(t, "a Run of a new one", run(fresh))
	soon(t, "a sort", run(launch(t, d, sortKernel, 1, 4, 100)))
	soon(t, "Forget", func() { d.Forget(slow.Prog) })
	soon(t, "a Run behind it", run(known))
	soon(t, "what people look at", func() { d.Source(slow.Prog); d.Notes(); d.Stats() })
	if n := len(f.submitted); n != 5 {
		t.Errorf("%d submissions beside a compile", n)
	}
	opened()
	first.Wait()
	run(slow)()
	if n := f.made[f.submitted[len(f.submitted)-1][0].Pipe.(*fakePipeline).source]; n == 0 {
		t.Error("the shader was never compiled")
	}
}

// TestCompiledOnce: all requests for a text that is being compiled wait for that compile. A text
// that cannot be compiled is an error for all that wait, but later requests try again.
func TestCompiledOnce(t *testing.T) {
	defer fault.Reset()
	const n = 8
	d, f := open(t, runtime.Config{})
	g, opened := shut(t, f, "sqrt(")
	var launches [n]*runtime.Launch
	for i := range launches { // separate programs with a common text
		launches[i] = launch(t, d, opKernel("sqrt"), 1, 100)
	}
	all := func() (errs [n]error) {
		var group sync.WaitGroup
		for i, l := range launches {
			group.Go(func() { errs[i] = d.Run([]runtime.Launch{*l}) })
		}
		<-g.arrived
		for d.uses() < n {
			time.Sleep(time.Millisecond)
		}
		opened()
		group.Wait()
		return errs
	}
	f.refuse = &SourceError{Log: "line 3"}
	for i, err := range all() {
		var ce *runtime.CompileError
		if !errors.As(err, &ce) || ce.Log != "line 3" {
			t.Errorf("Run %d: %v", i, err)
		}
	}
	if s := d.Stats(); len(g.arrived) != 0 || s.Compiles != 0 || d.shaders.count() != 0 {
		t.Errorf("%d more compiles, %d counted, %d shaders", len(g.arrived), s.Compiles, d.shaders.count())
	}
	f.refuse = nil
	fault.Set(fault.Compile, 1)
	if err := d.Run([]runtime.Launch{*launches[0]}); err == nil {
		t.Error("the fault point was passed")
	}
	g, opened = shut(t, f, "sqrt(")
	for i, err := range all() {
		if err != nil {
			t.Errorf("Run %d: %v", i, err)
		}
	}
	if s := d.Stats(); s.Compiles != 1 || len(g.arrived) != 0 {
		t.Errorf("%d compiles", s.Compiles)
	}
	for _, l := range launches {
		d.Forget(l.Prog)
	}
	if d.sweep(); f.pipelines != 0 {
		t.Errorf("%d pipelines are left", f.pipelines)
	}
}

// uses is the number of uses of shaders, waiting ones included.
func (d *Runner) uses() (n int) {
	d.shaders.mu.Lock()
	defer d.shaders.mu.Unlock()
	for _, sh := range d.shaders.list {
		n += sh.users
	}
	return n
}

// TestPrebuildBesideRuns: a Run waits for a shader being compiled in advance only if it needs that
// one, which is then compiled once.
func TestPrebuildBesideRuns(t *testing.T) {
	before := openDevice(t, runtime.Config{})
	ranOn(t, before, opKernel("sqrt"))
	d, f := open(t, runtime.Config{})
	known, slow := launch(t, d, copyKernel, 1, 100), launch(t, d, opKernel("sqrt"), 1, 100)
	g, opened := shut(t, f, "sqrt(")
	var bad refusals
	d.Prebuild(maps.All(shipped(before)), bad.add)
	<-g.arrived
	soon(t, "a Run of another shader", func() {
		if err := d.Run([]runtime.Launch{*known}); err != nil {
			t.Error(err)
		}
	})
	ran := make(chan error)
	go func() { ran <- d.Run([]runtime.Launch{*slow}) }()
	select {
	case err := <-ran:
		t.Errorf("ran without its shader: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	opened()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if err := d.Wait(true); err != nil || len(bad.list) != 0 || d.Stats().Compiles != 2 {
		t.Errorf("%v, refused %v, %d compiles", err, bad.list, d.Stats().Compiles)
	}
	// It ends with the program that took it over.
	d.Forget(slow.Prog)
	d.Forget(known.Prog)
	if d.sweep(); f.pipelines != 0 || d.shaders.count() != 0 {
		t.Errorf("%d pipelines are left", f.pipelines)
	}
}

// TestForgottenOnTheWay: a batch holds its shaders until it is submitted.
func TestForgottenOnTheWay(t *testing.T) {
	d, f := open(t, runtime.Config{})
	one, slow := launch(t, d, copyKernel, 1, 100), launch(t, d, opKernel("sqrt"), 1, 100)
	known := ranOn(t, d, opKernel("exp"))
	g, opened := shut(t, f, "sqrt(")
	ran := make(chan error)
	go func() { ran <- d.Run([]runtime.Launch{*one, *known, *slow}) }()
	<-g.arrived // the dispatches of two are ready
	d.Forget(one.Prog)
	d.Forget(known.Prog)
	ranOn(t, d, opKernel("abs")) // and sweeps
	if f.pipelines != 3 {
		t.Errorf("%d pipelines: those of a Run under way are gone", f.pipelines)
	}
	opened()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if f.pipelines != 2 {
		t.Errorf("%d pipelines after it", f.pipelines)
	}
}

// TestHammerForget: Runs of several streams, forgotten programs, and shaders compiled in advance,
// all at once. The fake rejects released pipelines.
func TestHammerForget(t *testing.T) {
	ops := []string{"neg", "abs", "sqrt", "exp", "sin"}
	before := openDevice(t, runtime.Config{})
	for _, op := range ops {
		ranOn(t, before, opKernel(op))
	}
	d, f := open(t, runtime.Config{})
	f.compiling = func(string) { time.Sleep(time.Duration(rand.N(300)) * time.Microsecond) }
	var all sync.WaitGroup
	for stream := range 6 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(stream)))
			for range 60 {
				var list []runtime.Launch
				for range 1 + rng.IntN(4) {
					kernel, kept, dims := opKernel(ops[rng.IntN(len(ops))]), 1, []int64{100}
					switch rng.IntN(6) {
					case 0:
						kernel, dims = sortKernel, []int64{4, 3000}
					case 1:
						kernel, dims = "in 0 : float32\nout 1 : float32 row\n%0 = load 0 : float32\n%1 = sum %0 : float32\nstore 1 %1", []int64{1, 3 * rowSteps}
					}
					list = append(list, *launch(t, d, kernel, kept, dims...))
				}
				if rng.IntN(3) == 0 {
					d.Forget(list[0].Prog) // while it is in use
				}
				if err := d.Run(list); err != nil {
					t.Error(err)
				}
				if rng.IntN(8) == 0 {
					d.Prebuild(maps.All(shipped(before)), func(err error) { t.Error(err) })
				}
				for i := range list {
					d.Forget(list[i].Prog)
					for _, a := range list[i].Args {
						d.Free(a.Buf)
					}
				}
			}
		})
	}
	all.Wait()
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.parts.list {
		d.Forget(p)
	}
	d.sweep()
	ahead := 0
	for _, sh := range d.shaders.list {
		if !sh.ahead || sh.users != 1 {
			t.Errorf("%d users of a shader that is not for later", sh.users)
		}
		ahead++
	}
	if n := len(d.Notes()); n != 0 || f.pipelines != ahead || d.Stats().AllocBytes != 0 {
		t.Errorf("%d notes, %d pipelines with %d for later, %d bytes", n, f.pipelines, ahead, d.Stats().AllocBytes)
	}
}

// TestPanics: if a driver, or code that calls it, panics, the device is lost, and every waiting
// call returns that.
func TestPanics(t *testing.T) {
	lost := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, runtime.ErrDeviceLost) || !strings.Contains(err.Error(), "a test") {
			t.Errorf("%s: %v", what, err)
		}
	}
	run := func(d *Runner, ls ...*runtime.Launch) (err error) {
		for _, l := range ls {
			soon(t, "a Run", func() { err = errors.Join(err, d.Run([]runtime.Launch{*l})) })
		}
		return err
	}
	before := openDevice(t, runtime.Config{})
	ranOn(t, before, opKernel("sqrt"))
	for name, begin := range map[string]func(d *Runner, l *runtime.Launch) error{
		"compiling": func(d *Runner, l *runtime.Launch) error { return run(d, l) },
		"trying":    func(d *Runner, l *runtime.Launch) error { _, err := d.Try(l); return err },
		"beforehand": func(d *Runner, l *runtime.Launch) error {
			d.Prebuild(maps.All(shipped(before)), func(err error) { t.Error(err) })
			soon(t, "Wait", func() { lost("Wait", d.Wait(true)) })
			return run(d, l)
		},
	} {
		d, f := open(t, runtime.Config{})
		l := launch(t, d, opKernel("sqrt"), 1, 100)
		f.compiling = func(string) { panic("a test") }
		lost(name, begin(d, l))
		lost(name+" again", run(d, l))
		soon(t, "Close", func() { _ = d.Close() })
	}
	// Two wait for one shader.
	d, f := open(t, runtime.Config{})
	ls := []*runtime.Launch{launch(t, d, opKernel("sqrt"), 1, 100), launch(t, d, opKernel("sqrt"), 1, 100)}
	f.compiling = func(string) {
		for d.uses() < 2 {
			time.Sleep(time.Millisecond)
		}
		panic("a test")
	}
	var both sync.WaitGroup
	for _, l := range ls {
		both.Go(func() { lost("one of two", run(d, l)) })
	}
	soon(t, "two Runs", both.Wait)
	// A panic in submitting, with locks held.
	d, f = open(t, runtime.Config{})
	l := launch(t, d, copyKernel, 1, 100)
	f.afterwards = func([]Dispatch) { panic("a test") }
	lost("submitting", run(d, l))
	lost("submitting again", run(d, l))
	// A panic in the cache, in the background.
	d, _ = open(t, runtime.Config{Cache: &panicking{}})
	soon(t, "Wait", func() { lost("Wait", d.Wait(true)) })
}

// panicking is a cache that panics.
type panicking struct{ memoryCache }

func (*panicking) Get(string, string) ([]byte, bool) { panic("a test") }

// BenchmarkRun times a Run of some launches without the device's work.
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, f := open(b, runtime.Config{})
			var list []runtime.Launch
			for i := range n {
				list = append(list, *launch(b, d, opKernel([]string{"neg", "abs", "sqrt", "exp"}[i%4]), 1, 100))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Run(list); err != nil {
					b.Fatal(err)
				}
				f.submitted = f.submitted[:0]
			}
		})
	}
}
