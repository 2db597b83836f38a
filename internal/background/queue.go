package background

import "sync"

// Queue passes items to Do, one after another and in order, on a goroutine that lives as long as
// there are items. It is ready once Do is set, and safe for concurrent use.
type Queue[T any] struct {
	Do func(T)
	// Limit is the largest number of waiting items; 0: any number.
	Limit int

	mu    sync.Mutex
	items []T
	empty chan struct{} // closed when the goroutine ends; nil without one
}

// Add appends an item, and reports whether there was room. It does not wait for room.
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

// Wait returns when all items added before are processed.
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
		clear(q.items[:1]) // frees the processed item
		q.items = q.items[1:]
		q.mu.Unlock()
		q.Do(item)
		q.mu.Lock()
	}
	close(q.empty)
	q.empty = nil
}
