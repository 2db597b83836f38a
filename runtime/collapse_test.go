package runtime

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func launch(kept int, dims []int64, strides ...[]int64) *Launch {
	l := &Launch{Rank: len(dims), Kept: kept}
	copy(l.Dims[:], dims)
	for _, s := range strides {
		var a Access
		copy(a.Stride[:], s)
		l.Args = append(l.Args, a)
	}
	return l
}

func (l *Launch) text() string {
	s := fmt.Sprint(l.Dims[:l.Kept], l.Dims[l.Kept:l.Rank])
	for _, a := range l.Args {
		s += fmt.Sprint(" ", a.Stride[:l.Rank])
	}
	return s
}

func TestCollapse(t *testing.T) {
	type ss = []int64
	for _, c := range []struct {
		name    string
		l       *Launch
		outputs []int
		want    string
	}{
		{"dense", launch(3, ss{2, 3, 4}, ss{12, 4, 1}, ss{12, 4, 1}), []int{1}, "[24] [] [1] [1]"},
		{"row broadcast", launch(3, ss{2, 3, 4}, ss{0, 0, 1}, ss{12, 4, 1}), []int{1}, "[6 4] [] [0 1] [4 1]"},
		{"splat", launch(2, ss{3, 4}, ss{0, 0}, ss{4, 1}), []int{1}, "[12] [] [0] [1]"},
		{"size one", launch(3, ss{2, 1, 4}, ss{4, 99, 1}, ss{4, 4, 1}), []int{1}, "[8] [] [1] [1]"},
		{"0-d", launch(0, nil, ss{}, ss{}), []int{1}, "[] [] [] []"},
		{"all size one", launch(2, ss{1, 1}, ss{5, 7}, ss{1, 1}), []int{1}, "[1] [] [7] [1]"},
		{"empty", launch(2, ss{0, 1}, ss{1, 1}, ss{1, 1}), []int{1}, "[0 1] [] [1 1] [1 1]"},
		{"flip", launch(2, ss{3, 4}, ss{-4, -1}, ss{4, 1}), []int{1}, "[12] [] [-1] [1]"},
		{"output is transposed", launch(2, ss{3, 4}, ss{4, 1}, ss{1, 3}), []int{1}, "[4 3] [] [1 4] [3 1]"},
		{"both transposed", launch(2, ss{3, 4}, ss{1, 3}, ss{1, 3}), []int{1}, "[12] [] [1] [1]"},
		{"wide output decides", launch(2, ss{3, 4}, ss{1, 0}, ss{1, 3}), []int{0, 1}, "[4 3] [] [0 1] [3 1]"},
		{"guarded output", launch(2, ss{3, 4}, ss{4, 1}, ss{1, 0}), []int{1}, "[4 3] [] [1 4] [0 1]"},
		{"reduce inner", launch(2, ss{2, 3, 4, 5}, ss{60, 20, 5, 1}, ss{3, 1, 0, 0}), []int{1}, "[6] [20] [20 1] [1 0]"},
		{"reduced dims keep their order", launch(1, ss{2, 3, 4}, ss{12, 1, 3}, ss{1, 0, 0}), []int{1}, "[2] [3 4] [12 1 3] [1 0 0]"},
		{"kept and reduced stay apart", launch(1, ss{2, 3}, ss{3, 1}, ss{0, 0}), []int{1}, "[2] [3] [3 1] [0 0]"},
		{"reduce all", launch(0, ss{2, 3}, ss{3, 1}, ss{0, 0}), []int{1}, "[] [6] [1] [0]"},
		{"reduce size one", launch(1, ss{2, 1}, ss{1, 1}, ss{1, 0}), []int{1}, "[2] [1] [1 1] [1 0]"},
		{"reduce nothing left", launch(1, ss{1, 1}, ss{3, 4}, ss{1, 0}), []int{1}, "[] [1] [4] [0]"},
	} {
		c.l.Collapse(c.outputs)
		if got := c.l.text(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// points lists the addresses of all operands for every point, in order.
func (l *Launch) points() [][]int64 {
	var out [][]int64
	var walk func(d int, at []int64)
	walk = func(d int, at []int64) {
		if d == l.Rank {
			out = append(out, at)
			return
		}
		for i := range l.Dims[d] {
			next := slices.Clone(at)
			for a := range next {
				next[a] += i * l.Args[a].Stride[d]
			}
			walk(d+1, next)
		}
	}
	walk(0, make([]int64, len(l.Args)))
	return out
}

// TestCollapseVisits checks that a collapsed launch visits the same points, and that a reducing
// launch visits them in the same order.
func TestCollapseVisits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		rank := rng.IntN(6)
		l := &Launch{Rank: rank, Kept: rng.IntN(rank + 1), Args: make([]Access, 3)}
		for d := range rank {
			l.Dims[d] = rng.Int64N(4)
			if l.Dims[d] == 0 && rng.IntN(4) > 0 {
				l.Dims[d] = 2
			}
		}
		for a := range l.Args {
			n := int64(1)
			for d := rank - 1; d >= 0; d-- {
				if rng.IntN(3) > 0 {
					l.Args[a].Stride[d] = n
				}
				n *= l.Dims[d]
			}
			if rank > 1 && rng.IntN(2) == 0 {
				st := &l.Args[a].Stride
				st[0], st[1] = st[1], st[0]
			}
		}
		before, text, sorted := l.points(), l.text(), l.Kept == l.Rank
		l.Collapse([]int{1, 2})
		after := l.points()
		if sorted {
			slices.SortFunc(before, slices.Compare)
			slices.SortFunc(after, slices.Compare)
		}
		if !slices.EqualFunc(before, after, slices.Equal) {
			t.Fatalf("%s became %s", text, l.text())
		}
	}
}

func TestCollapseAllocs(t *testing.T) {
	l := launch(3, []int64{2, 3, 4}, []int64{0, 0, 1}, []int64{12, 4, 1})
	outputs := []int{1}
	if n := testing.AllocsPerRun(100, func() { c := *l; c.Collapse(outputs) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
