package cpu

import (
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

type (
	operand    = operands.Operand
	indexFault = operands.IndexFault
)

// args holds the input of an evaluation, and what only some evaluators need.
type args struct {
	operands.Args
	room   *interp.Room // of this thread, for the interpreter
	merged *mergedCache // of this thread and launch, for machine code; nil: not used
	tape   *tape        // records the work; usually nil
}
