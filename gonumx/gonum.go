package gonumx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
)

var errNil = errors.New("the matrix is nil")

// FromMatrix makes a tensor of Float64 with m's rows and columns, zeros outside of a band or a triangle
// included. An empty matrix gives a tensor of 0 by 0. Later changes of m do not change it.
// A nil matrix is an error that the tensor carries.
func FromMatrix(m mat.Matrix) *millrace.Tensor {
	d, err := millrace.Default()
	if err != nil {
		return failed("frommatrix", err)
	}
	return FromMatrixOn(d, m)
}

// FromMatrixOn is [FromMatrix] in a place. A device without Float64 is [millrace.ErrUnsupported]:
// make the tensor on another, Cast it, and move it by To.
func FromMatrixOn(p millrace.Place, m mat.Matrix) *millrace.Tensor {
	m, turned := upright(m)
	if isNil(m) {
		return failed("frommatrix", errNil)
	}
	r, c := m.Dims()
	if err := room(r, c); err != nil {
		return failed("frommatrix", err)
	}
	t := millrace.FromSliceOn(p, elements(m, r, c), r, c)
	if !turned {
		return t
	}
	view := t.T()
	hostapi.Drop(t)
	return view
}

// upright is the matrix that m is the implicit transpose of, if it is one.
func upright(m mat.Matrix) (_ mat.Matrix, turned bool) {
	for !isNil(m) {
		u, ok := m.(mat.Untransposer)
		if !ok {
			break
		}
		m, turned = u.Untranspose(), !turned
	}
	return m, turned
}

func isNil(m mat.Matrix) bool {
	if m == nil {
		return true
	}
	v := reflect.ValueOf(m)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// elements are m's, in row-major order: its own memory where they lie so.
func elements(m mat.Matrix, r, c int) []float64 {
	switch x := m.(type) {
	case mat.RawMatrixer:
		raw := x.RawMatrix()
		if raw.Stride == c || r < 2 {
			return raw.Data[:r*c]
		}
		data := make([]float64, 0, r*c)
		for i := range r {
			data = append(data, raw.Data[i*raw.Stride:i*raw.Stride+c]...)
		}
		return data
	case mat.RawVectorer:
		if raw := x.RawVector(); raw.Inc == 1 || r < 2 {
			return raw.Data[:r*c]
		}
	}
	data := make([]float64, 0, r*c)
	for i := range r {
		for j := range c {
			data = append(data, m.At(i, j))
		}
	}
	return data
}

// Matrix is a copy of a tensor's elements as a matrix: of a tensor of Float64 or Float32 (else
// [millrace.ErrDType]) with two dimensions (else [millrace.ErrShape]: Reshape gives a vector
// another). A tensor of 0 by 0 is the empty mat.Dense; gonum has no other matrices without elements, which
// are ErrShape. It runs what t needs; the error that t carries, or that running found, is returned.
func Matrix(t *millrace.Tensor) (*mat.Dense, error) {
	const op = "matrix"
	if t.Err() != nil {
		return nil, failed(op, operror.ErrNoValue, t).Err()
	}
	// One handle of what t is now, whatever Set does meanwhile.
	t = t.To(t.Stream())
	defer hostapi.Drop(t)
	s := t.Shape()
	if len(s) != 2 || s[0] != s[1] && slices.Contains(s, 0) {
		return nil, failed(op, fmt.Errorf("%w: %v is not a gonum matrix", millrace.ErrShape, s), t).Err()
	}
	data, err := values(t)
	if err != nil {
		return nil, failed(op, err, t).Err()
	}
	if len(data) == 0 {
		return new(mat.Dense), nil
	}
	return mat.NewDense(s[0], s[1], data), nil
}

// values reads floats.
func values(t *millrace.Tensor) ([]float64, error) {
	switch dt := t.DType(); dt {
	case millrace.Float64:
		return millrace.Values[float64](t)
	case millrace.Float32:
		if err := room(t.Dim(0), t.Dim(1)); err != nil {
			return nil, err
		}
		f, err := millrace.Values[float32](t)
		v := make([]float64, len(f))
		for i, x := range f {
			v[i] = float64(x)
		}
		return v, err
	default:
		return nil, fmt.Errorf("%w: the tensor is %v: want Float64 or Float32", millrace.ErrDType, dt)
	}
}

// sure is the memory that need not be compared with what there is.
const sure = 1 << 30

// room refuses what this machine has no memory for: a band may stand for more zeros than that.
func room(r, c int) error {
	s := ir.Shape{r, c}
	if err := s.Check(); err != nil {
		return fmt.Errorf("%w: %v", millrace.ErrShape, err)
	}
	n := s.Elems()
	if n <= sure/8 {
		return nil
	}
	if limit := hostmem.Limit(sure); int64(n) > limit/8 {
		return fmt.Errorf("%w: %d elements of float64, host memory is %d bytes", millrace.ErrOutOfMemory, n, limit)
	}
	return nil
}

// failed is a tensor that carries an error with the program's line, or that of an operand.
func failed(op string, err error, ts ...*millrace.Tensor) *millrace.Tensor {
	operands := make([]any, len(ts))
	for i, t := range ts {
		operands[i] = t
	}
	return hostapi.Fail(op, err, operands).(*millrace.Tensor)
}
