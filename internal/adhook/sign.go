package adhook

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace-go/millrace/ir"
)

// Count is the number of nodes made so far. It numbers them.
var Count atomic.Uint64

// Told, if it is set, gets the name of each op that is followed. A generator of documents sets it.
var Told func(name string)

// Signing is above 0 while a function runs that must do the same when it is called again. Tensors
// made meanwhile carry a signature of their computation: the op with its numbers, seeds among them,
// and the operands' signatures. Older tensors have none.
var Signing atomic.Int32

// Sign is the signature of a result of the op with that name.
func Sign(op string, dt ir.DType, shape ir.Shape) uint64 {
	h := SignMore(xxhash.Sum64String(op), uint64(dt))
	for _, n := range shape {
		h = SignMore(h, uint64(n))
	}
	return h
}

// SignMore adds a number to a signature, which is never 0 afterwards.
func SignMore(h, x uint64) uint64 {
	high, low := bits.Mul64(h^0x9e3779b97f4a7c15, x^0xbf58476d1ce4e5b9)
	return bits.RotateLeft64(h, 23) ^ high ^ low | 1
}

// SignWith adds attributes of an op to a signature.
func SignWith(h uint64, with any) uint64 {
	return SignMore(h, xxhash.Sum64String(fmt.Sprintf("%+v", with)))
}
