package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// network returns two layers for rows of 8 numbers, and what they make of a row alone.
func network(t testing.TB) (f func(*millrace.Scope, []*millrace.Tensor) ([]*millrace.Tensor, error), alone func(row []float32) []float32) {
	first := millrace.Normal(millrace.Float32, 1, 8, 32)
	second := millrace.Normal(millrace.Float32, 2, 32, 5)
	for _, w := range []*millrace.Tensor{first, second} {
		if err := w.Eval(); err != nil {
			t.Fatal(err)
		}
	}
	forward := func(x *millrace.Tensor) *millrace.Tensor { return x.MatMul(first).Gelu().MatMul(second).Softmax(1) }
	f = func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		return []*millrace.Tensor{forward(in[0]), in[0].Sum(1)}, nil
	}
	return f, func(row []float32) []float32 {
		v, err := millrace.Values[float32](forward(millrace.FromSlice(row, len(row)/8, 8)))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func rowsOf(rng *rand.Rand, n int) []float32 {
	x := make([]float32, 8*n)
	for i := range x {
		x[i] = rng.Float32() - 0.5
	}
	return x
}

// TestRun: whatever waits with a request, its answer has the bits that it has alone.
func TestRun(t *testing.T) {
	for _, o := range []Options{{}, {Rows: 3}, {Rows: 7, Workers: 3}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			f, alone := network(t)
			b, err := New[float32, float32](f, o, []int{8})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for g := range 8 {
				rng := rand.New(rand.NewPCG(uint64(g), 1))
				wg.Go(func() {
					for range 30 {
						x := rowsOf(rng, 1+rng.IntN(5))
						out, err := b.Run(t.Context(), x)
						if err != nil {
							t.Error(err)
							return
						}
						if want := alone(x); len(out) != 2 || !slices.Equal(out[0], want) || len(out[1]) != len(x)/8 {
							t.Errorf("%v, want %v", out, want)
						}
					}
				})
			}
			wg.Wait()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			s := b.Stats()
			if s.Requests != 240 || s.Batches == 0 || s.Batches > 240 || s.Rows < 240 || s.Again != 0 || s.GivenUp != 0 {
				t.Errorf("%+v", s)
			}
			if _, err := b.Run(t.Context(), rowsOf(rand.New(rand.NewPCG(0, 0)), 1)); !errors.Is(err, millrace.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// held is a Batcher whose function waits for a token before its first call ends, so that requests
// that come meanwhile wait for sure.
func held(t *testing.T, f func(in []*millrace.Tensor) *millrace.Tensor) (b *Batcher[int64, int64], started, release chan struct{}) {
	started, release = make(chan struct{}), make(chan struct{})
	var once sync.Once
	b, err := New[int64, int64](func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		once.Do(func() {
			close(started)
			<-release
		})
		return []*millrace.Tensor{f(in)}, nil
	}, Options{Workers: 1}, []int{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, started, release
}

// sending waits until n goroutines of the Batcher's requests wait to be taken.
func sending(n int) {
	for {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		if strings.Count(stacks, "[select]:\ngithub.com/millrace-go/millrace/serve.(*Batcher") >= n {
			return
		}
		runtime.Gosched()
	}
}

// TestTogether: what waits while a batch is computed is one batch.
func TestTogether(t *testing.T) {
	b, started, release := held(t, func(in []*millrace.Tensor) *millrace.Tensor { return in[0].MulScalar(2) })
	var wg sync.WaitGroup
	ask := func(x int64) {
		out, err := b.Run(t.Context(), []int64{x})
		if err != nil || !slices.Equal(out[0], []int64{2 * x}) {
			t.Errorf("%v, %v", out, err)
		}
	}
	wg.Go(func() { ask(100) })
	<-started
	for i := range 9 {
		wg.Go(func() { ask(int64(i)) })
	}
	sending(10) // the first one waits for its answer
	close(release)
	wg.Wait()
	if s := b.Stats(); s.Batches != 2 || s.Rows != 10 || s.Requests != 10 {
		t.Errorf("%+v", s)
	}
}

// TestOneFails: an index out of range is the error of its own request only.
func TestOneFails(t *testing.T) {
	table := millrace.Arange(millrace.Int64, 0, 10, 1)
	b, started, release := held(t, func(in []*millrace.Tensor) *millrace.Tensor { return table.Take(in[0], 0) })
	var wg sync.WaitGroup
	ask := func(x int64) {
		out, err := b.Run(t.Context(), []int64{x})
		if x < 10 && (err != nil || !slices.Equal(out[0], []int64{x})) || x >= 10 && err == nil {
			t.Errorf("%d: %v, %v", x, out, err)
		}
	}
	wg.Go(func() { ask(0) })
	<-started
	for i := range 4 {
		wg.Go(func() { ask(int64(8 + i)) })
	}
	sending(5)
	close(release)
	wg.Wait()
	if s := b.Stats(); s.Again != 4 || s.Requests != 5 {
		t.Errorf("%+v", s)
	}
}

// TestPanics: a panic of the function is that of the request that causes it, and a function that
// ends its goroutine leaves the Batcher usable.
func TestPanics(t *testing.T) {
	for _, end := range []func(){func() { panic("no") }, runtime.Goexit} {
		first := true
		b, err := New[float32, float32](func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
			if first {
				first = false
				end()
			}
			return in, nil
		}, Options{}, []int{2})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if p := recover(); p != nil && !strings.Contains(fmt.Sprint(p), "computing a request: no") {
					t.Error(p)
				}
			}()
			if _, err := b.Run(t.Context(), []float32{1, 2}); !errors.Is(err, errEnded) {
				t.Errorf("%v", err)
			}
		}()
		if out, err := b.Run(t.Context(), []float32{1, 2}); err != nil || !slices.Equal(out[0], []float32{1, 2}) {
			t.Errorf("%v, %v", out, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEndsTogether: a function that ends its goroutine for a batch answers the requests that it can.
func TestEndsTogether(t *testing.T) {
	b, started, release := held(t, func(in []*millrace.Tensor) *millrace.Tensor {
		if in[0].Dim(0) > 1 {
			runtime.Goexit()
		}
		return in[0]
	})
	var wg sync.WaitGroup
	ask := func(x int64) {
		if out, err := b.Run(t.Context(), []int64{x}); err != nil || out[0][0] != x {
			t.Errorf("%d: %v, %v", x, out, err)
		}
	}
	wg.Go(func() { ask(0) })
	<-started
	for i := range 4 {
		wg.Go(func() { ask(int64(i)) })
	}
	sending(5)
	close(release)
	wg.Wait()
	if s := b.Stats(); s.Again != 4 {
		t.Errorf("%+v", s)
	}
}

// TestGivesUp: Run returns when its context ends, before its turn and in it, and lets go of its
// slice.
func TestGivesUp(t *testing.T) {
	b, started, release := held(t, func(in []*millrace.Tensor) *millrace.Tensor { return in[0] })
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	ask := func() {
		x := []int64{1}
		if _, err := b.Run(ctx, x); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		x[0] = 2
	}
	wg.Go(ask)
	<-started
	wg.Go(ask)
	sending(2)
	stop()
	wg.Wait()
	close(release)
	if out, err := b.Run(t.Context(), []int64{3}); err != nil || out[0][0] != 3 {
		t.Errorf("%v, %v", out, err)
	}
	if s := b.Stats(); s.GivenUp != 2 {
		t.Errorf("%+v", s)
	}
}

// TestRefuses: bad options, inputs and results are errors that say what was wanted.
func TestRefuses(t *testing.T) {
	f, _ := network(t)
	for _, c := range []struct {
		o    Options
		rows [][]int
	}{{Options{Rows: -1}, [][]int{{8}}}, {Options{Workers: -1}, [][]int{{8}}}, {Options{}, nil}, {Options{}, [][]int{{8, 0}}}, {Options{}, [][]int{{1 << 62, 4}}}} {
		if _, err := New[float32, float32](f, c.o, c.rows...); !errors.Is(err, millrace.ErrShape) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	two, err := New[float32, int32](func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		switch in[0].Dim(0) {
		case 3:
			return []*millrace.Tensor{in[0].Sum()}, nil
		case 4:
			return []*millrace.Tensor{in[1].Slice(millrace.R(0, 2))}, nil
		}
		return in, nil
	}, Options{}, []int{2}, []int{})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	x := func(n int) []float32 { return make([]float32, n) }
	for _, c := range []struct {
		in   [][]float32
		want error
	}{
		{nil, millrace.ErrShape}, {[][]float32{x(2)}, millrace.ErrShape}, {[][]float32{x(3), x(1)}, millrace.ErrShape},
		{[][]float32{x(4), x(1)}, millrace.ErrShape}, {[][]float32{x(0), x(0)}, millrace.ErrShape},
		{[][]float32{x(2), x(1)}, millrace.ErrDType}, {[][]float32{x(6), x(3)}, millrace.ErrShape}, {[][]float32{x(8), x(4)}, millrace.ErrShape},
	} {
		if _, err := two.Run(t.Context(), c.in...); !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.in, err, c.want)
		}
	}
}
