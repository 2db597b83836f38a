package ir

import (
	"fmt"
	"testing"
)

func TestEachRun(t *testing.T) {
	type shape = Shape
	for _, c := range []struct {
		a, b shape
		want string
	}{
		{shape{6}, shape{2, 3}, "[1 2]"},
		{shape{2, 3}, shape{6}, "[2 1]"},
		{shape{2, 3}, shape{3, 2}, "[2 2]"},
		{shape{4, 6, 5}, shape{4, 2, 3, 5}, "[1 1 1 2 1 1]"},
		{shape{1, 6}, shape{6}, "[2 1]"},
		{shape{6}, shape{6, 1}, "[1 1 0 1]"},
		{shape{}, shape{1, 1}, "[0 1 0 1]"},
		{shape{}, shape{}, "[]"},
		{shape{0, 3}, shape{0, 7}, "[1 1 1 1]"},
		{shape{2, 0}, shape{0}, "[2 1]"},
	} {
		if got := fmt.Sprint(runs(c.a, c.b)); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

// runs lists the numbers of dims on both sides of every run.
func runs(a, b Shape) (n []int) {
	EachRun(a, b, func(i0, i1, j0, j1 int) { n = append(n, i1-i0, j1-j0) })
	return n
}
