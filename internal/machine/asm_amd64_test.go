package machine

var justReturn = []byte{0xC3}

var (
	load   = []byte{0x48, 0x8B, 0x07}       // mov rax, [rdi]
	addOne = []byte{0x48, 0x83, 0xC0, 0x01} // add rax, 1
	store  = []byte{0x48, 0x89, 0x47, 0x08} // mov [rdi+8], rax
	deref  = []byte{0x48, 0x8B, 0x00}       // mov rax, [rax]
	vload  = []byte{0xC5, 0xFC, 0x10, 0x00} // vmovups ymm0, [rax]
	divide = []byte{
		0x31, 0xC0, // xor eax, eax
		0x31, 0xC9, // xor ecx, ecx
		0x31, 0xD2, // xor edx, edx
		0xF7, 0xF9, // idiv ecx
	}
	countDown = []byte{
		0x48, 0x8B, 0x0F, // mov rcx, [rdi]
		0x48, 0xFF, 0xC9, // dec rcx
		0x75, 0xFB, // jnz to the dec
	}
	multiply = []byte{
		0xF3, 0x0F, 0x10, 0x47, 0x10, // movss xmm0, [rdi+16]
		0xF3, 0x0F, 0x59, 0x47, 0x14, // mulss xmm0, [rdi+20]
		0xF3, 0x0F, 0x11, 0x47, 0x18, // movss [rdi+24], xmm0
	}
)

// clobber sets all bits of the registers that code may change, except AX, CX and DI, which the code
// above uses.
func clobber() []byte {
	var b []byte
	for r := range byte(16) {
		high, low := r>>3, r&7
		switch r {
		case 0, 1, 4, 5, 7, 14: // AX, CX, SP, BP, DI, R14
		default:
			b = append(b, 0x48|high, 0x83, 0xC8|low, 0xFF) // or r, -1
		}
		b = append(b, 0xC4, 0xE1^high*0xA0, 0x05|(^r&15)<<3, 0x76, 0xC0|low<<3|low) // vpcmpeqd r, r, r
	}
	if Level() == AVX512 {
		b = append(b, 0x62, 0x03, 0x05, 0x40, 0x25, 0xFF, 0xFF) // vpternlogd zmm31, zmm31, zmm31, -1
		b = append(b, 0xC5, 0xFC, 0x46, 0xC8)                   // kxnorw k1, k0, k0
	}
	return b
}
