package threads

import "sync"

// Spares holds values for reuse. A caller that finds none makes one.
type Spares[T any] struct {
	mu   sync.Mutex
	list []*T
}

// Take removes a value and returns it, or nil if there is none.
func (s *Spares[T]) Take() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list) - 1
	if n < 0 {
		return nil
	}
	x := s.list[n]
	s.list = s.list[:n]
	return x
}

// Put adds a value.
func (s *Spares[T]) Put(x *T) {
	s.mu.Lock()
	s.list = append(s.list, x)
	s.mu.Unlock()
}
