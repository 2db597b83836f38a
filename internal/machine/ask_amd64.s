//go:build gc

#include "textflag.h"

// func Ask(p unsafe.Pointer, n int64)
TEXT ·Ask(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
	ADDQ AX, CX

next:
	CMPQ        AX, CX
	JCC         done
	PREFETCHT0  (AX)
	ADDQ        $64, AX
	JMP         next

done:
	RET
