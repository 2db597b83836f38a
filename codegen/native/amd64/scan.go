package amd64

import "github.com/millrace-go/millrace/codegen/native"

// JumpIfAny jumps if some of the bits are set in register r. It changes r and r+1.
func (a *machine) JumpIfAny(r, bits uint8, to native.Label) {
	if a.evex {
		a.vec3(vptestmd, 1, r, native.InReg(bits))
		a.vector(kortestw, 16, args{reg: 1, RM: native.InReg(1), imm: native.NoImm})
		a.JumpIf(native.NotEqual, to)
		return
	}
	a.vec3(vpand, r, r, native.InReg(bits))
	a.vec3(vpxor, r+1, r+1, native.InReg(r+1))
	a.vec3(vpcmpeqd, r, r, native.InReg(r+1))
	a.vec3(vmovmskps, uint8(native.RAX), 0, native.InReg(r))
	a.OpImm(native.Cmp, native.OfGPR(native.RAX), 0xff)
	a.JumpIf(native.NotEqual, to)
}

// JoinGreater notes in sum, or in greaterMask, that an element of x is greater than the limit's. No
// sign is set.
func (a *machine) JoinGreater(sum, x, limit uint8) {
	greater, less := vpcmpgtd, vpcmpud
	if a.dot.size == 8 {
		greater, less = vpcmpgtq, vpcmpuq
	}
	if a.evex {
		const lessThan = 1
		a.vec3i(less, 2, limit, native.InReg(x), lessThan)
		a.vector(korw, 16, args{reg: native.GreaterMask, v: native.GreaterMask, RM: native.InReg(2), imm: native.NoImm})
		return
	}
	a.vec3(greater, x, x, native.InReg(limit))
	a.vec3(vpor, sum, sum, native.InReg(x))
}

// TestGreater sets the flags to "not equal" if joinGreater noted an element. It changes rbx.
func (a *machine) TestGreater(sum uint8) {
	if a.evex {
		a.vector(kortestw, 16, args{reg: native.GreaterMask, RM: native.InReg(native.GreaterMask), imm: native.NoImm})
		return
	}
	a.vec3(vmovmskps, uint8(native.RBX), 0, native.InReg(sum))
	a.OpImm(native.Cmp, native.OfGPR(native.RBX), 0)
}
