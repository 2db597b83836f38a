package acrosstest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/local"
	"github.com/millrace-go/millrace/internal/distapi"
	"github.com/millrace-go/millrace/optim"
)

// ranks runs f on goroutines as ranks, each with a stream, and fails the test by their errors.
func ranks(t *testing.T, n int, f func(ctx context.Context, w *dist.World, at millrace.Place) error) {
	t.Helper()
	err := local.Run(t.Context(), n, options(), func(ctx context.Context, w *dist.World) error {
		at, err := Place(1)
		if err != nil {
			return err
		}
		return f(ctx, w, at)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestBuckets: gradients are sent in about as many calls as their bytes and the size of a bucket say.
func TestBuckets(t *testing.T) {
	m := model(t, "gpt")
	m.Steps = 1
	ranks(t, 1, func(context.Context, *dist.World, millrace.Place) error { return nil }) // sets distapi's functions
	calls, lines := map[string]int{}, 0
	var mu sync.Mutex
	real := distapi.AllReduce
	defer func() { distapi.AllReduce = real }()
	distapi.AllReduce = func(w any, name string, list []string, x any) any {
		mu.Lock()
		calls[name]++
		lines += len(list)
		mu.Unlock()
		return real(w, name, list, x)
	}
	for _, buckets := range []int{1, 4, 12} {
		clear(calls)
		lines = 0
		ranks(t, 2, func(ctx context.Context, w *dist.World, at millrace.Place) error {
			_, err := m.Run(ctx, w, How{Buckets: buckets, At: at})
			return err
		})
		if n := len(calls); n < buckets/2 || n > buckets+2 {
			t.Errorf("%d calls for %d buckets: %v", n, buckets, calls)
		}
		if lines < 2*16 {
			t.Errorf("%d lines of plans of two ranks for 16 parameters", lines)
		}
	}
}

// TestSteady: further steps need no more memory and goroutines, and record nothing.
func TestSteady(t *testing.T) {
	dev, err := millrace.Open("cpu:cache=off,compile=off,explore=wait,tune=off")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m := model(t, "lossscale")
	m.Batch = regression(6, 16, 11)
	steps := 100
	if long {
		steps = 1000
	}
	for _, record := range []bool{false, true} {
		ranks(t, 2, func(ctx context.Context, w *dist.World, _ millrace.Place) error {
			how := How{Record: record, Buckets: 3, At: dev.NewStream()}
			x := m.New(how.At)
			s := x.Optimizer.Step(x.Loss, m.options(x, w, how)...)
			defer s.Close()
			run := func(from, to int) error {
				losses, err := m.runs(ctx, w, how, x, s, from, to)
				for _, l := range losses {
					l.Release()
				}
				return errors.Join(err, w.Barrier(ctx))
			}
			count := func() (s millrace.Stats, goroutines int, err error) {
				runtime.GC()
				runtime.GC()
				err = errors.Join(dev.Sync(nil), w.Barrier(ctx))
				s, goroutines = dev.Stats(), runtime.NumGoroutine()
				return s, goroutines, errors.Join(err, w.Barrier(ctx))
			}
			if err := run(0, 40); err != nil {
				return err
			}
			before, goroutines, err := count()
			if err == nil {
				err = run(40, 40+steps)
			}
			if err != nil {
				return err
			}
			after, now, err := count()
			if more := int64(after.LiveBytes) - int64(before.LiveBytes); more > 1024 {
				err = errors.Join(err, fmt.Errorf("recorded %v: %d bytes more after %d steps", record, more, steps))
			}
			if now > goroutines+8 {
				err = errors.Join(err, fmt.Errorf("recorded %v: %d goroutines, %d before", record, now, goroutines))
			}
			if n := after.Recordings - before.Recordings; n != 0 {
				err = errors.Join(err, fmt.Errorf("recorded %v: %d recordings", record, n))
			}
			return err
		})
	}
}

// says returns an error unless err is of a kind and has a text.
func says(err, kind error, text string) error {
	switch {
	case err == nil:
		return fmt.Errorf("no error, want one that says %q", text)
	case kind != nil && !errors.Is(err, kind):
		return fmt.Errorf("an error that is not %w: %w", kind, err)
	case !strings.Contains(err.Error(), text):
		return fmt.Errorf("%q does not say %q", err, text)
	}
	return nil
}

// TestEnds: a step cannot run when its World is closed.
func TestEnds(t *testing.T) {
	m := model(t, "mlp")
	for _, n := range []int{1, 2} {
		for _, record := range []bool{false, true} {
			ranks(t, n, func(ctx context.Context, w *dist.World, at millrace.Place) error {
				how := How{Record: record, At: at}
				x := m.New(at)
				s := x.Optimizer.Step(x.Loss, m.options(x, w, how)...)
				defer s.Close()
				b := m.Batch(0)
				if _, err := m.runs(ctx, w, how, x, s, 0, 2); err != nil {
					return err
				}
				if err := w.Close(); err != nil {
					return err
				}
				loss, err := s.Run(ctx, b.Tensors(at, 0, 4)...)
				if err == nil {
					err = loss.Err()
				}
				return says(err, dist.ErrClosed, "closed")
			})
		}
	}
}

// TestNoRows: a batch without any rows is an error of all ranks, or its loss is no number, as in a
// step of one process. No rank waits.
func TestNoRows(t *testing.T) {
	m := model(t, "mlp")
	for _, record := range []bool{false, true} {
		for _, n := range []int{1, 2, 4} {
			errs := failing(n, func(ctx context.Context, w *dist.World, at millrace.Place) error {
				how := How{Record: record, At: at}
				x := m.New(at)
				s := x.Optimizer.Step(x.Loss, m.options(x, w, how)...)
				defer s.Close()
				none := m.Batch(0).Tensors(at, 0, 0)
				loss, err := s.Run(ctx, none...)
				if err != nil {
					return says(err, nil, "row")
				}
				v, err := millrace.Item[float32](loss)
				if err == nil && v == v {
					err = fmt.Errorf("the loss is %v", v)
				}
				return err
			})
			if errs != nil {
				t.Errorf("%d ranks, recorded %v: %v", n, record, errs)
			}
		}
	}
}

// TestOtherOrder: two steps that the ranks run in other orders are an error.
func TestOtherOrder(t *testing.T) {
	a, b := model(t, "mlp"), model(t, "gpt")
	for _, record := range []bool{false, true} {
		errs := failing(2, func(ctx context.Context, w *dist.World, at millrace.Place) error {
			how := How{Record: record, At: at}
			var steps []func() error
			for _, m := range []Model{a, b} {
				x := m.New(at)
				s := x.Optimizer.Step(x.Loss, m.options(x, w, how)...)
				defer s.Close()
				steps = append(steps, func() error {
					losses, err := m.runs(ctx, w, how, x, s, 0, 1)
					if err == nil {
						err = losses[0].Eval()
					}
					return err
				})
			}
			first, second := steps[0], steps[1]
			if err := errors.Join(first(), second(), w.Barrier(ctx)); err != nil {
				return err
			}
			if w.Rank() == 1 {
				first, second = second, first
			}
			err := errors.Join(first(), second())
			return says(err, dist.ErrMismatch, "rank 1 has")
		})
		if errs != nil {
			t.Errorf("recorded %v: %v", record, errs)
		}
	}
}

// failing runs f on goroutines as ranks whose Worlds may fail.
func failing(n int, f func(ctx context.Context, w *dist.World, at millrace.Place) error) error {
	net := local.New(n)
	errs := make([]error, n)
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() {
			o := options()
			o.Opener, o.Log = net.Opener(r), func(string) {}
			w, err := dist.Open(context.Background(), o)
			if err != nil {
				errs[r] = err
				return
			}
			defer w.Close()
			at, err := Place(1)
			if err == nil {
				err = f(context.Background(), w, at)
			}
			errs[r] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// TestEarlyEnd: a rank that closes its World while others run another step is an error of all.
func TestEarlyEnd(t *testing.T) {
	m := model(t, "mlp")
	for _, record := range []bool{false, true} {
		for _, n := range []int{2, 4} {
			errs := failing(n, func(ctx context.Context, w *dist.World, at millrace.Place) error {
				how := How{Record: record, At: at}
				x := m.New(at)
				s := x.Optimizer.Step(x.Loss, m.options(x, w, how)...)
				defer s.Close()
				if _, err := m.runs(ctx, w, how, x, s, 0, 2); err != nil {
					return err
				}
				if w.Rank() == n-1 {
					return says(w.Close(), dist.ErrMismatch, fmt.Sprintf("rank %d calls close", n-1))
				}
				_, err := m.runs(ctx, w, how, x, s, 2, 3)
				return says(err, dist.ErrMismatch, fmt.Sprintf("rank %d calls close", n-1))
			})
			if errs != nil {
				t.Errorf("%d ranks, recorded %v: %v", n, record, errs)
			}
		}
	}
}

// TestBadOptions: options of Across that cannot be are errors of the step.
func TestBadOptions(t *testing.T) {
	for text, o := range map[string]func(w *dist.World) optim.StepOption{
		"World":     func(w *dist.World) optim.StepOption { return optim.Across(nil, optim.Ranks{}) },
		"dist.Open": func(w *dist.World) optim.StepOption { return optim.Across(new(dist.World), optim.Ranks{}) },
		"3 leaves":  func(w *dist.World) optim.StepOption { return optim.Across(w, optim.Ranks{Leaves: 3}) },
		"-2 leaves": func(w *dist.World) optim.StepOption { return optim.Across(w, optim.Ranks{Leaves: -2}) },
		"bucket":    func(w *dist.World) optim.StepOption { return optim.Across(w, optim.Ranks{Bucket: -1}) },
	} {
		err := failing(2, func(ctx context.Context, w *dist.World, at millrace.Place) error {
			x := perceptron(at, sgd())
			b := regression(1, 2)(0)
			_, err := x.Optimizer.Step(x.Loss, o(w)).Run(ctx, b.Tensors(at, 0, 2)...)
			return says(err, nil, text)
		})
		if err != nil {
			t.Error(err)
		}
	}
}
