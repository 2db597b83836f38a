//go:build gc

#include "textflag.h"

// func returnPCs(pcs []uintptr) int
//
// A frame pointer points to where its function saved its caller's, and the return
// address lies above that. The function has no frame: BP is its caller's.
TEXT ·returnPCs(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ pcs_base+0(FP), DI
	MOVQ pcs_len+8(FP), CX
	XORQ AX, AX
	MOVQ 0(SP), DX
	MOVQ BP, SI

next:
	CMPQ  AX, CX
	JGE   done
	MOVQ  DX, (DI)(AX*8)
	INCQ  AX
	TESTQ SI, SI
	JZ    done
	MOVQ  8(SI), DX
	MOVQ  (SI), R8
	MOVQ  R8, R9
	SUBQ  SI, R9
	MOVQ  R8, SI
	JLS   last
	CMPQ  R9, $(1<<24)
	JLS   next

last:
	XORQ SI, SI
	JMP  next

done:
	MOVQ AX, ret+24(FP)
	RET
