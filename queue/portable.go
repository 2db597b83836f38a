package queue

import (
	"encoding/binary"

	"github.com/millrace-go/millrace/ir"
)

// formHead is the length of a key's form before the attributes: the operation's meaning, its rank,
// its number of operands, and the length of the attributes.
const formHead = 8 + 1 + 1 + 1

// AppendForm appends the form of k, for data that outlives the process. A key has numbers for
// operations, dtypes and attributes that only one program or device knows. Its form has instead
// the meaning of the operation on its dtypes, and the attributes themselves. Two keys have equal
// forms only if they are equal.
func (in *Interner) AppendForm(b []byte, k *Key) []byte {
	var dts [len(k.args)]ir.DType
	n := k.nargs()
	for i := range n {
		dts[i] = k.args[i].dtype()
	}
	b = binary.LittleEndian.AppendUint64(b, ir.Meaning(k.Op(), k.DT(), dts[:n]))
	blob := in.blob(uint32(k.head >> 32))
	b = append(b, byte(k.head>>16), n, byte(len(blob)))
	b = append(b, blob...)
	for _, a := range k.args {
		b = binary.AppendUvarint(b, uint64(a&^dtypeBits))
	}
	return b
}

// cutForm splits the first form off a list of forms. It returns the part before the operands, the
// operands, and the rest of the list.
func cutForm(forms []byte) (head []byte, args [len(Key{}.args)]operand, rest []byte, ok bool) {
	if len(forms) < formHead || len(forms) < formHead+int(forms[formHead-1]) {
		return nil, args, nil, false
	}
	n := formHead + int(forms[formHead-1])
	head, rest = forms[:n], forms[n:]
	for i := range args {
		a, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, args, nil, false
		}
		args[i], rest = operand(a), rest[n:]
	}
	return head, args, rest, true
}

// Meanings returns the meanings (see [ir.Meaning]) of the operations in forms of keys. ok is false
// if the forms are invalid.
func Meanings(forms []byte) (list []uint64, ok bool) {
	for len(forms) > 0 {
		head, _, rest, ok := cutForm(forms)
		if !ok {
			return nil, false
		}
		list, forms = append(list, binary.LittleEndian.Uint64(head)), rest
	}
	return list, true
}

// AppendLoose appends forms of keys without their bit sets. Keys that differ only in which
// dimensions broadcast have equal loose forms. ones reports dimensions of 1 that may be taken
// either way; ok is false if the forms are invalid.
func AppendLoose(b, forms []byte) (loose []byte, ones, ok bool) {
	for len(forms) > 0 {
		head, args, rest, ok := cutForm(forms)
		if !ok {
			return nil, false, false
		}
		b, forms = append(b, head...), rest
		for _, a := range args {
			ones = ones || a&onesBits != 0
			b = binary.AppendUvarint(b, uint64(a&^(bcastBits|onesBits)))
		}
	}
	return b, ones, true
}
