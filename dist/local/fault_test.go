package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

// ranks runs f on each rank of a net and returns its results. All Worlds are closed at the end.
func ranks(t *testing.T, n *Net, o dist.Options, f func(w *dist.World) error) []error {
	t.Helper()
	errs := make([]error, n.Size())
	var all, ran sync.WaitGroup
	ran.Add(n.Size())
	for r := range errs {
		all.Go(func() {
			o := o
			o.Opener = n.Opener(r)
			if o.Log == nil {
				o.Log = func(string) {}
			}
			w, err := dist.Open(context.Background(), o)
			if err == nil {
				defer w.Close()
				err = f(w)
			}
			errs[r] = err
			ran.Done()
			ran.Wait()
		})
	}
	all.Wait()
	return errs
}

// stream is a place for tensors of one rank.
func stream(t *testing.T) *millrace.Stream {
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	return d.NewStream()
}

// rankError checks that an error says which rank made the World fail.
func rankError(err error, rank int, state dist.State) error {
	e, ok := errors.AsType[*dist.RankError](err)
	if !ok || e.Rank != rank || e.State != state || e.Host == "" {
		return fmt.Errorf("the error is %v, want one of rank %d: %s", err, rank, state)
	}
	return nil
}

// fault gives rank 0 a fault after a barrier. Ranks 1 and 2 wait for it in vain, and must find that
// out.
func fault(t *testing.T, state dist.State, begin func(n *Net), end func(n *Net)) {
	const deadline = 4 * time.Second // of which ranks have the last one to answer
	n := New(3)
	begun, passed, found := make(chan struct{}), new(sync.WaitGroup), new(sync.WaitGroup)
	passed.Add(3)
	found.Add(2)
	for r, err := range ranks(t, n, dist.Options{Deadline: deadline}, func(w *dist.World) error {
		ctx := context.Background()
		err := w.Barrier(ctx)
		passed.Done()
		if w.Rank() == 0 {
			passed.Wait()
			begin(n)
			close(begun)
			found.Wait()
			end(n)
			return err
		}
		defer found.Done()
		<-begun
		if err != nil {
			return err
		}
		return rankError(w.Barrier(ctx), 0, state)
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestStopped(t *testing.T) {
	fault(t, dist.NoAnswer, func(n *Net) { n.Stop(0) }, func(n *Net) { n.Continue(0) })
}

func TestKilled(t *testing.T) {
	fault(t, dist.NoAnswer, func(n *Net) { n.Kill(0) }, func(n *Net) {})
}

func TestLinksLost(t *testing.T) {
	fault(t, dist.NoAnswer, func(n *Net) {
		for r := 1; r < 3; r++ {
			n.SetLink(0, r, Link{Drop: true})
		}
	}, func(n *Net) {})
}

// TestBehind: a rank that lives, but does not call what others wait for, is named with its place.
func TestBehind(t *testing.T) {
	fault(t, dist.Behind, func(n *Net) {}, func(n *Net) {})
}

// TestBytesLost: all ranks call the same, but one link loses bytes of collectives only. All fail.
func TestBytesLost(t *testing.T) {
	n := New(2)
	for r, err := range ranks(t, n, dist.Options{Deadline: 4 * time.Second}, func(w *dist.World) error {
		x := millrace.OnesOn(stream(t), millrace.Float32, 1<<20)
		defer x.Release()
		if w.Rank() == 0 {
			n.SetLink(0, 1, Link{Rate: 1}) // notes are not limited
		}
		return w.AllReduce(x).Eval()
	}) {
		e, ok := errors.AsType[*dist.RankError](err)
		if !ok || e.State != dist.Behind {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestWarn: Log gets a line with the ranks that have not come, and the call goes on.
func TestWarn(t *testing.T) {
	lines := make(chan string, 10)
	o := dist.Options{Warn: 100 * time.Millisecond, Log: func(s string) { lines <- s }}
	for r, err := range ranks(t, New(2), o, func(w *dist.World) error {
		if w.Rank() == 1 {
			line := <-lines
			for _, part := range []string{"rank 0 has waited", "call 1, barrier", "rank 1", "has not come", "before the first call"} {
				if !strings.Contains(line, part) {
					t.Errorf("the line %q does not say %q", line, part)
				}
			}
		}
		return w.Barrier(context.Background())
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestLinks: collectives over links with a rate and a delay have the same results.
func TestLinks(t *testing.T) {
	n := New(3)
	n.SetLinks(Link{Rate: 1e6, Delay: 5 * time.Millisecond})
	for r, err := range ranks(t, n, dist.Options{}, func(w *dist.World) error {
		x := millrace.FullOn(stream(t), millrace.Float32, float64(w.Rank()+1), 3000)
		defer x.Release()
		begun := time.Now()
		v, err := millrace.Values[float32](w.AllReduce(x))
		if err != nil {
			return err
		}
		if v[0] != 6 || v[2999] != 6 {
			return fmt.Errorf("the sum is %v to %v, want 6", v[0], v[2999])
		}
		// A head and two collectives take 5 ms each, and 8,000 bytes go through each link.
		if took := time.Since(begun); took < 23*time.Millisecond {
			return fmt.Errorf("it took %v", took)
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestEnd: an end of the job by one rank is an error of all, at once.
func TestEnd(t *testing.T) {
	err := Run(context.Background(), 3, dist.Options{Log: func(string) {}}, func(ctx context.Context, w *dist.World) error {
		if w.Rank() == 1 {
			return errors.New("no more")
		}
		return w.Barrier(ctx)
	})
	for _, part := range []string{"rank 0: ", "rank 1: no more", "rank 2: "} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error %v does not say %q", err, part)
		}
	}
	if err := Run(context.Background(), 2, dist.Options{}, func(ctx context.Context, w *dist.World) error { return w.Barrier(ctx) }); err != nil {
		t.Error(err)
	}
}

// TestOpenAlone: a rank whose others never come gives up at its context's end, and at the Deadline.
func TestOpenAlone(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := dist.Open(ctx, dist.Options{Opener: New(2).Opener(0)}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	_, err := dist.Open(context.Background(), dist.Options{Opener: New(2).Opener(0), Deadline: 200 * time.Millisecond})
	if err := rankError(err, 1, dist.NoAnswer); err != nil {
		t.Error(err)
	}
}
