package background

import (
	"slices"
	"sync"
	"testing"
)

// TestQueue: items are processed in order, also those added meanwhile, and Wait returns after them.
func TestQueue(t *testing.T) {
	var done []int
	begun, go1 := make(chan bool), make(chan bool)
	q := &Queue[int]{Do: func(i int) {
		if i == 0 {
			close(begun)
			<-go1
		}
		done = append(done, i)
	}}
	q.Wait() // the queue is empty
	q.Add(0)
	<-begun
	q.Add(1)
	q.Add(2)
	close(go1)
	q.Wait()
	if !slices.Equal(done, []int{0, 1, 2}) {
		t.Errorf("%v", done)
	}
	q.Add(3) // by another goroutine than before
	q.Wait()
	if len(done) != 4 {
		t.Errorf("%v", done)
	}
}

// TestQueueLimit: a queue accepts no items beyond its limit, and accepts some again when there is
// room.
func TestQueueLimit(t *testing.T) {
	begun, go1 := make(chan bool), make(chan bool)
	var done []int
	q := &Queue[int]{Limit: 2, Do: func(i int) {
		if i == 0 {
			close(begun)
			<-go1
		}
		done = append(done, i)
	}}
	took := []bool{q.Add(0)}
	<-begun
	for i := 1; i <= 3; i++ {
		took = append(took, q.Add(i))
	}
	close(go1)
	q.Wait()
	took = append(took, q.Add(4))
	q.Wait()
	if !slices.Equal(took, []bool{true, true, true, false, true}) || !slices.Equal(done, []int{0, 1, 2, 4}) {
		t.Errorf("taken: %v, done: %v", took, done)
	}
}

// TestQueueOfMany: Wait covers the caller's own items, whatever other goroutines do.
func TestQueueOfMany(t *testing.T) {
	var mu sync.Mutex
	done := map[[2]int]bool{}
	q := &Queue[[2]int]{Do: func(at [2]int) {
		mu.Lock()
		done[at] = true
		mu.Unlock()
	}}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 500 {
				q.Add([2]int{w, i})
				q.Wait()
				mu.Lock()
				if !done[[2]int{w, i}] {
					t.Errorf("item %d of %d is not done", i, w)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
