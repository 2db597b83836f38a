//go:build gc && amd64 && cgo

#include "textflag.h"

// func call(addr uintptr, frame unsafe.Pointer, mxcsr uint32) (done bool)
TEXT ·call(SB), NOSPLIT, $8-25
	STMXCSR 0(SP)
	MOVL    0(SP), AX
	XORL    mxcsr+16(FP), AX
	TESTL   $~0x3F, AX
	JNE     differs
	MOVQ    addr+0(FP), AX
	MOVQ    frame+8(FP), DI
	CALL    AX
	VZEROUPPER
	MOVB    $1, done+24(FP)
	RET

differs:
	MOVB $0, done+24(FP)
	RET
