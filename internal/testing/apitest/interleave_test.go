package apitest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestInterleaved runs goroutines on shared streams one after another, call by call, in an order
// given by the seed; failures can therefore be reproduced. Every queue is cut when another stream
// needs a value, and unwritten values are recomputed in the middle of other ops.
func TestInterleaved(t *testing.T) {
	n := 40
	switch {
	case os.Getenv("MILLRACE_LONG") != "":
		n = 2000
	case testing.Short():
		n = 16
	}
	for seed := range n {
		for _, name := range []string{"one", "ten", "default"} {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				if err := interleaved(t, uint64(seed), name); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestComputedAgainForAnotherStream: b-exp(a), recomputed for another stream, looks like exp(a)-b
// if the operands of all its ops come before the first op.
func TestComputedAgainForAnotherStream(t *testing.T) {
	dev := open(t, millrace.Options{})
	s, other := dev.NewStream(), dev.NewStream()
	a, b := millrace.FullOn(s, millrace.Float32, 0, 3), millrace.FullOn(s, millrace.Float32, 5, 3)
	if err := s.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	straight := func() error { // 1-5
		return wantAll(millrace.FullOn(other, millrace.Float32, 10, 3).Add(a.Exp().Sub(b)), 3, 6)
	}
	again := func() error { // 5-1
		x := b.Sub(a.Exp())
		if err := wantAll(x.AddScalar(1), 3, 5); err != nil { // this leaves x unwritten
			return err
		}
		return wantAll(millrace.FullOn(other, millrace.Float32, 10, 3).Add(x), 3, 14)
	}
	for i, f := range []func() error{straight, again, straight, again} {
		if err := f(); err != nil {
			t.Errorf("program %d: %v", i, err)
		}
	}
	if st := dev.Stats(); st.Recomputes != 2 || st.Fallbacks != 0 {
		t.Errorf("%d recomputed, %d fallbacks", st.Recomputes, st.Fallbacks)
	}
}

// known is a tensor with all elements equal to v.
type known struct {
	x *millrace.Tensor
	v float32
}

func interleaved(t *testing.T, seed uint64, share string) error {
	const n, calls = 5, 600
	dev := open(t, millrace.Options{Check: seed%2 == 0, Tier: millrace.TierInterpreter})
	stream := streamsOf(dev)[share]
	pool := []known{{millrace.FullOn(dev, millrace.Float32, 1, n), 1}}
	turns := newTurns(workers)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		s, rng := stream(w), rand.New(rand.NewPCG(seed, uint64(w)))
		all.Go(func() {
			turns.first(w)
			defer turns.leave(w)
			pick := func() known { return pool[rng.IntN(len(pool))] }
			for !turns.ended && errs[w] == nil {
				a, b := pick(), pick()
				made := []known{{a.x.Add(b.x), a.v + b.v}}
				last := func() known { return made[len(made)-1] }
				for range rng.IntN(4) { // some of them are never read, and some later
					turns.next(w)
					c := last()
					switch rng.IntN(6) {
					case 0:
						c = known{c.x.MulScalar(2), 2 * c.v}
					case 1:
						c = known{b.x.Sub(c.x), b.v - c.v}
					case 2:
						c = known{c.x.Sub(a.x), c.v - a.v}
					case 3:
						c = known{c.x.Neg(), -c.v}
					case 4:
						c = known{millrace.Where(c.x.GtScalar(7), b.x, c.x), c.v}
						if last().v > 7 {
							c.v = b.v
						}
					case 5:
						local := millrace.FullOn(s, millrace.Float32, 2, n)
						c = known{local.Add(c.x), c.v + 2}
						if rng.IntN(2) == 0 {
							turns.next(w)
							local.Release()
						}
					}
					made = append(made, c)
				}
				if c := last(); c.v > 1<<20 || c.v < -1<<20 { // stay exact
					made = append(made, known{c.x.MulScalar(0).AddScalar(5), 5})
				}
				turns.next(w)
				switch c := made[rng.IntN(len(made))]; rng.IntN(5) {
				case 0:
					errs[w] = wantAll(c.x, n, c.v)
				case 1:
					errs[w] = wantAll(c.x.Slice(millrace.R(0, 3)).Flip(), 3, c.v)
				case 2:
					errs[w] = s.Sync(context.Background())
				}
				turns.next(w)
				if pool = append(pool, made...); len(pool) > 20 {
					rng.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
					pool = pool[:10]
				}
			}
		})
	}
	sched := rand.New(rand.NewPCG(seed, 77))
	for range calls {
		turns.give(sched.IntN(workers))
	}
	turns.end()
	all.Wait()
	for _, c := range pool {
		errs = append(errs, wantAll(c.x, n, c.v))
	}
	if f := dev.Stats().Fallbacks; f != 0 {
		errs = append(errs, fmt.Errorf("%d fallbacks", f))
	}
	return errors.Join(append(errs, dev.Wait())...)
}

// turns lets one of several goroutines run at a time.
type turns struct {
	of    []chan struct{}
	back  chan struct{}
	left  []bool // by goroutine; the one with the turn may read and write
	ended bool
}

func newTurns(n int) *turns {
	t := &turns{back: make(chan struct{}), left: make([]bool, n)}
	for range n {
		t.of = append(t.of, make(chan struct{}))
	}
	return t
}

// first waits for a goroutine's first turn, next ends a turn and waits for the next, leave ends the
// last.
func (t *turns) first(w int) { <-t.of[w] }

func (t *turns) next(w int) {
	t.back <- struct{}{}
	<-t.of[w]
}

func (t *turns) leave(w int) {
	t.left[w] = true
	t.back <- struct{}{}
}

// give lets one goroutine run until its turn ends.
func (t *turns) give(w int) {
	if !t.left[w] {
		t.of[w] <- struct{}{}
		<-t.back
	}
}

// end lets all goroutines finish.
func (t *turns) end() {
	t.ended = true
	for w := range t.of {
		for !t.left[w] {
			t.give(w)
		}
	}
}
