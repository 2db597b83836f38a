package millrace

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/plans"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/stream"
)

// Mistakes of the program. They come wrapped in an [*OpError], which names the
// op and the caller's line: test for them with errors.Is.
var (
	// ErrShape: shapes that do not fit together, an axis that is not there, a
	// size that cannot be.
	ErrShape = ir.ErrShape
	// ErrIndex: an index, read from a tensor, that is out of range.
	ErrIndex = ir.ErrIndex
	// ErrDType: operands of different dtypes, of one that the op does not take,
	// or a scalar that the dtype cannot hold. Nothing is promoted: use Cast.
	ErrDType = ir.ErrDType
	// ErrReleased: a tensor used after Release or after the end of its Scope.
	ErrReleased = operror.ErrReleased
	// ErrClosed: a device or stream used after Close, or a Scope after its end.
	ErrClosed = runtime.ErrClosed
	// ErrNoPlans: [ExportPlans] found nothing to write. It comes as it is.
	ErrNoPlans = plans.ErrNoPlans
)

// Limits of the machine.
var (
	// ErrUnsupported: the device lacks what the op needs, such as float64 on
	// WebGPU.
	ErrUnsupported = ir.ErrUnsupported
	// ErrNoDriver: no driver of that name is linked in, or it cannot start
	// here. The text says what to import or install.
	ErrNoDriver = runtime.ErrNoDriver
	// ErrOutOfMemory: not enough memory, or Options.MemoryLimit reached, after
	// everything that could be freed was freed.
	ErrOutOfMemory = runtime.ErrOutOfMemory
	// ErrDeviceLost: the device vanished. Other devices are not affected.
	ErrDeviceLost = runtime.ErrDeviceLost
)

// OpError is what went wrong with one op. Its fields are Op, the op's name;
// Caller, the file:line of the first caller outside this module's library
// packages; Shapes, those of the operands; and Err, the cause.
type OpError = operror.Error

// CompileError is a kernel that a compiler refused. Such a kernel runs another
// way, so users meet it only in trace hooks. Its fields are Kernel, Source,
// Log (what the compiler said) and Err.
type CompileError = runtime.CompileError

var (
	errNilPlace  = errors.New("nil place, or one that was not opened")
	errNilTensor = operror.ErrNoValue
	errNilFunc   = errors.New("nil function")
	errNilReader = errors.New("nil reader")
	errNilWriter = errors.New("nil writer")

	errFollowed = fmt.Errorf("%w: an argument is watched by autodiff, and a Recording is not differentiated: take gradients in its function", ErrUnsupported)
)

func shapeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrShape, fmt.Sprintf(format, args...))
}

func dtypeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDType, fmt.Sprintf(format, args...))
}

// failed is a tensor that carries err, or the error that an operand carries
// already: the first cause is the one to tell.
func failed(op string, err error, ts ...*Tensor) *Tensor {
	r := new(Tensor)
	fail(&r.v, op, err, ts)
	return r
}

// failures are the results of an op that has several, where it fails: bad, which carries
// the error, and other handles that do. What Set does to one leaves the others alone.
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

// failure is failed for calls that return an error.
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
