//go:build gc

#include "textflag.h"

// All calls have their own return address on top of the stack while the code runs:
// that is what makes a fault in it a panic, since Go's runtime then takes it for one
// of the stub. Stubs have no stack check, and code uses none of the stack.

// func callWith(addr uintptr, frame unsafe.Pointer, mxcsr uint32)
TEXT ·callWith(SB), NOSPLIT, $8-20
	STMXCSR 0(SP)
	LDMXCSR mxcsr+16(FP)
	MOVQ    addr+0(FP), AX
	MOVQ    frame+8(FP), DI
	CALL    AX
	LDMXCSR 0(SP)
	VZEROUPPER
	RET

// func getMXCSR() uint32
TEXT ·getMXCSR(SB), NOSPLIT, $8-4
	STMXCSR 0(SP)
	MOVL    0(SP), AX
	MOVL    AX, ret+0(FP)
	RET

// func setMXCSR(mxcsr uint32)
TEXT ·setMXCSR(SB), NOSPLIT, $0-4
	LDMXCSR mxcsr+0(FP)
	RET
