package apitest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestReplayedStepsElsewhere: recorded steps of small launches, whose frames are kept from run to
// run, give the bits of calling the function. Held results and other allocations in between move
// their memory each time.
func TestReplayedStepsElsewhere(t *testing.T) {
	for _, size := range [][2]int{{4, 1}, {64, 1}, {4, 64}} {
		for _, threads := range []int{1, 2} {
			dev := openSpec(t, fmt.Sprintf("cpu:compile=wait,explore=wait,threads=%d", threads))
			s := dev.NewStream()
			called, replayed := newMakemore(s, size[0], size[1]), newMakemore(s, size[0], size[1])
			rec := millrace.NewRecording(replayed.step)
			rng := rand.New(rand.NewPCG(uint64(size[0]), uint64(threads)))
			var held []*tensor
			for i := range uint64(40) {
				in := called.input(s, i)
				want, err := called.step(nil, in)
				if err != nil {
					t.Fatal(err)
				}
				got, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
				if err != nil {
					t.Fatal(err)
				}
				want, got = append(want, called.weights()...), append(got, replayed.weights()...)
				for k := range want {
					if err := sameValues(got[k], want[k]); err != nil {
						t.Fatalf("%v on %d threads: step %d, %d of loss and states: %v", size, threads, i, k, err)
					}
				}
				held = append(held, got[0])
				if i%16 == 15 { // another reader, so the next run uses other memory for it
					w := replayed.w[i/16%3]
					held = append(held, w.Reshape(w.Len()))
				}
				other := millrace.FullOn(s, millrace.Float32, 1, 1+rng.IntN(5000))
				if err := other.Eval(); err != nil {
					t.Fatal(err)
				}
				for held = append(held, other); len(held) > 20; {
					at := rng.IntN(len(held))
					held[at].Release()
					held[at] = held[len(held)-1]
					held = held[:len(held)-1]
				}
			}
			if n := dev.Stats().Runtime.Prepared; n < 10*14 {
				t.Errorf("%v on %d threads: %d launches ran prepared", size, threads, n)
			}
			rec.Release()
		}
	}
}

// TestReplayedByMany: 32 goroutines run one recording, and each gets the result of its own
// operands.
func TestReplayedByMany(t *testing.T) {
	dev := openSpec(t, "cpu:compile=wait,explore=wait,threads=2")
	m := newMakemore(dev, 16, 3)
	f := func(_ *millrace.Scope, in []*tensor) ([]*tensor, error) {
		x := m.table.Take(in[0], 0).Reshape(m.batch, before*embedded)
		for i := range 2 {
			x = x.MatMul(m.w[i]).Add(m.b[i]).Tanh()
		}
		logits := x.MatMul(m.w[2]).Add(m.b[2])
		return []*tensor{millrace.CrossEntropy(logits, in[1]).Mean(), logits.Softmax(1)}, nil
	}
	rec := millrace.NewRecording(f)
	defer rec.Release()
	var all sync.WaitGroup
	for who := range uint64(32) {
		all.Go(func() {
			s := dev.NewStream()
			in := m.input(s, who)
			want, err := f(nil, in)
			if err != nil {
				t.Error(err)
				return
			}
			for range 30 {
				got, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range want {
					if err := sameValues(got[k], want[k]); err != nil {
						t.Errorf("goroutine %d, result %d: %v", who, k, err)
						return
					}
					got[k].Release()
				}
			}
		})
	}
	all.Wait()
	if n := dev.Stats().Runtime.Prepared; n == 0 {
		t.Error("nothing ran prepared")
	}
}
