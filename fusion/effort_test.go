package fusion

import (
	"errors"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/progen"
)

// TestEffort checks that a search that reaches its bound gives the greedy plan, and any other
// search the best plan. Which of the two it is depends on the segment only.
func TestEffort(t *testing.T) {
	caps := testCaps()
	short, long := 0, 0
	for seed := range uint64(60) {
		seg := segmentOf(progen.New(seed, progen.Config{Ops: 30, Groups: progen.AllGroups &^ progen.Scatters}))
		best, err := Explore(seg, caps, Options{})
		if err != nil {
			t.Fatal(err)
		}
		greedy, err := Explore(seg, caps, Options{Mode: Greedy})
		if err != nil {
			t.Fatal(err)
		}
		for _, effort := range []int{1, 20, 400, 8000, 1 << 30} {
			var first *Plan
			for range 2 {
				p, err := Explore(seg, caps, Options{Effort: effort})
				if err != nil {
					t.Fatal(err)
				}
				want := best
				same := p.String() == want.String()
				if p.Mode == Greedy { // a search that ended knows more reasons for refusals
					want, same = greedy, p.Same(greedy)
				}
				if !same {
					t.Errorf("seed %d, effort %d: %v plan:\n%s\nwant\n%s", seed, effort, p.Mode, p, want)
				}
				if first != nil && first.Mode != p.Mode {
					t.Errorf("seed %d, effort %d: %v, then %v", seed, effort, first.Mode, p.Mode)
				}
				first = p
			}
			switch {
			case effort == 20 && first.Mode == Greedy:
				short++
			case effort == 400 && first.Mode == Best:
				long++
			case effort == 1<<30 && first.Mode != Best:
				t.Errorf("seed %d: all the effort was not enough", seed)
			}
		}
	}
	if short == 0 || long == 0 {
		t.Errorf("%d searches were ended early, %d came to an end in 20 times that", short, long)
	}
}

// TestStop checks that a search can be stopped at any of its questions.
func TestStop(t *testing.T) {
	seg := segmentOf(parseProgram(t, geluCustom))
	asked := 0
	if _, err := Explore(seg, testCaps(), Options{Stop: func() bool { asked++; return false }}); err != nil {
		t.Fatal(err)
	}
	if asked < 5 {
		t.Fatalf("asked %d times in a whole search", asked)
	}
	for at := 1; at <= asked; at++ {
		n := 0
		p, err := Explore(seg, testCaps(), Options{Stop: func() bool { n++; return n >= at }})
		if !errors.Is(err, ErrStopped) || p != nil {
			t.Fatalf("stopped at question %d: %v", at, err)
		}
	}
}

// TestCovers checks that a plan covers the plans that have all its guards.
func TestCovers(t *testing.T) {
	a, b := Guard{Scalar: true, A: 0, B: 1}, Guard{A: 2, B: 3}
	for _, c := range []struct {
		p, q []Guard
		want bool
	}{
		{nil, nil, true}, {nil, []Guard{a}, true}, {[]Guard{a}, nil, false},
		{[]Guard{a}, []Guard{b, a}, true}, {[]Guard{a, b}, []Guard{a}, false},
	} {
		if got := (&Plan{Guards: c.p}).Covers(&Plan{Guards: c.q}); got != c.want {
			t.Errorf("%v covers %v: %v", c.p, c.q, got)
		}
	}
}
