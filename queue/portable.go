package queue

import "encoding/binary"

// AppendForm appends what k says in a form for what outlives the process: a key
// names attributes by numbers that only one device knows, its form has them
// themselves. Equal keys have equal forms, others have others.
func (in *Interner) AppendForm(b []byte, k *Key) []byte {
	blob := in.blob(uint32(k.head >> 32))
	b = binary.LittleEndian.AppendUint32(b, uint32(k.head))
	b = append(b, byte(len(blob)))
	b = append(b, blob...)
	for _, a := range k.args {
		b = binary.AppendUvarint(b, uint64(a))
	}
	return b
}

// AppendLoose appends forms of keys without their bit sets: what is equal for
// keys that differ only in which dimensions broadcast. ones reports dimensions of
// 1 that may be taken either way, ok that the forms are any.
func AppendLoose(b, forms []byte) (loose []byte, ones, ok bool) {
	for len(forms) > 0 {
		if len(forms) < 5 || len(forms) < 5+int(forms[4]) {
			return nil, false, false
		}
		n := 5 + int(forms[4])
		b, forms = append(b, forms[:n]...), forms[n:]
		for range len(Key{}.args) {
			a, n := binary.Uvarint(forms)
			if n <= 0 {
				return nil, false, false
			}
			forms = forms[n:]
			ones = ones || operand(a)&onesBits != 0
			b = binary.AppendUvarint(b, a&^uint64(bcastBits|onesBits))
		}
	}
	return b, ones, true
}
