package queue

import "github.com/millrace-go/millrace/ir"

// Saved is a copy of a queue's contents without the handles.
type Saved[H any] struct {
	items   []Item
	slots   []Slot[H]
	scalars []Scalar
	count   int32
}

// Save copies the queue's contents, without handles.
func (q *Queue[H]) Save() *Saved[H] {
	s := &Saved[H]{
		items:   append([]Item(nil), q.Items...),
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

// Load fills an empty queue with saved contents. The caller sets the handles.
func (q *Queue[H]) Load(s *Saved[H]) {
	q.Items = append(q.Items[:0], s.items...)
	q.Slots = append(q.Slots[:0], s.slots...)
	q.Scalars = append(q.Scalars[:0], s.scalars...)
	q.count = s.count
}

// Release appends a Release of a result, which no handle names any more.
func (s *Saved[H]) Release(id int32) {
	q := s.queue()
	q.Mark(ir.Release, id)
	s.items = q.Items
}

// Sizes describes what changes when the same operations run with other sizes.
type Sizes struct {
	// Input returns the form of an operand from outside.
	Input func(slot int32) *Form
	// Node returns the form and the attributes of a node's result, or an error if operands of these
	// forms give no such result.
	Node func(i int32, n *ir.Node, in []ir.Operand) (*Form, *ir.Attr, error)
	// Scalars of all nodes.
	Scalars []Scalar
}

// Resized returns the saved operations with other sizes. It makes the keys again, since they say
// which dimensions are 1.
func (s *Saved[H]) Resized(in *Interner, z Sizes) (*Saved[H], error) {
	was := s.queue()
	q := &Queue[H]{Interner: in, Scalars: z.Scalars, Items: make([]Item, 0, len(s.items)), Slots: make([]Slot[H], 0, len(s.slots))}
	var none H
	var operands [3]ir.Operand
	for i := range was.Items {
		e := &was.Items[i]
		for id := int32(len(q.Slots)); id <= e.Slot && was.Slots[id].Def < 0; id++ {
			q.Input(none, was.Slots[id].DT, z.Input(id))
		}
		if e.Node < 0 {
			q.Mark(e.Key.Op(), e.Slot)
			q.Items[i].Again = e.Again
			continue
		}
		n := was.Node(e)
		args := operands[:n.NArgs]
		for k, a := range n.Args[:n.NArgs] {
			if args[k] = (ir.Operand{Scalar: true}); !a.Scalar {
				args[k] = ir.Operand{DT: q.Slots[a.ID].DT, Shape: q.Slots[a.ID].Form.Shape}
			}
		}
		form, attr, err := z.Node(e.Node, &n, args)
		if err != nil {
			return nil, err
		}
		n.Attr = attr
		q.Append(&n, form, none).Again = e.Again
	}
	for id := int32(len(q.Slots)); int(id) < len(was.Slots); id++ { // inputs that no item names
		q.Input(none, was.Slots[id].DT, z.Input(id))
	}
	for id := range q.Slots {
		is, old := &q.Slots[id], &was.Slots[id]
		is.Uses, is.Weight = old.Uses, old.Weight
	}
	return &Saved[H]{q.Items, q.Slots, q.Scalars, q.count}, nil
}

// queue returns a queue with the saved contents, for reading.
func (s *Saved[H]) queue() *Queue[H] {
	return &Queue[H]{Items: s.items, Slots: s.slots, Scalars: s.scalars, count: s.count}
}

// Nodes lists the saved nodes and the slot of each one's result, as [Queue.Nodes] does.
func (s *Saved[H]) Nodes() ([]ir.Node, []int32) {
	return s.queue().Nodes()
}

// Slot is a saved relative id.
func (s *Saved[H]) Slot(id int32) *Slot[H] { return &s.slots[id] }

// Scalar is a saved run-time scalar.
func (s *Saved[H]) Scalar(id int32) Scalar { return s.scalars[id] }

// Scalars returns a copy of all saved scalars.
func (s *Saved[H]) Scalars() []Scalar { return append([]Scalar(nil), s.scalars...) }
