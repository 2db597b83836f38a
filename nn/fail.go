package nn

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/handle"
)

var errNil = errors.New("nil tensor")

// fail is a tensor that carries an error of a layer or a loss, with the line of the
// program, or the error that an operand carries already.
func fail(name string, err error, ts ...*millrace.Tensor) *millrace.Tensor {
	operands := make([]any, len(ts))
	for i, t := range ts {
		operands[i] = t
		if t == nil {
			err = errNil
		}
	}
	return handle.Fail(name, err, operands).(*millrace.Tensor)
}

func shapeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", millrace.ErrShape, fmt.Sprintf(format, args...))
}

func dtypeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", millrace.ErrDType, fmt.Sprintf(format, args...))
}

// drop releases what a layer made and nobody else has: what is computed from weights alone
// belongs to no scope, and would be there until Go's collector comes.
func drop(ts ...*millrace.Tensor) {
	for _, t := range ts {
		if t != nil {
			handle.Drop(t)
		}
	}
}
