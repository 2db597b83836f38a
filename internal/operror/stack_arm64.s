//go:build gc

#include "textflag.h"

// func returnPCs(pcs []uintptr) int
//
// A frame pointer points to where its function saved its caller's, and the return
// address lies above that. The function has no frame: R29 is its caller's.
TEXT ·returnPCs(SB), NOSPLIT|NOFRAME, $0-32
	MOVD pcs_base+0(FP), R0
	MOVD pcs_len+8(FP), R1
	MOVD ZR, R2
	MOVD R30, R4
	MOVD R29, R3
	MOVD $(1<<24), R7

next:
	CMP  R1, R2
	BGE  done
	MOVD R4, (R0)(R2<<3)
	ADD  $1, R2
	CBZ  R3, done
	MOVD 8(R3), R4
	MOVD (R3), R5
	CMP  R3, R5
	BLS  last
	SUB  R3, R5, R6
	MOVD R5, R3
	CMP  R7, R6
	BLS  next

last:
	MOVD ZR, R3
	B    next

done:
	MOVD R2, ret+24(FP)
	RET
