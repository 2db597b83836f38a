package millrace

import (
	"context"
	"fmt"

	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/stream"
)

// Values runs what t needs and returns a private copy of its elements in
// row-major order. A T that is not t's dtype is ErrDType. The error t carries,
// or that running found, is returned in place of a value.
func Values[T Element](t *Tensor) ([]T, error) {
	if err := checkRead("values", t, dtypeOf[T]()); err != nil {
		return nil, err
	}
	n := t.Len()
	if err := checkHost(t, n); err != nil {
		return nil, err
	}
	dst := make([]T, n)
	if err := stream.Read(&t.v, bytesOf(dst)); err != nil {
		return nil, err
	}
	return dst, nil
}

// ValuesContext is [Values] for a caller who gives up when ctx is done: see
// [Tensor.EvalContext].
func ValuesContext[T Element](ctx context.Context, t *Tensor) ([]T, error) {
	if err := checkRead("values", t, dtypeOf[T]()); err != nil {
		return nil, err
	}
	if err := t.EvalContext(ctx); err != nil {
		return nil, err
	}
	return Values[T](t)
}

// ReadInto is [Values] into memory of the caller's. A dst whose length is not
// the number of elements is ErrShape. After an error dst's contents are
// undefined.
func ReadInto[T Element](dst []T, t *Tensor) error {
	if err := checkRead("readinto", t, dtypeOf[T]()); err != nil {
		return err
	}
	if len(dst) != t.Len() {
		return failure("readinto", shapeErr("%d elements into a slice of %d", t.Len(), len(dst)), t)
	}
	return stream.Read(&t.v, bytesOf(dst))
}

// Item is the element of a tensor that has exactly one, of any rank. Another
// number of elements is ErrShape, a T that is not t's dtype ErrDType.
func Item[T Element](t *Tensor) (T, error) {
	var one [1]T
	if err := checkRead("item", t, dtypeOf[T]()); err != nil {
		return one[0], err
	}
	if t.Len() != 1 {
		return one[0], failure("item", shapeErr("%v has %d elements, not 1", t.shape(), t.Len()), t)
	}
	err := stream.Read(&t.v, bytesOf(one[:]))
	return one[0], err
}

// checkRead refuses what cannot be read as dt. A tensor of unknown dtype
// carries an error, which failure finds.
func checkRead(op string, t *Tensor, dt DType) error {
	if !t.made() {
		return failure(op, errNilTensor)
	}
	if got := t.DType(); got != dt {
		return failure(op, dtypeErr("a %v tensor is not read as %v", got, dt), t)
	}
	return nil
}

const (
	// sureBytes need no look at the machine's memory.
	sureBytes = 1 << 30
	// unknownBytes is what Go can be asked for without ending the program where
	// nothing says how much memory there is: 1 GiB on 32 bits, else 256 GiB.
	unknownBytes = 1 << (30 + 8*(^uint(0)>>63))
)

// checkHost refuses to read what this machine has no memory for: an expanded
// view of one element may have more elements than any machine holds, and Go
// ends a program that asks for too much.
func checkHost(t *Tensor, n int) error {
	size := t.DType().Size()
	if n <= sureBytes/size {
		return nil
	}
	if limit := hostmem.Limit(unknownBytes); int64(n) > limit/int64(size) {
		return failure("values", fmt.Errorf("%w: %d elements of %v to read, host memory is %d bytes", ErrOutOfMemory, n, t.DType(), limit), t)
	}
	return nil
}
