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
	for {
		is, err := checkRead("values", t, dtypeOf[T]())
		if err != nil {
			return nil, err
		}
		n := is.Shape().Elems()
		if err := checkHost(t, is.DType(), n); err != nil {
			return nil, err
		}
		dst := make([]T, n)
		if same, err := stream.ReadAs(&t.v, is, bytesOf(dst)); same {
			if err != nil {
				dst = nil
			}
			return dst, err
		}
	}
}

// ValuesContext is [Values] for a caller who gives up when ctx is done: see
// [Tensor.EvalContext].
func ValuesContext[T Element](ctx context.Context, t *Tensor) ([]T, error) {
	t, err := evaluated[T](ctx, "values", t)
	defer done(t)
	if err != nil {
		return nil, err
	}
	return Values[T](t)
}

// evaluated is a handle of what t is now, in memory unless ctx was done first.
func evaluated[T Element](ctx context.Context, op string, t *Tensor) (*Tensor, error) {
	t = still(t)
	if _, err := checkRead(op, t, dtypeOf[T]()); err != nil {
		return t, err
	}
	return t, t.EvalContext(ctx)
}

// ReadInto is [Values] into memory of the caller's. A dst whose length is not
// the number of elements is ErrShape. After an error dst's contents are
// undefined.
func ReadInto[T Element](dst []T, t *Tensor) error {
	for {
		is, err := checkRead("readinto", t, dtypeOf[T]())
		if err != nil {
			return err
		}
		if n := is.Shape().Elems(); len(dst) != n {
			return failure("readinto", shapeErr("%d elements into a slice of %d", n, len(dst)), t)
		}
		if same, err := stream.ReadAs(&t.v, is, bytesOf(dst)); same {
			return err
		}
	}
}

// ReadIntoContext is [ReadInto] for a caller who gives up when ctx is done: see
// [Tensor.EvalContext]. dst is not written then, nor later.
func ReadIntoContext[T Element](ctx context.Context, dst []T, t *Tensor) error {
	t, err := evaluated[T](ctx, "readinto", t)
	defer done(t)
	if err != nil {
		return err
	}
	return ReadInto(dst, t)
}

// Item is the element of a tensor that has exactly one, of any rank. Another
// number of elements is ErrShape, a T that is not t's dtype ErrDType.
func Item[T Element](t *Tensor) (T, error) {
	var one [1]T
	for {
		is, err := checkRead("item", t, dtypeOf[T]())
		if err != nil {
			return one[0], err
		}
		if n := is.Shape().Elems(); n != 1 {
			return one[0], failure("item", shapeErr("%v has %d elements, not 1", is.Shape(), n), t)
		}
		if same, err := stream.ReadAs(&t.v, is, bytesOf(one[:])); same {
			return one[0], err
		}
	}
}

// ItemContext is [Item] for a caller who gives up when ctx is done: see
// [Tensor.EvalContext].
func ItemContext[T Element](ctx context.Context, t *Tensor) (T, error) {
	t, err := evaluated[T](ctx, "item", t)
	defer done(t)
	if err != nil {
		var none T
		return none, err
	}
	return Item[T](t)
}

// checkRead refuses what cannot be read as dt, and tells what t is now. A tensor of
// unknown dtype carries an error, which failure finds.
func checkRead(op string, t *Tensor, dt DType) (is *stream.Value, err error) {
	if !t.made() {
		return nil, failure(op, errNilTensor)
	}
	is = t.v.Now()
	if got := is.DType(); got != dt {
		return nil, failure(op, dtypeErr("a %v tensor is not read as %v", got, dt), t)
	}
	return is, nil
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
func checkHost(t *Tensor, dt DType, n int) error {
	size := dt.Size()
	if n <= sureBytes/size {
		return nil
	}
	if limit := hostmem.Limit(unknownBytes); int64(n) > limit/int64(size) {
		return failure("values", fmt.Errorf("%w: %d elements of %v to read, host memory is %d bytes", ErrOutOfMemory, n, dt, limit), t)
	}
	return nil
}
