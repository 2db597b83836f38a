package millrace

import (
	"unsafe"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Package autodiff follows ops as the program calls them. A watched tensor carries a node, and a
// result of an op on a tensor with a node gets a node from adhook.Node.Follow, which this file
// calls. An op on tensors without marks pays one comparison per operand for it, and no memory.

// node is what a followed tensor carries. Package autodiff has the implementation: its node.go.
type node = adhook.Node[Tensor]

// stepped is the allocation of a tensor that may be a step of a composite. Every handle or value
// with a mark was allocated as one or as a larger one, so step finds its field.
type stepped struct {
	Tensor
	steps *steps // the list that the tensor is on, if it is a step: see composite.go
}

// marked also has room for a node. Handles with MarkLeaf and values with MarkRoom were allocated as
// one, so extra finds its fields.
type marked struct {
	stepped
	node node
}

// signedMarked also has room for a signature: see adhook.Signing.
type signedMarked struct {
	marked
	sign uint64
}

// step returns the rest of a tensor that was made as a stepped.
func (t *Tensor) step() *stepped { return (*stepped)(unsafe.Pointer(t)) }

// extra returns the rest of a tensor that was made as a marked.
func (t *Tensor) extra() *marked { return (*marked)(unsafe.Pointer(t)) }

// tensorOf returns the tensor whose first field is v.
func tensorOf(v *stream.Value) *Tensor { return (*Tensor)(unsafe.Pointer(v)) }

// newStepped returns a new stepped tensor, with room for a signature if one is needed.
func newStepped() *Tensor {
	if signing() {
		return newMarked()
	}
	return &new(stepped).Tensor
}

// newMarked returns a new marked tensor, with room for a signature if one is needed.
func newMarked() *Tensor {
	if signing() {
		r := new(signedMarked)
		r.v.Mark(stream.MarkRoom | stream.MarkSigned)
		return &r.Tensor
	}
	return &new(marked).Tensor
}

// newRoomy returns a new tensor with room for a node. Results of ops on it have room, too, so the
// last step of a composite has room as well.
func newRoomy() *Tensor {
	r := newMarked()
	r.v.Mark(stream.MarkRoom)
	return r
}

// newLike returns a new tensor for the result of an op on t.
func newLike(t *Tensor) *Tensor {
	if t.v.Marks() != 0 {
		return newRoomy()
	}
	return new(Tensor)
}

// marks returns the union of the operands' marks. It is 0 if autodiff follows none of them and no
// composite made them.
func marks(args []stream.Arg) (m stream.Marks) {
	for i := range args {
		if v := args[i].V; v != nil {
			m |= v.Marks()
		}
	}
	return m
}

// node returns what t carries for autodiff, or nil.
func (t *Tensor) node() node {
	if t == nil {
		return nil
	}
	switch m := t.v.Marks(); {
	case m&stream.MarkPlain != 0:
	case m&stream.MarkLeaf != 0:
		return t.extra().node
	case m&stream.MarkFollowed != 0:
		return tensorOf(t.v.Now()).extra().node
	}
	return nil
}

func followed(ts ...*Tensor) bool { return nodeOf(ts) != nil }

// nodeOf returns the node of one of the tensors, or nil if none is followed.
func nodeOf(ts []*Tensor) node {
	for _, t := range ts {
		if n := t.node(); n != nil {
			return n
		}
	}
	return nil
}

// recordMarked is apply and recordAs for operands with marks.
func recordMarked(m stream.Marks, op ir.Op, out DType, shape ir.Shape, attr *ir.Attr, args []stream.Arg) (r *Tensor, ok bool) {
	var of *steps
	followed := false
	for _, a := range args {
		if a.V == nil {
			continue
		}
		t := tensorOf(a.V)
		if of == nil {
			of = t.steps()
		}
		followed = followed || t.node() != nil
	}
	switch {
	case followed:
		r, ok = recordFollowed(op, out, shape, attr, args)
	default:
		if m&^stream.MarkStep != 0 {
			r = newRoomy()
		} else {
			r = newStepped()
		}
		if out == ir.Invalid && shape == nil && attr == nil {
			ok = stream.Apply(&r.v, op, args)
		} else {
			ok = stream.Record(&r.v, stream.Place{}, op, out, shape, attr, args)
		}
		r.signed(op.String(), attr, args)
	}
	if ok {
		of.add(r)
	}
	return r, ok
}

// recordFollowed is recordMarked for operands at least one of which carries a node.
func recordFollowed(op ir.Op, out DType, shape ir.Shape, attr *ir.Attr, args []stream.Arg) (*Tensor, bool) {
	r := newRoomy()
	var own [3]stream.Arg
	c := &adhook.Call[Tensor]{Op: op, Name: op.String(), Attr: attr, Out: r}
	in := &c.In
	for i, a := range args {
		own[i], c.Bits[i] = a, a.Bits
		if a.V == nil {
			continue
		}
		for k := range i {
			if args[k].V == a.V { // an op sees one value of a handle
				in[i] = in[k]
			}
		}
		if in[i] == nil {
			in[i] = still(tensorOf(a.V))
		}
		own[i].V = &in[i].v
	}
	wantOperands(in)
	ok := stream.Record(&r.v, stream.Place{}, op, out, shape, attr, own[:len(args)])
	if !ok || r.v.Cause() != nil {
		endOperands(in)
		return r, ok
	}
	r.signed(op.String(), attr, args)
	tell(c)
	return r, true
}

// endOperands ends handles that still made. Some may be in the list twice.
func endOperands(in *[3]*Tensor) {
	for i, t := range in {
		if !before(in, i) {
			endOperand(t)
		}
	}
}

// wantOperands marks the operands as wanted before an op is recorded. Recording may end a
// segment, and autodiff says only after it which values it needs.
func wantOperands(in *[3]*Tensor) {
	for i, t := range in {
		if t.made() && !before(in, i) {
			stream.Want(&t.v)
		}
	}
}

// before reports whether operand i is also an earlier operand.
func before(in *[3]*Tensor, i int) bool {
	for k := range i {
		if in[k] == in[i] {
			return true
		}
	}
	return false
}

// endOperand is done for an operand, which may be wanted.
func endOperand(t *Tensor) {
	if t.made() && t.v.Leased() {
		stream.LetGo(&t.v)
		return
	}
	done(t)
}

// tell passes an op to autodiff and gives the result the node that autodiff returns.
func tell(c *adhook.Call[Tensor]) {
	n := nodeOf(c.In[:])
	if n == nil { // another goroutine has set the operand
		endOperands(&c.In)
		return
	}
	if adhook.Told != nil {
		adhook.Told(c.Name)
	}
	out := c.Out // Follow takes it out of c
	if n := n.Follow(c); n != nil {
		out.carry(n)
	}
}

// carry gives a new tensor its node, and reports whether it could.
func (t *Tensor) carry(n node) bool {
	if t.v.Marks()&stream.MarkRoom == 0 || t.v.Now() != &t.v {
		return false
	}
	t.extra().node = n
	t.v.Mark(stream.MarkFollowed)
	return true
}

// plainly returns another handle of t's present value. Ops on it are not followed. done ends it.
func plainly(t *Tensor) *Tensor {
	r := &new(stepped).Tensor
	stream.Same(&r.v, &t.v)
	r.v.Mark(stream.MarkPlain)
	return r
}

// unfollowed returns another step of the value of t, a step. Ops on it are not followed.
func unfollowed(t *Tensor) *Tensor {
	r := plainly(t)
	t.steps().add(r)
	return r
}

// tensors has the functions that package autodiff calls: see adhook.Tensors.
type tensors struct{}

func init() { adhook.Provide[Tensor, Place](tensors{}) }

func (tensors) Node(t *Tensor) node          { return t.node() }
func (tensors) Shape(t *Tensor) ir.Shape     { return t.shape() }
func (tensors) Signature(t *Tensor) uint64   { return signOf(&t.v) }
func (tensors) Carry(t *Tensor, n node) bool { return t.carry(n) }
func (tensors) Plain(t *Tensor) *Tensor      { return plainly(t) }
func (tensors) Adopt(t *Tensor)              { stream.Adopt(&t.v) }
func (tensors) Want(t *Tensor)               { stream.Want(&t.v) }
func (tensors) Drop(t *Tensor)               { endOperand(t) }

func (tensors) Beside(t *Tensor) Place      { return beside(t) }
func (tensors) Steps() adhook.Steps[Tensor] { return newSteps(true) }

func (tensors) LetGo(t *Tensor) {
	if t.made() {
		stream.LetGo(&t.v)
	}
}

func (tensors) Watch(t *Tensor, n node) *Tensor {
	r := newRoomy()
	stream.Second(&r.v, &t.v)
	r.extra().node = n
	r.v.Mark(stream.MarkLeaf)
	return r
}

func (tensors) Hold(t *Tensor) *Tensor {
	r := newRoomy()
	stream.Second(&r.v, &t.v)
	stream.Want(&r.v)
	if n := t.node(); n != nil && t.v.Marks()&stream.MarkLeaf != 0 {
		r.extra().node = n
		r.v.Mark(stream.MarkLeaf)
	}
	return r
}

func (tensors) Full(t *Tensor, dt ir.DType, value float64, shape []int) *Tensor {
	bits, _ := scalarBits(dt, value)
	return create(at{Place: stream.PlaceOf(&t.v)}, "full", ir.Full, dt, shape, bits, 0, 1)
}

func (tensors) Contract(t *Tensor, lt []int, u *Tensor, lu, out []int) *Tensor {
	return labelledSum("einsum", []*Tensor{t, u}, [][]int{lt, lu}, out)
}

func (tensors) OneDevice(t, u *Tensor) bool {
	a, b := t.v.Home(), u.v.Home()
	return a != nil && b != nil && a.Device() == b.Device()
}
