package queue

import "github.com/millrace-go/millrace/ir"

// Key is the relative form of one item: everything that a plan may depend on, except exact sizes.
// A hot stream compares the keys of every operation with ==. Therefore a Key is four words, which
// are built in registers.
type Key struct {
	head uint64 // from the lowest byte: op, dtype, rank, number of operands; above: number of the attributes
	args [3]operand
}

// operand is a Key's description of an operand. From the lowest byte: two bit sets, its rank, its
// dtype; the upper half is its relative id.
//
// Sizes enter only through the bit sets. They have one bit per result dimension, counted from the
// last. bcast: the operand's dimension is 1 or missing, and the result's is not 1. ones: both are
// 1, so the operand may be taken either way.
type operand uint64

// IDs of operands that are not relative ids.
const (
	argNone   operand = 0xffffffff << 32
	argScalar operand = 0xfffffffe << 32
)

const (
	bcastBits operand = 0xff
	onesBits  operand = 0xff << 8
	dtypeBits operand = 0xff << 24
	idBits    operand = 0xffffffff << 32
)

func keyHead(op ir.Op, dt ir.DType, rank int, nargs uint8) uint64 {
	return uint64(op) | uint64(dt)<<8 | uint64(uint8(rank))<<16 | uint64(nargs)<<24
}

func (a operand) dtype() ir.DType { return ir.DType(uint8(a >> 24)) }

func scalarOperand(dt ir.DType) operand { return argScalar | operand(dt)<<24 }

func markOperand(id int32) operand { return operand(uint32(id)) << 32 }

func tensorOperand(id int32, dt ir.DType, form *Form) operand {
	return markOperand(id) | operand(dt)<<24 | operand(uint8(len(form.Shape)))<<16
}

// Op returns the operation of the item.
func (k *Key) Op() ir.Op { return ir.Op(uint8(k.head)) }

func (k *Key) nargs() uint8 { return uint8(k.head >> 24) }

// DT is the dtype of the result.
func (k *Key) DT() ir.DType { return ir.DType(uint8(k.head >> 8)) }

// Plain reports a key of this op with that many operands and without attributes.
func (k *Key) Plain(op ir.Op, nargs int) bool {
	return k.head&^0xffff00 == uint64(op)|uint64(nargs)<<24
}

// Scalar returns the dtype of operand i and reports whether it is a scalar.
func (k *Key) Scalar(i int) (ir.DType, bool) {
	return k.args[i].dtype(), k.args[i]&idBits == argScalar
}

// Tensor reports that operand i is the tensor with this id and dtype, and that its form is the
// given form, which is the result's.
func (k *Key) Tensor(i int, id int32, dt ir.DType, form *Form) bool {
	return k.args[i] == tensorOperand(id, dt, form)|operand(form.Ones)<<8
}

// Legal reports whether a plan made for key have serves an item with key k. The keys may differ
// only in dimensions of size 1, which satisfy both "broadcasts" and "is equal".
func Legal(have, k *Key) bool {
	if have.head != k.head {
		return false
	}
	for i, a := range have.args {
		b := k.args[i]
		if (a^b)&^(bcastBits|onesBits) != 0 || (a^b)&bcastBits&^(b&onesBits>>8) != 0 {
			return false
		}
	}
	return true
}

// names reports that an operand is the tensor of this id.
func (k *Key) names(id int32) bool {
	for _, a := range k.args {
		if a&idBits == markOperand(id) {
			return true
		}
	}
	return false
}

// Local returns the key without the ids of tensors. Two turns of a loop have equal local keys even
// if one reads older results than the other.
func (k Key) Local() Key {
	for i, a := range k.args {
		if id := a & idBits; id != argNone && id != argScalar {
			k.args[i] = a &^ idBits
		}
	}
	return k
}

// sizes returns the bit sets of an operand of an operation that works by position.
func sizes(arg, out *Form) operand {
	if arg == out {
		return operand(out.Ones) << 8
	}
	bcast, ones := uint8(0), uint8(0)
	from, to := arg.Shape, out.Shape
	for back := 1; back <= len(to); back++ {
		a := 1
		if back <= len(from) {
			a = from[len(from)-back]
		}
		switch bit := uint8(1) << (back - 1); {
		case a != 1:
		case to[len(to)-back] != 1:
			bcast |= bit
		default:
			ones |= bit
		}
	}
	return operand(bcast) | operand(ones)<<8
}
