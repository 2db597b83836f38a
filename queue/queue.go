package queue

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// Scalar is a run-time scalar in the side table.
type Scalar struct {
	DT   ir.DType
	Bits uint64
}

// Slot is one relative id: a tensor that the queued operations read or make. H is the stream's
// handle for it.
type Slot[H any] struct {
	H        H
	Form     *Form
	Attr     *ir.Attr // of the node that makes it
	Def      int32    // the node that makes it, -1 for an operand from outside
	Uses     int32    // number of nodes that read it
	Weight   int64    // a weight that only the queue's owner uses
	DT       ir.DType
	Released bool // a Release item named it
	Keep     bool // a Keep item named it: it must be written
	Lent     bool // a Lend item named it: it is written, and stays so until its Stream takes it back
}

// Item is one item of a queue in program order: a node, or a Release or Keep.
type Item struct {
	Key     Key
	Node    int32 // number of the node; -1 for Release and Keep
	Slot    int32 // result of the node, or the slot that is released or kept
	Scalars int32 // slot of the node's first scalar operand, if it has any
	Again   bool  // part of a recipe, not recorded by the program; it precedes the users of its result
}

// Queue is a window of recorded operations. The zero value with an Interner is empty and ready. It
// is not safe for concurrent use: its stream's lock guards it.
//
// An operation is stored in relative form. The form of its result, its attributes and its scalars
// are stored beside it, since the key does not have them. Nodes are rebuilt when the queue runs.
type Queue[H any] struct {
	Interner *Interner
	Items    []Item
	Slots    []Slot[H]
	Scalars  []Scalar

	count int32 // number of nodes
	nodes []ir.Node
	out   []int32
}

// Len is the number of nodes.
func (q *Queue[H]) Len() int { return int(q.count) }

// Reset empties the queue and keeps its memory.
func (q *Queue[H]) Reset() {
	clear(q.Slots)
	clear(q.nodes)
	q.Items, q.Slots, q.Scalars = q.Items[:0], q.Slots[:0], q.Scalars[:0]
	q.nodes, q.out, q.count = q.nodes[:0], q.out[:0], 0
}

// Truncate keeps only the first items, nodes and slots.
func (q *Queue[H]) Truncate(entries, nodes, slots int) {
	clear(q.Slots[slots:])
	q.Items, q.Slots, q.count = q.Items[:entries], q.Slots[:slots], int32(nodes)
}

// Nodes lists the queued nodes and the result of each. Operands are relative ids and scalar slots.
// The lists are valid until the queue changes.
func (q *Queue[H]) Nodes() ([]ir.Node, []int32) {
	q.nodes, q.out = q.nodes[:0], q.out[:0]
	for i := range q.Items {
		if e := &q.Items[i]; e.Node >= 0 {
			q.node(extend(&q.nodes), e)
			q.out = append(q.out, e.Slot)
		}
	}
	return q.nodes, q.out
}

// Node is the node of one item.
func (q *Queue[H]) Node(e *Item) (n ir.Node) {
	q.node(&n, e)
	return n
}

func (q *Queue[H]) node(n *ir.Node, e *Item) {
	k, s := &e.Key, &q.Slots[e.Slot]
	n.Op, n.DT, n.NArgs, n.Shape, n.Attr = k.Op(), k.DT(), k.nargs(), s.Form.Shape, s.Attr
	scalar := e.Scalars
	for i := range n.Args {
		a := &n.Args[i]
		switch o := k.args[i]; o & idBits {
		case argNone:
			a.ID, a.Scalar = 0, false
		case argScalar:
			a.ID, a.Scalar = scalar, true
			scalar++
		default:
			a.ID, a.Scalar = int32(o>>32), false
		}
	}
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

// InOrder returns an error unless ids are in the order of first use: each new operand must be added
// directly before the item that first names it. Only then do keys determine which ids are operands
// from outside and which are results, so that a plan found by keys is right for these operations.
// InOrder is for tests and checks; callers of Append are responsible for the order.
func (q *Queue[H]) InOrder() error {
	next := int32(0)
	for i := range q.Items {
		e := &q.Items[i]
		for e.Key.names(next) {
			next++
		}
		if e.Node >= 0 {
			if e.Slot != next {
				return fmt.Errorf("queue: entry %d does not name operand %%%d, which was added for it", i, next)
			}
			next++
		}
	}
	return nil
}

// Append records a node with relative operands; form is the form of its result. The node's scalars
// must be the last in the side table, in order. Append returns the node's item, which is valid
// until the next call.
func (q *Queue[H]) Append(n *ir.Node, form *Form, h H) *Item {
	k := Key{head: keyHead(n.Op, n.DT, len(form.Shape), n.NArgs), args: [3]operand{argNone, argNone, argNone}}
	class := n.Op.Class()
	byPosition := class == ir.ClassElementwise || class == ir.ClassGather || n.Op == ir.Expand
	scalars := int32(len(q.Scalars))
	for i := range n.Args[:n.NArgs] {
		a := &n.Args[i]
		if a.Scalar {
			k.args[i] = scalarOperand(q.Scalars[a.ID].DT)
			scalars = min(scalars, a.ID)
			continue
		}
		s := &q.Slots[a.ID]
		k.args[i] = tensorOperand(a.ID, s.DT, s.Form)
		if byPosition {
			k.args[i] |= sizes(s.Form, form)
		}
	}
	if n.Attr != nil || n.Op == ir.Reshape {
		n.Shape = form.Shape
		k.head |= uint64(q.Interner.attr(n, q.Slots[n.Args[0].ID].Form.Shape)) << 32
	}
	id := q.AppendAs(&k, form, h, scalars, 0)
	q.Slots[id].Attr = n.Attr
	return &q.Items[len(q.Items)-1]
}

// AppendAs is Append for a node with a known key. scalars is the slot of its first scalar, weight
// the weight of its result. It returns the result's relative id.
func (q *Queue[H]) AppendAs(k *Key, form *Form, h H, scalars int32, weight int64) int32 {
	id := int32(len(q.Slots))
	s := extend(&q.Slots) // field by field: Go would build a literal elsewhere and copy it
	s.H = h
	s.Form, s.Attr, s.Def, s.DT = form, nil, q.count, k.DT()
	s.Uses, s.Weight, s.Released, s.Keep, s.Lent = 0, weight, false, false, false
	e := extend(&q.Items)
	e.Key, e.Node, e.Slot, e.Scalars, e.Again = *k, q.count, id, scalars, false
	q.count++
	return id
}

// extend makes a list longer by one element, which keeps its old contents if there was room.
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
func (q *Queue[H]) Mark(op ir.Op, id int32) *Item {
	if op == ir.Release {
		q.Slots[id].Released = true
	} else {
		q.Slots[id].Keep = true
	}
	return q.mark(op, 0, id)
}

// Lend records that a relative id is to be written, until the stream takes it back. The
// item is a Keep of another rank, and is the last of its queue but for others of its kind.
func (q *Queue[H]) Lend(id int32) *Item {
	q.Slots[id].Lent = true
	return q.mark(ir.Keep, lentRank, id)
}

// lentRank is the rank in the key of a Keep that ends: marks have none else.
const lentRank = 1

func (q *Queue[H]) mark(op ir.Op, rank int, id int32) *Item {
	e := extend(&q.Items)
	*e = Item{Key: Key{keyHead(op, 0, rank, 1), [3]operand{markOperand(id), argNone, argNone}}, Node: -1, Slot: id}
	return e
}
