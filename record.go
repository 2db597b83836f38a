package millrace

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// What every op method does: build the operands on the stack, record. The one
// allocation is the result. Nothing is checked here that the engine checks. All ops
// with operands go through apply or recordAs, where those on tensors that package
// autodiff follows are told to it: see follow.go.

// apply records an elementwise op whose dtype follows from its operands. It reports
// false where an operand is not any more what the caller found.
func apply(op ir.Op, args []stream.Arg) (*Tensor, bool) {
	if marks(args) != 0 || signing() {
		return recordFollowed(op, ir.Invalid, nil, nil, args)
	}
	r := new(Tensor)
	ok := stream.Apply(&r.v, op, args)
	return r, ok
}

// recordAs is apply for any op: see stream.Record.
func recordAs(op ir.Op, out DType, shape ir.Shape, attr *ir.Attr, args []stream.Arg) (*Tensor, bool) {
	if marks(args) != 0 || signing() {
		return recordFollowed(op, out, shape, attr, args)
	}
	r := new(Tensor)
	ok := stream.Record(&r.v, stream.Place{}, op, out, shape, attr, args)
	return r, ok
}

func record(op ir.Op, out DType, shape ir.Shape, attr *ir.Attr, args []stream.Arg) *Tensor {
	r, _ := recordAs(op, out, shape, attr, args)
	return r
}

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

// only refuses a first operand of another kind than ok says; use names the way out. One
// that carries an error passes: recording hands its error on.
func only(op ir.Op, ok func(DType) bool, use string, t *Tensor, more ...stream.Arg) *Tensor {
	for {
		x := seen(t)
		if dt := x.Is.DType(); dt != Invalid && !ok(dt) {
			return failed(op.String(), dtypeErr("%v tensor: %s", dt, use), t)
		}
		var args [2]stream.Arg
		args[0] = x
		n := 1 + copy(args[1:], more)
		if r, ok := apply(op, args[:n]); ok {
			return r
		}
	}
}

// view records an op that only says where elements are found.
func view(op ir.Op, t *Tensor, shape ir.Shape, attr *ir.Attr) *Tensor {
	args := [...]stream.Arg{arg(t)}
	return record(op, ir.Invalid, shape, attr, args[:])
}

// dot records a contraction of two tensors of one shape.
func dot(x, y *Tensor, axes []int) *Tensor {
	args := [...]stream.Arg{arg(x), arg(y)}
	return record(ir.Dot, ir.Invalid, nil, &ir.Attr{Axes: axes}, args[:])
}
