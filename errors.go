package millrace

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/stream"
)

// These errors are mistakes of the program. They come wrapped in an [*OpError], which names the
// op and the caller's line: test for them with errors.Is.
var (
	// ErrShape: shapes that do not fit together, an axis that does not exist, or an impossible
	// size.
	ErrShape = ir.ErrShape
	// ErrIndex: an index in a tensor is out of range.
	ErrIndex = ir.ErrIndex
	// ErrDType: operands of different dtypes, a dtype that the op does not take, or a scalar that
	// the dtype cannot hold. Nothing is promoted: use Cast.
	ErrDType = ir.ErrDType
	// ErrReleased: a tensor was used after Release or after the end of its Scope.
	ErrReleased = operror.ErrReleased
	// ErrClosed: a device or stream was used after Close, or a Scope after its end.
	ErrClosed = runtime.ErrClosed
	// ErrNoPlans: [ExportPlans] found nothing to write. It is not wrapped.
	ErrNoPlans = planstore.ErrNoPlans
)

// These errors are limits of the machine.
var (
	// ErrUnsupported: the device lacks what the op needs, such as float64 on WebGPU.
	ErrUnsupported = ir.ErrUnsupported
	// ErrNoDriver: the program has no driver of that name, or the driver cannot start here. The
	// text says what to import or install.
	ErrNoDriver = runtime.ErrNoDriver
	// ErrOutOfMemory: there is not enough memory, or Options.MemoryLimit is reached, even after
	// everything that could be freed was freed.
	ErrOutOfMemory = runtime.ErrOutOfMemory
	// ErrDeviceLost: the device is gone. Other devices are not affected.
	ErrDeviceLost = runtime.ErrDeviceLost
)

// OpError describes why one op failed. Its fields are Op, the op's name; Caller, the file:line of
// the first caller outside this module's library packages; Shapes, the operands' shapes; and Err,
// the cause.
type OpError = operror.Error

// CompileError describes a kernel that a compiler refused. Such a kernel runs another way, so
// programs see this error only in trace hooks. Its fields are Kernel, Source, Log (the compiler's
// output) and Err.
type CompileError = runtime.CompileError

var (
	errNilPlace  = errors.New("the place is nil or was not opened")
	errNilTensor = operror.ErrNoValue
	errNilFunc   = errors.New("the function is nil")
	errNilReader = errors.New("the reader is nil")
	errNilWriter = errors.New("the writer is nil")

	errFollowed = fmt.Errorf("%w: an input is watched by autodiff, and a Recording is not differentiated: take gradients in its function", ErrUnsupported)
)

func shapeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrShape, fmt.Sprintf(format, args...))
}

func dtypeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDType, fmt.Sprintf(format, args...))
}

// failed returns a tensor that carries err. If an operand carries an error already, the tensor
// carries that one, because the first cause is the useful one.
func failed(op string, err error, ts ...*Tensor) *Tensor {
	r := new(Tensor)
	fail(&r.v, op, err, ts)
	return r
}

// failures returns the results of a failed op that has several results: bad, which carries the
// error, and other handles that carry it too. The handles are separate, so a Set on one does not
// change the others.
func failures(op string, n int, bad *Tensor) []*Tensor {
	all := []*Tensor{bad}
	for len(all) < n {
		all = append(all, failed(op, errNilTensor, bad))
	}
	return all
}

// twoFailures is failures for an op with two results.
func twoFailures(op string, bad *Tensor) (a, b *Tensor) {
	all := failures(op, 2, bad)
	return all[0], all[1]
}

// failure is failed for calls that return an error instead of a tensor.
func failure(op string, err error, ts ...*Tensor) error {
	var v stream.Value
	fail(&v, op, err, ts)
	return v.Err()
}

func fail(dst *stream.Value, op string, err error, ts []*Tensor) {
	args := make([]stream.Arg, 0, len(ts))
	for _, t := range ts {
		if t.made() {
			args = append(args, stream.Arg{V: &t.v})
		}
	}
	for _, a := range args {
		if e := a.V.Cause(); e != nil {
			err = e
			break
		}
	}
	stream.Fail(dst, stream.Place{}, op, err, args)
}
