package fusion

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/progen"
)

// rowsOf is a program whose best plan depends on sizes. If there are few rows, the erf of a row is
// recomputed for every row; if there are many, it is written.
func rowsOf(n, d int) string {
	return fmt.Sprintf("%%0 = input : float32(%d,%d)\n%%1 = input : float32(%d)\n%%2 = erf %%1 : float32(%d)\n%%3 = add %%0 %%2 : float32(%d,%d)\noutput %%3\n", n, d, d, d, n, d)
}

func TestSizeClass(t *testing.T) {
	for _, c := range []struct {
		n, d, kernels int
		in, out       [][2]int // other sizes
	}{
		{1, 64, 1, [][2]int{{1, 64}, {2, 64}, {4, 32}}, [][2]int{{1 << 16, 64}}},
		{3, 64, 1, [][2]int{{1, 64}, {7, 64}, {3, 7}}, [][2]int{{1 << 16, 64}, {40, 1 << 20}}},
		{1 << 14, 64, 2, [][2]int{{1 << 13, 64}, {1 << 30, 64}, {1 << 14, 1 << 20}}, [][2]int{{1, 64}, {3, 64}}},
	} {
		seg, p := mustExplore(t, rowsOf(c.n, c.d), Best)
		if len(p.Steps) != c.kernels {
			t.Errorf("%d rows: %d kernels, want %d\n%s", c.n, len(p.Steps), c.kernels, p)
		}
		if !Suits(p.Sizes, seg) {
			t.Errorf("%d rows: not in their own class %v", c.n, p.Sizes)
		}
		for _, s := range c.in {
			if !Suits(p.Sizes, segmentOf(parseProgram(t, rowsOf(s[0], s[1])))) {
				t.Errorf("%d by %d are not in the class of %d by %d: %v", s[0], s[1], c.n, c.d, p.Sizes)
			}
		}
		for _, s := range c.out {
			other, q := mustExplore(t, rowsOf(s[0], s[1]), Best)
			if Suits(p.Sizes, other) {
				t.Errorf("%d by %d are in the class of %d by %d: %v", s[0], s[1], c.n, c.d, p.Sizes)
			}
			if p.Same(q) || !p.Check(other) {
				t.Errorf("%d by %d: the plan is no other, or this one does not serve it", s[0], s[1])
			}
		}
		for _, m := range []Mode{Greedy, Unfused} {
			if _, p := mustExplore(t, rowsOf(c.n, c.d), m); len(p.Sizes) > 0 {
				t.Errorf("a %v plan has a class: %v", m, p.Sizes)
			}
		}
	}
}

// TestNoSizeClass: a plan that computes no value at more points than the value has has no class.
func TestNoSizeClass(t *testing.T) {
	for _, text := range []string{
		geluCustom,
		"%0 = input : float32(7,8)\n%1 = input : float32(8)\n%2 = add %0 %1 : float32(7,8)\n%3 = erf %2 : float32(7,8)\noutput %2 %3\n",
		"%0 = input : float32(7,8)\n%1 = erf %0 : float32(7,8)\n%2 = permute %1 axes=1,0 : float32(8,7)\n%3 = neg %2 : float32(8,7)\noutput %3\n",
		"%0 = input : float32(7,8)\n%1 = exp %0 : float32(7,8)\n%2 = sum %1 axes=1 keep : float32(7,1)\n%3 = log %2 : float32(7,1)\n%4 = sub %0 %3 : float32(7,8)\noutput %4\n",
	} {
		if _, p := mustExplore(t, text, Best); len(p.Sizes) > 0 {
			t.Errorf("%v\n%s", p.Sizes, p)
		}
	}
}

// TestClassesAreKept: random plans suit the class that they were found in, and keep it in their
// text and in Replay. Verify refuses conditions on tensors that do not exist.
func TestClassesAreKept(t *testing.T) {
	some := 0
	for seed := range uint64(100) {
		seg := segmentOf(progen.New(seed, progen.Config{Ops: 30, Groups: progen.AllGroups}))
		p, err := Explore(seg, testCaps(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !Suits(p.Sizes, seg) {
			t.Errorf("seed %d: not in its own class\n%s", seed, p)
		}
		some += len(p.Sizes)
		q, err := ParsePlan(p.String())
		if err != nil || !slices.Equal(p.Sizes, q.Sizes) || !p.Same(q) {
			t.Fatalf("seed %d: %v, %v is read as %v", seed, err, p.Sizes, q.Sizes)
		}
		if q, err = q.Replay(seg, testCaps(), Options{}); err == nil && !slices.Equal(p.Sizes, q.Sizes) {
			t.Errorf("seed %d: %v is made again as %v", seed, p.Sizes, q.Sizes)
		}
		for _, s := range []Size{{Of: -1, Over: -1}, {Of: len(seg.Tensors), Over: -1}, {Of: 0, Over: -2}, {Of: 0, Over: len(seg.Tensors)}} {
			p.Sizes = []Size{s}
			if p.Verify(seg) == nil {
				t.Errorf("seed %d: %+v was accepted", seed, s)
			}
		}
	}
	if some == 0 {
		t.Error("no plan has a class")
	}
}

func TestWiden(t *testing.T) {
	a := []Size{{Of: 1, Over: -1, Plus: 10}, {Of: 2, Over: 1, Per: 3, Plus: 9}, {Of: 4, Over: 2, AtLeast: true, Per: 5, Plus: 7}}
	b := []Size{{Of: 4, Over: 2, AtLeast: true, Per: 6, Plus: 1}, {Of: 2, Over: 1, Per: 2, Plus: 20}, {Of: 1, Over: -1, AtLeast: true, Plus: 10}}
	want := []Size{{Of: 2, Over: 1, Per: 3, Plus: 20}, {Of: 4, Over: 2, AtLeast: true, Per: 5, Plus: 1}}
	if got := Widen(a, b); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Widen(a, a); !slices.Equal(got, a) {
		t.Errorf("got %v, want %v", got, a)
	}
}
