package linalg

import (
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/operror"
)

type tensor = millrace.Tensor

// function describes one of the package's functions.
type function struct {
	name    string
	results int
	check   func(shapes [][]int) error              // rejects operands by their shapes
	run     func(in []stack) ([]stack, error)       // computes on the host; may overwrite in
	back    func(in, out, d []*tensor) []*tensor    // derivatives, as autodiff.Custom takes them
	size    func(shapes [][]int) (elements [][]int) // shapes of results that are larger than operands, or nil
}

// call applies the function to tensors and registers its derivative with autodiff. It reads each
// operand once.
func (f function) call(ts ...*tensor) []*tensor {
	return autodiff.Custom(f.forward, f.back, ts...)
}

// forward computes the function on handles that only it has.
func (f function) forward(ts []*tensor) []*tensor {
	out, err := f.compute(ts)
	if err == nil {
		return out
	}
	out = []*tensor{failed(f.name, err, ts...)}
	for len(out) < f.results { // each result has its own handle
		out = append(out, failed(f.name, err, out[0]))
	}
	return out
}

func (f function) compute(ts []*tensor) ([]*tensor, error) {
	shapes := make([][]int, len(ts))
	operands := make([]any, len(ts))
	for i, t := range ts {
		if t.Err() != nil {
			return nil, operror.ErrNoValue // or the error that the tensor carries: see failed
		}
		if dt := t.DType(); dt != millrace.Float32 && dt != millrace.Float64 {
			return nil, fmt.Errorf("%w: a matrix cannot have dtype %v, only Float32 or Float64", millrace.ErrDType, dt)
		}
		if t.DType() != ts[0].DType() {
			return nil, fmt.Errorf("%w: the operands have dtypes %v and %v", millrace.ErrDType, ts[0].DType(), t.DType())
		}
		shapes[i], operands[i] = t.Shape(), t
	}
	if err := f.check(shapes); err != nil {
		return nil, err
	}
	if f.size != nil {
		for _, s := range f.size(shapes) {
			if err := room(s); err != nil {
				return nil, err
			}
		}
	}
	place, ok := hostapi.Beside(operands)
	if !ok {
		return nil, fmt.Errorf("%w: operands are on different devices: bring them together with To", millrace.ErrUnsupported)
	}
	in := make([]stack, len(ts))
	for i, t := range ts {
		var err error
		if in[i], err = read(t); err != nil {
			return nil, err
		}
	}
	res, err := f.run(in)
	if err != nil {
		return nil, err
	}
	out := make([]*tensor, len(res))
	for i, r := range res {
		out[i] = r.tensor(place.(millrace.Place), ts[0].DType())
	}
	return out, nil
}

// failed returns a tensor that carries an error, or the error of an operand.
func failed(op string, err error, ts ...*tensor) *tensor {
	operands := make([]any, len(ts))
	for i, t := range ts {
		operands[i] = t
	}
	return hostapi.Fail(op, err, operands).(*tensor)
}

func shapeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", millrace.ErrShape, fmt.Sprintf(format, args...))
}

// isMatrix rejects shapes of fewer than two dimensions.
func isMatrix(shapes [][]int) error {
	if s := shapes[0]; len(s) < 2 {
		return shapeErr("%v is not a matrix", s)
	}
	return nil
}

// isSquare rejects all but square matrices.
func isSquare(shapes [][]int) error {
	if s := shapes[0]; len(s) < 2 || s[len(s)-1] != s[len(s)-2] {
		return shapeErr("%v is not a square matrix", s)
	}
	return nil
}
