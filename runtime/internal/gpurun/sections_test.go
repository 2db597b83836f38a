package gpurun

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// moving is a list of copies between buffers, some of which a test replaces.
type moving struct {
	d      *Runner
	f      *fakeRecorder
	list   []runtime.Launch
	bufs   []runtime.Buffer
	places [][]runtime.Place
	p      runtime.Prepared
}

// newMoving makes a list of copies, each from one number of a buffer to another.
func newMoving(t *testing.T, copies [][2]int) *moving {
	d, f := openRecorder(t, runtime.Config{})
	x := &moving{d: d, f: f}
	l := launch(t, d, copyKernel, 1, 100)
	for i, c := range copies {
		own := *l
		own.Args = slices.Clone(l.Args)
		for j, n := range c {
			for len(x.bufs) <= n {
				x.bufs, x.places = append(x.bufs, x.alloc(t)), append(x.places, nil)
			}
			own.Args[j].Buf = x.bufs[n]
			x.places[n] = append(x.places[n], runtime.Place{Launch: int32(i), Arg: int32(j)})
		}
		x.list = append(x.list, own)
	}
	if x.p = d.Prepare(x.list, nil); x.p == nil {
		t.Fatal("not prepared")
	}
	t.Cleanup(x.p.Close)
	return x
}

