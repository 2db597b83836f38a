package nn

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
)

var errNil = errors.New("nil tensor")

// fail returns a tensor that carries the error of a layer or a loss with the line of the program,
// or the error of an operand if one carries an error already.
func fail(name string, err error, ts ...*millrace.Tensor) *millrace.Tensor {
	operands := make([]any, len(ts))
	for i, t := range ts {
		operands[i] = t
		if t == nil {
			err = errNil
		}
	}
	return hostapi.Fail(name, err, operands).(*millrace.Tensor)
}

func shapeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", millrace.ErrShape, fmt.Sprintf(format, args...))
}

func dtypeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", millrace.ErrDType, fmt.Sprintf(format, args...))
}

// drop releases temporary tensors of a layer. Tensors computed from weights alone belong to no
// scope and would otherwise stay until Go's collector runs.
func drop(ts ...*millrace.Tensor) {
	for _, t := range ts {
		if t != nil {
			hostapi.Drop(t)
		}
	}
}
