package operror

import (
	"slices"
	"sync"
)

// List are errors that nobody may have seen yet, in order; those somebody saw
// meanwhile are passed over.
type List struct {
	mu     sync.Mutex
	unseen []*Error
}

// maxUnseen bounds the errors kept for Err: a loop that never asks makes one
// per turn.
const maxUnseen = 64

// Add puts an error behind the others, unless there are too many.
func (f *List) Add(e *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unseen) == maxUnseen {
		f.unseen = slices.DeleteFunc(f.unseen, func(e *Error) bool { return e.seen.Load() })
	}
	if len(f.unseen) < maxUnseen {
		f.unseen = append(f.unseen, e)
	}
}

// Take is the first error that nobody has seen, which somebody then has; nil for none.
func (f *List) Take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.unseen) > 0 {
		e := f.unseen[0]
		f.unseen = f.unseen[1:]
		if !e.seen.Swap(true) {
			return e
		}
	}
	return nil
}

// See notes that somebody was told of an error.
func See(e *Error) { e.seen.Store(true) }

// Unsee says that nobody was told after all.
func Unsee(e *Error) { e.seen.Store(false) }
