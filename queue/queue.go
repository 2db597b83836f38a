package queue

import "github.com/millrace-go/millrace/ir"

// Scalar is a run-time scalar in the side table.
type Scalar struct {
	DT   ir.DType
	Bits uint64
}

// Slot is one relative id: a tensor that the queued ops read or make. H is the
// stream's handle for it.
type Slot[H any] struct {
	H        H
	Form     *Form
	Def      int32 // node that makes it, -1 for an operand from outside
	Uses     int32 // nodes that read it
	DT       ir.DType
	Released bool // a Release entry named it
	Keep     bool // a Keep entry named it: it must be written
}

// Entry is one item of a queue in program order: a node, or a Release or Keep.
type Entry struct {
	Key  Key
	Node int32 // index into Nodes; -1 for Release and Keep
	Slot int32 // result of the node, or the slot that is released or kept
}

// Queue is a window of recorded ops. The zero value with an Interner is empty
// and ready. It is not safe for concurrent use: its stream's lock guards it.
type Queue[H any] struct {
	Interner *Interner
	Entries  []Entry
	Nodes    []ir.Node // operands are relative ids and scalar slots
	Out      []int32   // result of each node
	Slots    []Slot[H]
	Scalars  []Scalar
}

// Reset empties the queue and keeps its memory.
func (q *Queue[H]) Reset() {
	clear(q.Nodes)
	clear(q.Slots)
	q.Entries, q.Nodes, q.Out = q.Entries[:0], q.Nodes[:0], q.Out[:0]
	q.Slots, q.Scalars = q.Slots[:0], q.Scalars[:0]
}

// Input adds a tensor from outside and returns its relative id.
func (q *Queue[H]) Input(h H, dt ir.DType, form *Form) int32 {
	q.Slots = append(q.Slots, Slot[H]{H: h, DT: dt, Form: form, Def: -1})
	return int32(len(q.Slots) - 1)
}

// Scalar adds a run-time scalar and returns its slot.
func (q *Queue[H]) Scalar(dt ir.DType, bits uint64) int32 {
	q.Scalars = append(q.Scalars, Scalar{dt, bits})
	return int32(len(q.Scalars) - 1)
}

// Next is the node that Append will record, to be filled in place, all but its
// shape. It is part of the queue's memory, since copying nodes is what recording
// costs most.
func (q *Queue[H]) Next() *ir.Node {
	n := len(q.Nodes)
	if n == cap(q.Nodes) {
		q.Nodes = append(q.Nodes, ir.Node{})[:n]
	}
	return &q.Nodes[:n+1][n]
}

// Append records the node that Next gave, whose operands are relative by now
// and whose result has that form, and returns its entry. The pointer is valid
// until the next call.
func (q *Queue[H]) Append(form *Form, h H) *Entry {
	at := len(q.Nodes)
	q.Nodes = q.Nodes[:at+1]
	n := &q.Nodes[at]
	n.Shape = form.Shape

	e := extend(&q.Entries)
	id := int32(len(q.Slots))
	e.Node, e.Slot = int32(at), id
	k := &e.Key
	k.head = keyHead(n.Op, n.DT, len(form.Shape), n.NArgs)
	byPosition := n.Op.Class() == ir.ClassElementwise || n.Op == ir.Expand
	for i := range k.args {
		if i >= int(n.NArgs) {
			k.args[i] = argNone
			continue
		}
		a := &n.Args[i]
		if a.Scalar {
			k.args[i] = scalarOperand(q.Scalars[a.ID].DT)
			continue
		}
		s := &q.Slots[a.ID]
		s.Uses++
		o := tensorOperand(a.ID, s.DT, len(s.Form.Shape))
		if byPosition {
			o |= sizes(s.Form, form)
		}
		k.args[i] = o
	}
	if n.Attr != nil || n.Op == ir.Reshape {
		k.head |= uint64(q.Interner.attr(n, q.Slots[n.Args[0].ID].Form.Shape)) << 32
	}
	q.Out = append(q.Out, id)
	s := extend(&q.Slots) // field by field: a literal would be made elsewhere and copied
	s.H = h
	s.Form, s.Def, s.DT = form, int32(at), n.DT
	s.Uses, s.Released, s.Keep = 0, false, false
	return e
}

// extend makes a list longer by one element, which holds what it held before.
func extend[T any](list *[]T) *T {
	n := len(*list)
	if n < cap(*list) {
		*list = (*list)[:n+1]
	} else {
		var zero T
		*list = append(*list, zero)
	}
	return &(*list)[n]
}

// Mark records a Release or a Keep of a relative id.
func (q *Queue[H]) Mark(op ir.Op, id int32) *Entry {
	if op == ir.Release {
		q.Slots[id].Released = true
	} else {
		q.Slots[id].Keep = true
	}
	e := extend(&q.Entries)
	*e = Entry{Key: Key{keyHead(op, 0, 0, 1), [3]operand{tensorOperand(id, 0, 0), argNone, argNone}}, Node: -1, Slot: id}
	return e
}
