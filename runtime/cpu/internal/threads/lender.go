package threads

import (
	"sync"
	"sync/atomic"
)

// Lender lends values of one kind, a bounded number at a time. Callers that wait get one in order
// of arrival. Values are made when first needed and then kept; the most recently used value is lent
// first.
type Lender[T any] struct {
	open    func() *T
	slots   chan struct{}
	waiting atomic.Int32

	mu   sync.Mutex
	free []*T // the most recently used value is last
	all  []*T
}

// NewLender returns a lender of at most so many values at a time, which open makes.
func NewLender[T any](most int, open func() *T) *Lender[T] {
	return &Lender[T]{open: open, slots: make(chan struct{}, most)}
}

// Lend waits for a value and returns it; GiveBack ends the loan.
func (l *Lender[T]) Lend() *T {
	select {
	case l.slots <- struct{}{}:
	default:
		l.waiting.Add(1)
		l.slots <- struct{}{}
		l.waiting.Add(-1)
	}
	return l.take()
}

// TryLend is Lend without waiting: it returns nil if all values are lent.
func (l *Lender[T]) TryLend() *T {
	select {
	case l.slots <- struct{}{}:
	default:
		return nil
	}
	return l.take()
}

// take finds or makes a value for a slot.
func (l *Lender[T]) take() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		x := l.free[n-1]
		l.free = l.free[:n-1]
		return x
	}
	x := l.open()
	l.all = append(l.all, x)
	return x
}

// GiveBack ends a loan.
func (l *Lender[T]) GiveBack(x *T) {
	l.mu.Lock()
	l.free = append(l.free, x)
	l.mu.Unlock()
	<-l.slots
}

// Awaited reports that callers wait for a value.
func (l *Lender[T]) Awaited() bool { return l.waiting.Load() > 0 }

// Next calls f with the value that will be lent next, if it exists already.
func (l *Lender[T]) Next(f func(*T)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		f(l.free[n-1])
	}
}

// Close calls f with all values. No value may be lent any more.
func (l *Lender[T]) Close(f func(*T)) {
	for _, x := range l.all {
		f(x)
	}
}
