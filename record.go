package millrace

import (
	"unsafe"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Every op method does the same: it builds the operands on the stack and records the op. The only
// allocation is the result. This file repeats none of the engine's checks. Every op with operands
// goes through apply or recordAs, which tell package autodiff of ops on tensors that it follows:
// see hook.go.

// apply records an elementwise op whose result dtype follows from its operands. It reports false
// if Set has changed an operand since the caller looked at it.
func apply(op ir.Op, args []stream.Arg) (*Tensor, bool) {
	if m := marks(args); m != 0 || signing() {
		return recordMarked(m, op, ir.Invalid, nil, nil, args)
	}
	r := new(Tensor)
	ok := stream.Apply(&r.v, op, args)
	return r, ok
}

// recordAs is apply for any op: see stream.Record.
func recordAs(op ir.Op, out DType, shape ir.Shape, attr *ir.Attr, args []stream.Arg) (*Tensor, bool) {
	if m := marks(args); m != 0 || signing() {
		return recordMarked(m, op, out, shape, attr, args)
	}
	r := new(Tensor)
	ok := stream.Record(&r.v, stream.Place{}, op, out, shape, attr, args)
	return r, ok
}

func record(op ir.Op, out DType, shape ir.Shape, attr *ir.Attr, args []stream.Arg) *Tensor {
	r, _ := recordAs(op, out, shape, attr, args)
	return r
}

// noValue stands for a nil *Tensor among the operands: the engine refuses a value that was never
// made.
var noValue Tensor

func arg(t *Tensor) stream.Arg {
	if t == nil {
		t = &noValue
	}
	return stream.Arg{V: &t.v}
}

// seen returns the operand t together with the value that it has now. If Set changes t before the
// op is recorded, recording reports it, and the caller looks at t again.
func seen(t *Tensor) stream.Arg {
	a := arg(t)
	a.Is = a.V.Now()
	return a
}

func unary(op ir.Op, t *Tensor) *Tensor {
	args := [...]stream.Arg{arg(t)}
	r, _ := apply(op, args[:])
	return r
}

func binary(op ir.Op, t, u *Tensor) *Tensor {
	args := [...]stream.Arg{arg(t), arg(u)}
	r, _ := apply(op, args[:])
	return r
}

func ternary(op ir.Op, t, u, w *Tensor) *Tensor {
	args := [...]stream.Arg{arg(t), arg(u), arg(w)}
	r, _ := apply(op, args[:])
	return r
}

// rightScalar is t op s and leftScalar is s op t, with s in t's dtype.
func rightScalar(op ir.Op, t *Tensor, s float64) *Tensor { return withScalar(op, t, s, 0) }
func leftScalar(op ir.Op, s float64, t *Tensor) *Tensor  { return withScalar(op, t, s, 1) }

// withScalar records op on a number and t, which is operand number at (0 or 1).
func withScalar(op ir.Op, t *Tensor, s float64, at int) *Tensor {
	for {
		x := seen(t)
		bits, ok := scalarBits(x.Is.DType(), s)
		if !ok {
			return unheld(op, t, s)
		}
		var args [2]stream.Arg
		args[at], args[1-at].Bits = x, bits
		if r, ok := apply(op, args[:]); ok {
			return r
		}
	}
}

func unheld(op ir.Op, t *Tensor, s float64) *Tensor {
	return failed(op.String(), dtypeErr("%v cannot hold the scalar %v", t.DType(), s), t)
}

// only refuses a first operand whose dtype ok rejects; use tells the caller what to do instead.
// An operand that carries an error passes, because recording returns its error.
func only(op ir.Op, ok func(DType) bool, use string, t *Tensor, more ...stream.Arg) *Tensor {
	for {
		x := seen(t)
		if dt := x.Is.DType(); dt != Invalid && !ok(dt) {
			return failed(op.String(), dtypeErr("the op does not take %v: %s", dt, use), t)
		}
		var args [2]stream.Arg
		args[0] = x
		n := 1 + copy(args[1:], more)
		if r, ok := apply(op, args[:n]); ok {
			return r
		}
	}
}

// view records an op that only changes where elements are found.
func view(op ir.Op, t *Tensor, shape ir.Shape, attr *ir.Attr) *Tensor {
	args := [...]stream.Arg{arg(t)}
	return record(op, ir.Invalid, shape, attr, args[:])
}

// dot records a contraction of two tensors of one shape.
func dot(x, y *Tensor, axes []int) *Tensor {
	args := [...]stream.Arg{arg(x), arg(y)}
	return record(ir.Dot, ir.Invalid, nil, &ir.Attr{Axes: axes}, args[:])
}

// Package autodiff calls some functions twice, and must find out whether a function does
// something else the second time, such as drawing other random numbers. Tensors made while such a
// function runs therefore carry a signature: see adhook.Signing.

func signing() bool { return adhook.Signing.Load() > 0 }

// signed gives the new result of an op its signature, if one is needed.
func (t *Tensor) signed(op string, attr *ir.Attr, args []stream.Arg) {
	if !t.toSign() {
		return
	}
	h := adhook.Sign(op, t.v.DType(), t.v.Shape())
	if attr != nil {
		h = adhook.SignWith(h, *attr)
	}
	for _, a := range args {
		if a.V != nil {
			h = adhook.SignMore(h, signOf(a.V))
		} else {
			h = adhook.SignMore(h, a.Bits)
		}
	}
	(*signedMarked)(unsafe.Pointer(t)).sign = h
}

// signedAs is signed for the result of a composite.
func (t *Tensor) signedAs(op string, with any, in []*Tensor) {
	if !t.toSign() {
		return
	}
	h := adhook.SignWith(adhook.Sign(op, t.v.DType(), t.v.Shape()), with)
	for _, x := range in {
		if x != nil {
			h = adhook.SignMore(h, signOf(&x.v))
		}
	}
	(*signedMarked)(unsafe.Pointer(t)).sign = h
}

// toSign reports a new tensor with room for a signature.
func (t *Tensor) toSign() bool {
	return signing() && t.v.Marks()&stream.MarkSigned != 0 && t.v.Now() == &t.v
}

// signOf returns the signature of the value that a handle names. Set may give a watched handle
// another value, so the value itself counts.
func signOf(h *stream.Value) uint64 {
	m, v := h.Marks(), h.Now()
	if m&stream.MarkSigned != 0 {
		if x := (*signedMarked)(unsafe.Pointer(v)).sign; x != 0 {
			return x
		}
	}
	if m&stream.MarkLeaf != 0 {
		return uint64(uintptr(unsafe.Pointer(v)))
	}
	return 0
}

// unsign removes the signature from the value that a handle names. A result of a Recording has no
// signature, because only the first run calls the function that could sign it.
func unsign(h *stream.Value) {
	if signing() && h.Marks()&stream.MarkSigned != 0 {
		(*signedMarked)(unsafe.Pointer(h.Now())).sign = 0
	}
}
