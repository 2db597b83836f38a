package millrace

import (
	"unsafe"

	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Package autodiff follows ops as the program calls them, and this file is its hook. A program
// that watches no tensor pays one comparison per operand for it (marks), and no memory.

// roomy is a tensor with room for autodiff's node. Results of ops on roomy tensors are roomy, so
// the last step of a composite has room as well.
type roomy struct {
	Tensor
	node any
}

// signedRoomy also has room for a signature: see follow.Signing.
type signedRoomy struct {
	roomy
	sign uint64
}

func newRoomy() *Tensor {
	if signing() {
		r := new(signedRoomy)
		r.v.Mark(stream.MarkRoom | stream.MarkSigned)
		return &r.Tensor
	}
	r := new(roomy)
	r.v.Mark(stream.MarkRoom)
	return &r.Tensor
}

// newLike returns a new tensor for the result of an op on t.
func newLike(t *Tensor) *Tensor {
	if t.v.Marks() != 0 {
		return newRoomy()
	}
	return new(Tensor)
}

// marks returns the union of the operands' marks. It is 0 if autodiff follows none of them.
func marks(args []stream.Arg) (m stream.Marks) {
	for i := range args {
		if v := args[i].V; v != nil {
			m |= v.Marks()
		}
	}
	return m
}

// node returns what t carries for autodiff, or nil.
func (t *Tensor) node() any {
	if t == nil {
		return nil
	}
	switch m := t.v.Marks(); {
	case m&stream.MarkPlain != 0:
	case m&stream.MarkLeaf != 0:
		return (*roomy)(unsafe.Pointer(t)).node
	case m&stream.MarkFollowed != 0:
		return (*roomy)(unsafe.Pointer(t.v.Now())).node // a Value is the first field of a Tensor, which is the first field of a roomy
	}
	return nil
}

func followed(ts ...*Tensor) bool {
	for _, t := range ts {
		if t.node() != nil {
			return true
		}
	}
	return false
}

// recordFollowed is recordAs for operands with marks.
func recordFollowed(op ir.Op, out DType, shape ir.Shape, attr *ir.Attr, args []stream.Arg) (*Tensor, bool) {
	r := newRoomy()
	any := false
	for _, a := range args {
		any = any || a.V != nil && tensorOf(a.V).node() != nil
	}
	if !any {
		ok := stream.Record(&r.v, stream.Place{}, op, out, shape, attr, args)
		r.signed(op.String(), attr, args)
		return r, ok
	}
	var own [3]stream.Arg
	c := &follow.Call[Tensor]{Op: op, Name: op.String(), Attr: attr, Out: r}
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

// tensorOf returns the tensor whose first field is v.
func tensorOf(v *stream.Value) *Tensor { return (*Tensor)(unsafe.Pointer(v)) }

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

// whole records a composite as one op for which autodiff has a rule. run makes it from handles
// that are not followed. An operand that is left out is nil.
func whole(rule, name string, with any, run func(in []*Tensor) *Tensor, ts ...*Tensor) *Tensor {
	c := &follow.Call[Tensor]{Name: name, Rule: rule, With: with}
	plain := make([]*Tensor, len(ts))
	for i, t := range ts {
		if t != nil {
			c.In[i], plain[i] = still(t), plainly(t)
		}
	}
	wantOperands(&c.In)
	c.Out = run(plain)
	r := c.Out // the hook takes it out of c
	done(plain...)
	if r.v.Cause() != nil {
		endOperands(&c.In)
		return r
	}
	r.signedAs(name, with, ts)
	tell(c)
	return r
}

// tell passes an op to autodiff and gives the result the node that autodiff returns.
func tell(c *follow.Call[Tensor]) {
	hook, ok := follow.Hook.(func(*follow.Call[Tensor]) any)
	if !ok {
		endOperands(&c.In)
		return
	}
	out := c.Out
	if n := hook(c); n != nil {
		out.carry(n)
	}
}

// carry gives a new tensor its node, and reports whether it could.
func (t *Tensor) carry(node any) bool {
	if t.v.Marks()&stream.MarkRoom == 0 || t.v.Now() != &t.v {
		return false
	}
	(*roomy)(unsafe.Pointer(t)).node = node
	t.v.Mark(stream.MarkFollowed)
	return true
}

// stillFollowed is still for a tensor with marks: the new handle carries t's node.
func stillFollowed(t *Tensor) *Tensor {
	r := new(roomy)
	r.node = t.node()
	stream.Same(&r.v, &t.v)
	return &r.Tensor
}

// plainly returns another handle of t's present value. Ops on it are not followed. done ends it.
func plainly(t *Tensor) *Tensor {
	r := new(Tensor)
	stream.Same(&r.v, &t.v)
	r.v.Mark(stream.MarkPlain)
	return r
}

func init() {
	follow.Node = func(t any) any { return t.(*Tensor).node() }
	follow.Signature = func(t any) uint64 { return signOf(&t.(*Tensor).v) }
	follow.Shape = func(t any) ir.Shape { return t.(*Tensor).shape() }
	follow.Watch = func(t, node any) any {
		r := newRoomy()
		stream.Second(&r.v, &t.(*Tensor).v)
		(*roomy)(unsafe.Pointer(r)).node = node
		r.v.Mark(stream.MarkLeaf)
		return r
	}
	follow.Carry = func(t, node any) bool { return t.(*Tensor).carry(node) }
	follow.Plain = func(t any) any { return plainly(t.(*Tensor)) }
	follow.Hold = func(t any) any {
		h := t.(*Tensor)
		r := newRoomy()
		stream.Second(&r.v, &h.v)
		stream.Want(&r.v)
		if h.v.Marks()&stream.MarkLeaf != 0 && h.node() != nil {
			(*roomy)(unsafe.Pointer(r)).node = h.node()
			r.v.Mark(stream.MarkLeaf)
		}
		return r
	}
	follow.Contract = func(t any, lt []int, u any, lu, out []int) any {
		return labelledSum("einsum", []*Tensor{t.(*Tensor), u.(*Tensor)}, [][]int{lt, lu}, out)
	}
	follow.Adopt = func(t any) { stream.Adopt(&t.(*Tensor).v) }
	follow.Want = func(t any) { stream.Want(&t.(*Tensor).v) }
	follow.Drop = func(t any) { endOperand(t.(*Tensor)) }
	follow.LetGo = func(t any) {
		if h := t.(*Tensor); h.made() {
			stream.LetGo(&h.v)
		}
	}
	follow.Full = func(t any, dt ir.DType, value float64, shape []int) any {
		bits, _ := scalarBits(dt, value)
		return create(stream.PlaceOf(&t.(*Tensor).v), "full", ir.Full, dt, shape, bits, 0, 1)
	}
	follow.OneDevice = func(t, u any) bool {
		a, b := t.(*Tensor).v.Home(), u.(*Tensor).v.Home()
		return a != nil && b != nil && a.Device() == b.Device()
	}
}
