package millrace

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// What every op method does: build the operands on the stack, record. The one
// allocation is the result. Nothing is checked here that the engine checks.

// noValue stands for a nil *Tensor among operands: the engine refuses a value
// that was never made.
var noValue Tensor

func arg(t *Tensor) stream.Arg {
	if t == nil {
		t = &noValue
	}
	return stream.Arg{V: &t.v}
}

// seen is the operand t as it is now: recording tells whether Set has made it something
// else since, and who looked at it looks again.
func seen(t *Tensor) stream.Arg {
	a := arg(t)
	a.Is = a.V.Now()
	return a
}

func unary(op ir.Op, t *Tensor) *Tensor {
	r := new(Tensor)
	args := [...]stream.Arg{arg(t)}
	stream.Apply(&r.v, op, args[:])
	return r
}

func binary(op ir.Op, t, u *Tensor) *Tensor {
	r := new(Tensor)
	args := [...]stream.Arg{arg(t), arg(u)}
	stream.Apply(&r.v, op, args[:])
	return r
}

func ternary(op ir.Op, t, u, w *Tensor) *Tensor {
	r := new(Tensor)
	args := [...]stream.Arg{arg(t), arg(u), arg(w)}
	stream.Apply(&r.v, op, args[:])
	return r
}

// rightScalar is t op s, leftScalar s op t, with s in t's dtype.
func rightScalar(op ir.Op, t *Tensor, s float64) *Tensor { return withScalar(op, t, s, 0) }
func leftScalar(op ir.Op, s float64, t *Tensor) *Tensor  { return withScalar(op, t, s, 1) }

// withScalar records op on t, which is operand at of two, and a number.
func withScalar(op ir.Op, t *Tensor, s float64, at int) *Tensor {
	for {
		x := seen(t)
		bits, ok := scalarBits(x.Is.DType(), s)
		if !ok {
			return unheld(op, t, s)
		}
		r := new(Tensor)
		var args [2]stream.Arg
		args[at], args[1-at].Bits = x, bits
		if stream.Apply(&r.v, op, args[:]) {
			return r
		}
	}
}

func unheld(op ir.Op, t *Tensor, s float64) *Tensor {
	return failed(op.String(), dtypeErr("%v cannot hold the scalar %v", t.DType(), s), t)
}

// only refuses a first operand of another kind than ok says; use names the way out. One
// that carries an error passes: recording hands its error on.
func only(op ir.Op, ok func(DType) bool, use string, t *Tensor, more ...stream.Arg) *Tensor {
	for {
		x := seen(t)
		if dt := x.Is.DType(); dt != Invalid && !ok(dt) {
			return failed(op.String(), dtypeErr("%v tensor: %s", dt, use), t)
		}
		r := new(Tensor)
		var args [2]stream.Arg
		args[0] = x
		n := 1 + copy(args[1:], more)
		if stream.Apply(&r.v, op, args[:n]) {
			return r
		}
	}
}

// view records an op that only says where elements are found.
func view(op ir.Op, t *Tensor, shape ir.Shape, attr *ir.Attr) *Tensor {
	r := new(Tensor)
	args := [...]stream.Arg{arg(t)}
	stream.Record(&r.v, stream.Place{}, op, ir.Invalid, shape, attr, args[:])
	return r
}

// dot records a contraction of two tensors of one shape.
func dot(x, y *Tensor, axes []int) *Tensor {
	r := new(Tensor)
	args := [...]stream.Arg{arg(x), arg(y)}
	stream.Record(&r.v, stream.Place{}, ir.Dot, ir.Invalid, nil, &ir.Attr{Axes: axes}, args[:])
	return r
}
