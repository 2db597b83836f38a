package machine

import "encoding/binary"

func words(list ...uint32) (b []byte) {
	for _, w := range list {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

var (
	justReturn = words(0xd65f03c0)
	load       = words(0xf94000e0) // ldr x0, [x7]
	addOne     = words(0x91000400) // add x0, x0, #1
	store      = words(0xf90004e0) // str x0, [x7, #8]
	deref      = words(0xf9400000) // ldr x0, [x0]
	vload      = words(0x3dc00000) // ldr q0, [x0]
	divide     []byte              // division by zero gives zero
	countDown  = words(
		0xf94000e1, // ldr x1, [x7]
		0xf1000421, // subs x1, x1, #1
		0x54ffffe1, // b.ne to the subs
	)
	multiply = words(
		0xbd4010e0, // ldr s0, [x7, #16]
		0xbd4014e1, // ldr s1, [x7, #20]
		0x1e210800, // fmul s0, s0, s1
		0xbd0018e0, // str s0, [x7, #24]
	)
)

// clobber sets all bits of the registers that code may change, except x0, x1 and x7, which the code
// above uses.
func clobber() []byte {
	var b []byte
	for r := range uint32(32) {
		switch r {
		case 0, 1, 7, 18, 28, 29, 30, 31:
		default:
			b = append(b, words(0x92800000|r)...) // mov r, #-1
		}
		b = append(b, words(0x4f07e7e0|r)...) // movi r.16b, #255
	}
	return b
}
