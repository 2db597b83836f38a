package osthread

import (
	"errors"
	"slices"
	"sync"
	"testing"
)

// TestOrder: functions run in the order in which they were posted: all those posted before End,
// then the last one, and none afterwards.
func TestOrder(t *testing.T) {
	var ran []int // used by the thread only
	note := func(n int) func() { return func() { ran = append(ran, n) } }
	x, err := Start(func() error { note(-1)(); return nil }, note(100))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if !x.Post(note(n)) {
			t.Fatal("not posted")
		}
	}
	x.End()
	if x.Post(note(200)) {
		t.Error("posted to a thread that is gone")
	}
	if len(ran) != 102 || !slices.IsSorted(ran) {
		t.Errorf("ran %v", ran)
	}
	x.End() // a second call is harmless
}

// TestBegin: a thread that cannot begin ends at once, and calls no end function.
func TestBegin(t *testing.T) {
	why := errors.New("test")
	if x, err := Start(func() error { return why }, func() { t.Error("ended") }); x != nil || err != why {
		t.Errorf("%v, %v", x, err)
	}
}

// TestMany: the functions of all goroutines run, one at a time.
func TestMany(t *testing.T) {
	n := 0
	x, err := Start(func() error { return nil }, func() {})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				x.Post(func() { n++ })
			}
		})
	}
	all.Wait()
	x.End()
	if n != 8000 {
		t.Errorf("%d of 8000 ran", n)
	}
}
