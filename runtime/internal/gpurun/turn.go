package gpurun

import (
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
)

// Operands that are read across: neighbours along the innermost dim are far apart in memory, and
// those along another dim adjacent. From one point to the next such a load goes to another line of
// memory and uses one element of it.
const (
	turnFar   = 16 // elements between neighbours: a line
	turnLong  = 16 // points along both dims that make it worthwhile
	turnSteps = 16 // steps of an invocation on a software adapter: a line
	turnMost  = 3  // operands that fit in a workgroup's memory
)

// turnDim is 1 plus the dim along which the first operand that is read across is contiguous; else
// 0.
func turnDim(v *shader.Variant, k *codegen.Kernel, l *runtime.Launch) int {
	for i := range l.Args {
		for d := range l.Rank - 1 {
			if readAcross(v, k, l, i, d) {
				return d + 1
			}
		}
	}
	return 0
}

// readAcross reports whether operand i is contiguous along dim d and read across.
func readAcross(v *shader.Variant, k *codegen.Kernel, l *runtime.Launch, i, d int) bool {
	a, inner := &l.Args[i], l.Rank-1
	far := a.Stride[inner]
	return k.Operands[i].Kind == codegen.Input && len(a.Stages) == 0 && !v.Args[i].Indexed && max(far, -far) >= turnFar &&
		(a.Stride[d] == 1 || a.Stride[d] == -1) && l.Dims[d] >= turnLong && l.Dims[inner] >= turnLong
}

// takeTurn makes v read such operands in memory order: hardware by squares of a workgroup,
// invocations of a software adapter in a loop.
func takeTurn(v *shader.Variant, k *codegen.Kernel, l *runtime.Launch, turn int, software bool) {
	v.Turn = turn
	if software {
		v.Steps = turnSteps
		return
	}
	n := 0
	for i := range v.Args {
		if n < turnMost && readAcross(v, k, l, i, turn-1) {
			v.Args[i].Turned = true
			n++
		}
	}
}
