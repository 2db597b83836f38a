//go:build gc

#include "textflag.h"

// The assembler puts the stub's own return address at 0(RSP) and has BL leave one into
// the stub in R30, which code keeps: that is what makes a fault in it a panic, since
// Go's runtime then takes it for one of the stub.

// func call(addr uintptr, frame unsafe.Pointer, mxcsr uint32) (done bool)
TEXT ·call(SB), NOSPLIT, $16-25
	MRS   FPCR, R0
	MOVWU mxcsr+16(FP), R1
	CMPW  R0, R1
	BNE   differs
	MOVD  addr+0(FP), R0
	MOVD  frame+8(FP), R7
	CALL  (R0)
	MOVD  $1, R0
	MOVB  R0, done+24(FP)
	RET

differs:
	MOVB ZR, done+24(FP)
	RET

// func callWith(addr uintptr, frame unsafe.Pointer, mxcsr uint32)
TEXT ·callWith(SB), NOSPLIT, $16-20
	MRS   FPCR, R0
	MOVD  R0, before-8(SP)
	MOVWU mxcsr+16(FP), R1
	MSR   R1, FPCR
	MOVD  addr+0(FP), R0
	MOVD  frame+8(FP), R7
	CALL  (R0)
	MOVD  before-8(SP), R0
	MSR   R0, FPCR
	RET

// func getMXCSR() uint32
TEXT ·getMXCSR(SB), NOSPLIT, $0-4
	MRS  FPCR, R0
	MOVW R0, ret+0(FP)
	RET

// func setMXCSR(mxcsr uint32)
TEXT ·setMXCSR(SB), NOSPLIT, $0-4
	MOVWU mxcsr+0(FP), R0
	MSR   R0, FPCR
	RET

// func syncCaches(from, to uintptr)
TEXT ·syncCaches(SB), NOSPLIT, $0-16
	MRS  CTR_EL0, R2
	MOVD to+8(FP), R1
	// The least lines, of data and of instructions: four bytes to the power of these.
	UBFX $16, R2, $4, R3
	UBFX $0, R2, $4, R4
	MOVD $4, R5
	LSL  R3, R5, R3
	LSL  R4, R5, R4
	MOVD from+0(FP), R0
	SUB  $1, R3, R5
	BIC  R5, R0, R0

data:
	DC  CVAU, R0
	ADD R3, R0, R0
	CMP R1, R0
	BLO data
	DSB $11 // of the inner shareable domain
	MOVD from+0(FP), R0
	SUB  $1, R4, R5
	BIC  R5, R0, R0

instructions:
	WORD $0xd50b7520 // ic ivau, x0
	ADD  R4, R0, R0
	CMP  R1, R0
	BLO  instructions
	DSB  $11
	ISB  $15
	RET
