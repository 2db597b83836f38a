package dist_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// TestAlone: without a launcher there is one rank, whose collectives are copies.
func TestAlone(t *testing.T) {
	w, err := dist.Open(context.Background(), dist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w.Rank() != 0 || w.Size() != 1 || w.Err() != nil || w.Stopping() {
		t.Errorf("rank %d of %d, %v, stopping %v", w.Rank(), w.Size(), w.Err(), w.Stopping())
	}
	x := millrace.FromSlice([]float32{1, 2})
	for range 3 {
		if got := fmt.Sprint(w.AllReduce(x)); got != "[1. 2.]" {
			t.Errorf("the sum is %s", got)
		}
	}
	if w.Lanes() != 1 {
		t.Errorf("%d lanes for the tensors of one device", w.Lanes())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Barrier(context.Background()); !errors.Is(err, dist.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := w.AllReduce(x).Err(); !errors.Is(err, dist.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// TestAloneFailed: a World of one rank that has failed ends no process.
func TestAloneFailed(t *testing.T) {
	w, err := dist.Open(context.Background(), dist.Options{Log: func(line string) { t.Errorf("the log has %q", line) }})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the disk is full")
	w.Fail(cause)
	if err := w.Close(); !errors.Is(err, cause) {
		t.Errorf("Close returns %v", err)
	}
}

// TestRunsAfterClose: runs of a Recording after the World's end are errors that keep no memory.
func TestRunsAfterClose(t *testing.T) {
	dev, err := millrace.Open("cpu:compile=off")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	w, err := dist.Open(context.Background(), dist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{w.AllReduce(in[0].AddScalar(1))}, nil
	})
	defer rec.Release()
	x := millrace.OnesOn(dev, millrace.Float32, 1<<18)
	run := func() error {
		out, err := rec.Run(nil, x)
		if err == nil {
			err = out[0].Eval()
			out[0].Release()
		}
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var before int64
	for i := range 30 {
		if err := run(); !errors.Is(err, dist.ErrClosed) {
			t.Fatalf("run %d after Close: %v", i, err)
		}
		if i == 9 {
			before = dev.Stats().Runtime.AllocBytes
		}
	}
	if now := dev.Stats().Runtime.AllocBytes; now > before {
		t.Errorf("20 runs keep %d bytes", now-before)
	}
}

// TestLaunched: a launcher without a driver, and an unknown driver, are errors.
func TestLaunched(t *testing.T) {
	if _, err := dist.Open(context.Background(), dist.Options{Driver: "none"}); err == nil || !strings.Contains(err.Error(), "dist/mpi") {
		t.Errorf("the error is %v", err)
	}
	t.Setenv("OMPI_COMM_WORLD_SIZE", "4")
	never := func(context.Context) (dist.Driver, error) { return nil, errors.New("not this one") }
	for range 2 { // without any driver, and with one that the launcher is not for
		if _, err := dist.Open(context.Background(), dist.Options{}); err == nil || !strings.Contains(err.Error(), "4 ranks") {
			t.Errorf("the error is %v", err)
		}
		if len(dist.Drivers()) == 0 {
			dist.Register("other", dist.Opener{Open: never, Launched: func() (string, int) { return "", 0 }})
		}
	}
}

// open opens a World on each rank of a net; options changes a rank's options.
func open(n int, options func(r int, o *dist.Options)) ([]*dist.World, []error) {
	net := local.New(n)
	ws, errs := make([]*dist.World, n), make([]error, n)
	var all sync.WaitGroup
	for r := range ws {
		all.Go(func() {
			o := dist.Options{Opener: net.Opener(r), Log: func(string) {}}
			options(r, &o)
			ws[r], errs[r] = dist.Open(context.Background(), o)
		})
	}
	all.Wait()
	return ws, errs
}

// stream is a place for tensors of one rank.
func stream(t *testing.T) *millrace.Stream {
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	return d.NewStream()
}

// each runs f on all Worlds at once.
func each(ws []*dist.World, f func(w *dist.World)) {
	var all sync.WaitGroup
	for _, w := range ws {
		all.Go(func() { f(w) })
	}
	all.Wait()
}

// TestAnotherProgram: ranks of other executables are an error of all that says who has which, unless
// it is allowed.
func TestAnotherProgram(t *testing.T) {
	programs := []string{"v1", "v2", "v1"}
	_, errs := open(3, func(r int, o *dist.Options) { dist.SetProgram(o, programs[r]) })
	for r, err := range errs {
		if !errors.Is(err, dist.ErrMismatch) || !strings.Contains(err.Error(), "ranks 0, 2 run v1; rank 1 runs v2") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	ws, errs := open(3, func(r int, o *dist.Options) {
		dist.SetProgram(o, programs[r])
		o.AnyProgram = true
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	each(ws, func(w *dist.World) {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStopping: what one rank was asked, all ranks report from the same call on.
func TestStopping(t *testing.T) {
	ws, errs := open(3, func(int, *dist.Options) {})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	ws[1].Ask()
	each(ws, func(w *dist.World) {
		if w.Stopping() {
			t.Error("stopping before a call")
		}
	})
	each(ws, func(w *dist.World) {
		if err := w.Barrier(context.Background()); err != nil || !w.Stopping() {
			t.Errorf("rank %d: %v, stopping %v", w.Rank(), err, w.Stopping())
		}
		w.Close()
	})
}

// TestStoppingAhead: ranks that record calls without waiting report the same.
func TestStoppingAhead(t *testing.T) {
	ws, errs := open(3, func(int, *dist.Options) {})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var said [3][20]bool
	each(ws, func(w *dist.World) {
		dev, err := millrace.Default()
		if err != nil {
			t.Error(err)
			return
		}
		s := dev.NewStream()
		defer s.Close()
		x := millrace.FromSliceOn(s, []float32{1, 2})
		for i := range said[0] {
			if w.Rank() == 1 && i == 7 {
				w.Ask()
			}
			y := w.AllReduce(x)
			if i%3 == w.Rank() { // the others go on
				y.Err()
				time.Sleep(time.Millisecond)
			}
			said[w.Rank()][i] = w.Stopping()
		}
		w.Close()
	})
	if said[0] != said[1] || said[0] != said[2] || said[0][6] || !said[0][19] {
		t.Errorf("%v", said)
	}
}

// TestDeferredClose: a panic of a rank is an error of all, and goes on where Close returns.
func TestDeferredClose(t *testing.T) {
	ws, errs := open(2, func(_ int, o *dist.Options) { o.Log = func(string) {} })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	each(ws, func(w *dist.World) {
		if w.Rank() == 1 {
			defer func() {
				if v := recover(); v != "broken" {
					t.Errorf("it panicked with %v", v)
				}
			}()
			defer w.Close()
			panic("broken")
		}
		e, ok := errors.AsType[*dist.RankError](w.Barrier(context.Background()))
		if !ok || e.Rank != 1 || !strings.Contains(e.Error(), "the program panicked: broken") {
			t.Errorf("the error is %v", e)
		}
		w.Close()
	})
}

// TestSignal: SIGTERM does not end the process, and is what Stopping reports.
func TestSignal(t *testing.T) {
	w, err := dist.Open(context.Background(), dist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil {
		t.Skip("this system cannot send SIGTERM:", err)
	}
	for !w.Stopping() { // the signal is on its way; the test's own limit ends a wait in vain
		if err := w.Barrier(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestOrder: calls of several goroutines of a rank run one after another, and a caller that gives up
// leaves its call to the others.
func TestOrder(t *testing.T) {
	ws, errs := open(2, func(int, *dist.Options) {})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := ws[0].Barrier(over); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	each(ws, func(w *dist.World) {
		if w == ws[1] {
			if err := w.Barrier(context.Background()); err != nil {
				t.Error(err)
			}
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				x := millrace.OnesOn(stream(t), millrace.Int32, 100)
				defer x.Release()
				if v, err := millrace.Values[int32](w.AllReduce(x)); err != nil || v[99] != 2 {
					t.Errorf("%v, %v", v, err)
				}
			})
		}
		all.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRecording: a Recording whose function calls a collective repeats it: each run
// computes new values.
func TestRecording(t *testing.T) {
	w, err := dist.Open(context.Background(), dist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	x := millrace.Ones(millrace.Float32, 3)
	d := x.Stream().Device()
	before := d.Stats().Recordings
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{w.AllReduce(in[0].AddScalar(1)).AddScalar(1)}, nil
	})
	defer rec.Release()
	for i := range 3 {
		x.Set(millrace.Full(millrace.Float32, float64(i), 3))
		out, err := rec.Run(context.Background(), x)
		if want := fmt.Sprintf("[%d. %[1]d. %[1]d.]", i+2); err != nil || fmt.Sprint(out[0]) != want {
			t.Errorf("%v, %v, want %s", out, err, want)
		}
	}
	if n := d.Stats().Recordings - before; n != 1 {
		t.Errorf("%d recordings of the function, want 1", n)
	}
}
