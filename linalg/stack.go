package linalg

import (
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
)

// stack is a tensor of matrices in host memory, in row-major order.
type stack struct {
	shape []int
	data  []float64
	eps   float64 // for operands: epsilon of their dtype
}

func newStack(shape ...[]int) stack {
	s := append([]int{}, slices.Concat(shape...)...) // never nil, which would not be 0-d
	return stack{shape: s, data: make([]float64, ir.Shape(s).Elems())}
}

// read copies a tensor's elements; the caller owns the copy.
func read(t *tensor) (stack, error) {
	s := stack{shape: t.Shape(), eps: 0x1p-52}
	if t.DType() == millrace.Float64 {
		data, err := millrace.Values[float64](t)
		s.data = data
		return s, err
	}
	if err := room(s.shape); err != nil {
		return s, err
	}
	data, err := millrace.Values[float32](t)
	s.eps = 0x1p-23
	s.data = make([]float64, len(data))
	for i, x := range data {
		s.data[i] = float64(x)
	}
	return s, err
}

// tensor puts a result at the operands' place.
func (s stack) tensor(p millrace.Place, dt millrace.DType) *tensor {
	if dt == millrace.Float64 {
		return millrace.FromSliceOn(p, s.data, s.shape...)
	}
	data := make([]float32, len(s.data))
	for i, x := range s.data {
		data[i] = float32(x)
	}
	return millrace.FromSliceOn(p, data, s.shape...)
}

// rows and columns are those of each matrix.
func (s stack) rows() int    { return s.shape[len(s.shape)-2] }
func (s stack) columns() int { return s.shape[len(s.shape)-1] }

// batch is the shape of the stack, without that of a matrix.
func (s stack) batch() []int { return s.shape[:len(s.shape)-2] }

// at is matrix i.
func (s stack) at(i int) []float64 {
	n := s.rows() * s.columns()
	return s.data[i*n : (i+1)*n]
}

// count is the number of matrices to process: 0 if they have no elements.
func (s stack) count() int {
	n := s.rows() * s.columns()
	if n == 0 {
		return 0
	}
	return len(s.data) / n
}

// where adds the index of matrix i in the stack to an error.
func (s stack) where(i int, err error) error {
	b := s.batch()
	if len(b) == 0 {
		return err
	}
	at := make([]int, len(b))
	for d := len(b) - 1; d >= 0; d-- {
		at[d] = i % b[d]
		i /= b[d]
	}
	return fmt.Errorf("%w: it is matrix %v of the stack", err, at)
}

// each calls f for every matrix of the stack, on several cores if work, the approximate number of
// operations for one matrix, makes that worthwhile. It returns the error of the first failing
// matrix.
func (s stack) each(work int, f func(i int) error) error {
	const alone = 1 << 17 // fewer operations are not worth a goroutine
	n := s.count()
	one := func(i int) (err error) {
		defer operror.Recover("lapack", &err)
		return f(i)
	}
	workers := min(n, goruntime.GOMAXPROCS(0))
	if workers < 2 || work < alone/n {
		for i := range n {
			if err := one(i); err != nil {
				return s.where(i, err)
			}
		}
		return nil
	}
	var (
		next  atomic.Int64
		first = n // index of the first failing matrix
		cause error
		mu    sync.Mutex
		wg    sync.WaitGroup
	)
	for range workers {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := one(i); err != nil {
					mu.Lock()
					if i < first {
						first, cause = i, err
					}
					mu.Unlock()
					next.Store(int64(n)) // smaller indices are already being processed
				}
			}
		})
	}
	wg.Wait()
	if cause != nil {
		return s.where(first, cause)
	}
	return nil
}

// cubic is the work of factoring one matrix.
func (s stack) cubic() int {
	m, n := s.rows(), s.columns()
	return m * n * min(m, n)
}

// finite rejects NaN and infinities.
func finite(x []float64) error {
	for _, v := range x {
		if math.IsNaN(v - v) {
			return ErrNotFinite
		}
	}
	return nil
}

// sure is the size in bytes of a result up to which room does not compare with the machine's memory.
const sure = 1 << 30

// room rejects shapes that do not fit in this machine's memory as float64: Go would end the
// program.
func room(shape []int) error {
	s := ir.Shape(shape)
	if err := s.Check(); err != nil {
		return shapeErr("%v", err)
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
