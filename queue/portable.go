package queue

import (
	"encoding/binary"

	"github.com/millrace-go/millrace/ir"
)

// formHead is how long a key's form is at least before the attributes: what it
// does, its rank, its number of operands, and how long the attributes are.
const formHead = 8 + 1 + 1 + 1

// AppendForm appends what k says in a form for what outlives the process: a key
// has ops, dtypes and attributes by numbers that only one program, or one device,
// knows; its form has what the op means on its dtypes, and the attributes
// themselves. Equal keys have equal forms, others have others.
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

// cutForm takes the form of one key from the beginning of several: what is
// before its operands, those, and the rest.
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

// Meanings are those of the ops in forms of keys (see [ir.Meaning]); not ok where
// the forms are none.
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

// AppendLoose appends forms of keys without their bit sets: what is equal for
// keys that differ only in which dimensions broadcast. ones reports dimensions of
// 1 that may be taken either way, ok that the forms are any.
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
