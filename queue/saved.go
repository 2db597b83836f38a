package queue

// Saved is what a queue held: everything but the handles.
type Saved[H any] struct {
	entries []Item
	slots   []Slot[H]
	scalars []Scalar
	count   int32
}

// Save copies what is queued, without handles.
func (q *Queue[H]) Save() *Saved[H] {
	s := &Saved[H]{
		entries: append([]Item(nil), q.Items...),
		slots:   append([]Slot[H](nil), q.Slots...),
		scalars: append([]Scalar(nil), q.Scalars...),
		count:   q.count,
	}
	var none H
	for i := range s.slots {
		s.slots[i].H = none
	}
	return s
}

// Load makes the queue, which is empty, hold what another one held. Handles are
// the caller's to set.
func (q *Queue[H]) Load(s *Saved[H]) {
	q.Items = append(q.Items[:0], s.entries...)
	q.Slots = append(q.Slots[:0], s.slots...)
	q.Scalars = append(q.Scalars[:0], s.scalars...)
	q.count = s.count
}
