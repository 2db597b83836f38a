package main

import "testing"

// Both ways find the same points, at sizes that no tile divides, and at one of everything.
func TestRun(t *testing.T) {
	for _, n := range [][3]int{{37, 211, 19}, {1, 1, 1}, {5, 300, 128}} {
		if err := run(n[0], n[1], n[2], 2); err != nil {
			t.Errorf("%v: %v", n, err)
		}
	}
}

// A point that is farther is found.
func TestDiffers(t *testing.T) {
	q, p := []float32{0, 0}, []float32{1, 1, 3, 3}
	if i := differs([]int64{1}, []int64{0}, q, p, 2); i != 0 {
		t.Errorf("query %d", i)
	}
	if i := differs([]int64{0}, []int64{0}, q, p, 2); i != -1 {
		t.Errorf("query %d differs from itself", i)
	}
}
