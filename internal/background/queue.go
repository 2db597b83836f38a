// Package background does what callers need not wait for.
package background

import "sync"

// Queue hands items to Do, one after another and in order, on a goroutine that
// lives as long as there are any. It is ready once Do is set, and safe for
// concurrent use.
type Queue[T any] struct {
	Do func(T)
	// Limit is how many items may wait; 0: any number.
	Limit int

	mu    sync.Mutex
	items []T
	empty chan struct{} // closed when the goroutine ends; nil while there is none
}

// Add puts an item behind the others, and reports whether there was a place: it waits
// for none.
func (q *Queue[T]) Add(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Limit > 0 && len(q.items) >= q.Limit {
		return false
	}
	q.items = append(q.items, item)
	if q.empty == nil {
		q.empty = make(chan struct{})
		go q.work()
	}
	return true
}

// Wait returns when all items that were added before are done.
func (q *Queue[T]) Wait() {
	q.mu.Lock()
	empty := q.empty
	q.mu.Unlock()
	if empty != nil {
		<-empty
	}
}

func (q *Queue[T]) work() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) > 0 {
		item := q.items[0]
		clear(q.items[:1]) // what is done may go
		q.items = q.items[1:]
		q.mu.Unlock()
		q.Do(item)
		q.mu.Lock()
	}
	close(q.empty)
	q.empty = nil
}