func (x *moving) alloc(t *testing.T) runtime.Buffer {
	b, err := x.d.Alloc(100 * wordSize)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// move gives a number another buffer.
func (x *moving) move(t *testing.T, n int, to runtime.Buffer) {
	x.bufs[n] = to
	for _, at := range x.places[n] {
		x.list[at.Launch].Args[at.Arg].Buf = to
	}
	if !x.p.Set(x.places[n], to) {
		t.Fatal("refused")
	}
}

// run runs the list, prepared and not, and compares the dispatches.
func (x *moving) run(t *testing.T) {
	t.Helper()
	n := len(x.f.submitted)
	if err := x.p.Run(); err != nil {
		t.Fatal(err)
	}
	if err := x.d.dispatchAll(x.list, false); err != nil {
		t.Fatal(err)
	}
	if len(x.f.submitted) != n+2 {
		t.Fatalf("%d submissions", len(x.f.submitted)-n)
	}
	got, want := x.f.submitted[n], x.f.submitted[n+1]
	if len(got) != len(want) {
		t.Fatalf("%d dispatches, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i].Bind, want[i].Bind
		at := len(w) - 1 // the last binding has the words
		if got[i].Pipe != want[i].Pipe || got[i].Groups != want[i].Groups || !slices.Equal(g[:at], w[:at]) {
			t.Fatalf("dispatch %d: %v, want %v", i, got[i], want[i])
		}
	}
	x.f.submitted = nil
}

// TestSections: what only touches buffers that stay is recorded, and what moves is not.
func TestSections(t *testing.T) {
	x := newMoving(t, [][2]int{{1, 2}, {2, 3}, {3, 2}, {2, 3}, {3, 0}, {1, 2}, {2, 3}, {3, 2}, {2, 3}, {3, 2}, {0, 2}, {2, 3}})
	for i := range 40 {
		x.move(t, 0, x.alloc(t)) // never the same: the garbage collector frees it some day
		before, replays := x.d.Stats(), x.f.replays
		x.run(t)
		s := x.d.Stats()
		if n := s.Replayed - before.Replayed; i > 3 && (n != 9 || x.f.replays-replays != 2) || i == 0 && n != 0 {
			t.Errorf("run %d: %d launches in %d recordings ran as recorded", i, n, x.f.replays-replays)
		}
		if s.Recorded-before.Recorded > 0 && i > 4 {
			t.Errorf("run %d: recorded again", i)
		}
	}
	if x.f.recordings != 2 {
		t.Errorf("%d recordings are kept", x.f.recordings)
	}
	x.move(t, 1, x.alloc(t)) // used to stay: only what does not touch it is recorded now
	x.move(t, 0, x.alloc(t))
	x.run(t)
	for range 2 * firstCalm { // it stays again
		x.move(t, 0, x.alloc(t))
		x.run(t)
	}
	before := x.d.Stats().Replayed
	for range 64 {
		x.move(t, 0, x.alloc(t))
		x.run(t)
	}
	if n := x.d.Stats().Replayed - before; n < 60*9 {
		t.Errorf("%d launches of 64 runs ran as recorded", n)
	}
	x.p.Close()
	if x.f.recordings != 0 {
		t.Errorf("%d recordings are left", x.f.recordings)
	}
}

// TestSectionsAlternate: a buffer that alternates with another one, beside one that is never the same,
// has two recordings of each section.
func TestSectionsAlternate(t *testing.T) {
	x := newMoving(t, [][2]int{{1, 2}, {2, 3}, {3, 2}, {2, 3}, {3, 0}, {1, 2}, {2, 3}, {3, 2}, {2, 3}, {3, 2}, {0, 2}, {2, 3}})
	other := x.alloc(t)
	for i := range 40 {
		x.move(t, 0, x.alloc(t))
		was := x.bufs[1]
		x.move(t, 1, other)
		other = was
		before := x.d.Stats()
		x.run(t)
		if s := x.d.Stats(); i > 8 && (s.Replayed-before.Replayed != 9 || s.Recorded != before.Recorded) {
			t.Errorf("run %d: %d launches ran as recorded, %d recordings more", i, s.Replayed-before.Replayed, s.Recorded-before.Recorded)
		}
	}
	if x.f.recordings != 4 {
		t.Errorf("%d recordings are kept", x.f.recordings)
	}
}

// TestSectionsRandom: whatever moves, each run submits the dispatches of an unprepared one, and
// recordings that are made in vain become few.
func TestSectionsRandom(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		const n = 8
		var copies [][2]int
		for i := range 2 + rng.IntN(30) {
			from := rng.IntN(n)
			if i < n {
				from = i
			}
			copies = append(copies, [2]int{from, (from + 1 + rng.IntN(n-1)) % n})
		}
		x := newMoving(t, copies)
		many := len(x.bufs)
		often, spare := make([]int, many), make([][]runtime.Buffer, many)
		for i := range often {
			often[i] = []int{0, 0, 1, 2, 3, 10, 40}[rng.IntN(7)]
			for range 1 + rng.IntN(3) {
				spare[i] = append(spare[i], x.alloc(t))
			}
		}
		for range 200 {
			for i, k := range often {
				if k == 0 || rng.IntN(k) > 0 {
					continue
				}
				was := x.bufs[i]
				j := rng.IntN(len(spare[i]))
				x.move(t, i, spare[i][j])
				spare[i][j] = was
			}
			if rng.IntN(50) == 0 {
				x.f.stale = 1
			}
			x.run(t)
			x.f.stale = 0
		}
		if s := x.d.Stats(); s.Recorded > 200 || s.Replayed > s.Prepared {
			t.Errorf("seed %d: %d recordings of 200 runs, %d of %d launches ran as recorded", seed, s.Recorded, s.Replayed, s.Prepared)
		}
		x.p.Close()
		if x.f.recordings != 0 {
			t.Errorf("seed %d: %d recordings are left", seed, x.f.recordings)
		}
	}
}

// TestSectionsRefused: a device without room for recordings runs the list whole.
func TestSectionsRefused(t *testing.T) {
	x := newMoving(t, [][2]int{{1, 2}, {2, 3}, {3, 2}, {2, 3}, {3, 0}, {1, 2}, {2, 3}, {3, 2}, {2, 3}})
	x.f.short = map[string]int{"Record": 2}
	for range 10 {
		x.move(t, 0, x.alloc(t))
		x.run(t)
	}
	if s := x.d.Stats(); s.Recorded != 0 || s.Replayed != 0 || x.f.short["Record"] != 1 || x.f.recordings != 0 {
		t.Errorf("%d recordings, %d launches ran as recorded, %d refusals are left", s.Recorded, s.Replayed, x.f.short["Record"])
	}
}
