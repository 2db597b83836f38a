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
	DT       ir.DType
	Shape    ir.Shape
	Def      int32 // node that makes it, -1 for an operand from outside
	Uses     int32 // nodes that read it
	Released bool  // a Release entry named it
	Keep     bool  // a Keep entry named it: it must be written
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
	clear(q.Entries)
	clear(q.Nodes)
	clear(q.Slots)
	q.Entries, q.Nodes, q.Out = q.Entries[:0], q.Nodes[:0], q.Out[:0]
	q.Slots, q.Scalars = q.Slots[:0], q.Scalars[:0]
}

// Input adds a tensor from outside and returns its relative id.
func (q *Queue[H]) Input(h H, dt ir.DType, shape ir.Shape) int32 {
	q.Slots = append(q.Slots, Slot[H]{H: h, DT: dt, Shape: shape, Def: -1})
	return int32(len(q.Slots) - 1)
}

// Scalar adds a run-time scalar and returns its slot.
func (q *Queue[H]) Scalar(dt ir.DType, bits uint64) int32 {
	q.Scalars = append(q.Scalars, Scalar{dt, bits})
	return int32(len(q.Scalars) - 1)
}

// Next is the node that Append will record: zero, to be filled in place. It is
// part of the queue's memory, since copying nodes is what recording costs most.
func (q *Queue[H]) Next() *ir.Node {
	n := len(q.Nodes)
	if n == cap(q.Nodes) {
		q.Nodes = append(q.Nodes, ir.Node{})[:n]
	}
	return &q.Nodes[:n+1][n]
}

// Append records the node that Next gave, whose operands are relative by now,
// and returns its entry. The pointer is valid until the next call.
func (q *Queue[H]) Append(h H) *Entry {
	at := len(q.Nodes)
	q.Nodes = q.Nodes[:at+1]
	n := &q.Nodes[at]

	e := grow(&q.Entries)
	e.Node = int32(at)
	e.Slot = int32(len(q.Slots))
	k := &e.Key
	*k = Key{Op: n.Op, DT: n.DT, Rank: uint8(len(n.Shape)), Args: [3]int16{argNone, argNone, argNone}}
	byPosition := n.Op.Class() == ir.ClassElementwise || n.Op == ir.Expand
	for i := range n.Args[:n.NArgs] {
		a := n.Args[i]
		if a.Scalar {
			k.Args[i] = argScalar
			k.ArgDT[i] = q.Scalars[a.ID].DT
			continue
		}
		s := &q.Slots[a.ID]
		s.Uses++
		k.Args[i] = int16(a.ID)
		k.ArgDT[i] = s.DT
		k.ARank[i] = uint8(len(s.Shape))
		if byPosition {
			k.sizes(i, s.Shape, n.Shape)
		}
	}
	if n.Attr != nil || n.Op == ir.Reshape {
		k.Attr = q.Interner.attr(n, q.Slots[n.Args[0].ID].Shape)
	}
	q.Out = append(q.Out, e.Slot)
	s := grow(&q.Slots)
	s.H, s.DT, s.Shape, s.Def = h, n.DT, n.Shape, int32(at)
	return e
}

// grow appends a zero element. Reset has cleared what lies behind the length.
func grow[T any](list *[]T) *T {
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
	k := Key{Op: op, Args: [3]int16{int16(id), argNone, argNone}}
	q.Entries = append(q.Entries, Entry{Key: k, Node: -1, Slot: id})
	return &q.Entries[len(q.Entries)-1]
}
