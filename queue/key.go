package queue

import "github.com/millrace-go/millrace/ir"

// Operand codes of a Key that are not relative ids.
const (
	argNone   = -1
	argScalar = -2
)

// Key is the relative form of one entry: everything a plan may depend on
// besides exact sizes. Keys are compared with ==.
//
// Sizes enter as two bit sets per operand, one bit per result dimension
// counted from the last: Bcast says that the operand's dimension is 1 (or
// missing) where the result's is not; Ones that both are 1, where the operand
// may be taken either way.
type Key struct {
	Op    ir.Op
	DT    ir.DType
	Rank  uint8
	ArgDT [3]ir.DType
	ARank [3]uint8
	Bcast [3]uint8
	Ones  [3]uint8
	Args  [3]int16
	Attr  uint32 // interned axes and reshape groups
}

// Legal reports whether a plan made under key have serves an entry of key k:
// the same but for dimensions of size 1, which satisfy both "broadcasts" and
// "is equal".
func Legal(have, k Key) bool {
	for i := range have.Bcast {
		if (have.Bcast[i]^k.Bcast[i])&^k.Ones[i] != 0 {
			return false
		}
	}
	have.Bcast, k.Bcast = [3]uint8{}, [3]uint8{}
	have.Ones, k.Ones = [3]uint8{}, [3]uint8{}
	return have == k
}

// Local is what Key says without naming tensors: two turns of a loop have
// equal locals even where one reads older results than the other.
func (k Key) Local() Key {
	for i, a := range k.Args {
		if a >= 0 {
			k.Args[i] = 0
		}
	}
	return k
}

// sizes fills the bit sets of operand i.
func (k *Key) sizes(i int, arg, out ir.Shape) {
	if len(arg) == len(out) && (len(arg) == 0 || &arg[0] == &out[0]) {
		// The same backing array: equal, only the ones are to be found.
		for d, n := range out {
			if n == 1 {
				k.Ones[i] |= 1 << (len(out) - 1 - d)
			}
		}
		return
	}
	for back := 1; back <= len(out); back++ {
		o := out[len(out)-back]
		a := 1
		if back <= len(arg) {
			a = arg[len(arg)-back]
		}
		switch bit := uint8(1) << (back - 1); {
		case a != 1:
		case o != 1:
			k.Bcast[i] |= bit
		default:
			k.Ones[i] |= bit
		}
	}
}
