package millrace

import (
	"unsafe"

	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// Package autodiff calls some functions twice, and must find out whether a function does
// something else the second time, such as drawing other random numbers. Tensors made while such a
// function runs therefore carry a signature: see follow.Signing.

func signing() bool { return follow.Signing.Load() > 0 }

// newSigned returns a new tensor, with room for a signature if one is needed.
func newSigned() *Tensor {
	if signing() {
		return newRoomy()
	}
	return new(Tensor)
}

// signed gives the new result of an op its signature, if one is needed.
func (t *Tensor) signed(op string, attr *ir.Attr, args []stream.Arg) {
	if !t.toSign() {
		return
	}
	h := follow.Sign(op, t.v.DType(), t.v.Shape())
	if attr != nil {
		h = follow.SignWith(h, *attr)
	}
	for _, a := range args {
		if a.V != nil {
			h = follow.SignMore(h, signOf(a.V))
		} else {
			h = follow.SignMore(h, a.Bits)
		}
	}
	(*signedRoomy)(unsafe.Pointer(t)).sign = h
}

// signedAs is signed for the result of a composite.
func (t *Tensor) signedAs(op string, with any, in []*Tensor) {
	if !t.toSign() {
		return
	}
	h := follow.SignWith(follow.Sign(op, t.v.DType(), t.v.Shape()), with)
	for _, x := range in {
		if x != nil {
			h = follow.SignMore(h, signOf(&x.v))
		}
	}
	(*signedRoomy)(unsafe.Pointer(t)).sign = h
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
		if x := (*signedRoomy)(unsafe.Pointer(v)).sign; x != 0 {
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
		(*signedRoomy)(unsafe.Pointer(h.Now())).sign = 0
	}
}
