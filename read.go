package millrace

import (
	"context"
	"fmt"

	"github.com/millrace-go/millrace/internal/hostmem"
	"github.com/millrace-go/millrace/stream"
)

// Values runs the ops that t needs and returns a copy of its elements in row-major order. A T
// that is not t's dtype is ErrDType. It returns the error that t carries, or that running finds,
// in place of elements.
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

// ValuesContext is [Values] with a limit: it returns when ctx is done. See [Tensor.EvalContext].
func ValuesContext[T Element](ctx context.Context, t *Tensor) ([]T, error) {
	t, err := evaluated[T](ctx, "values", t)
	defer done(t)
	if err != nil {
		return nil, err
	}
	return Values[T](t)
}

// evaluated returns a handle of t's present value, in memory unless ctx was done first.
func evaluated[T Element](ctx context.Context, op string, t *Tensor) (*Tensor, error) {
	t = still(t)
	if _, err := checkRead(op, t, dtypeOf[T]()); err != nil {
		return t, err
	}
	return t, t.EvalContext(ctx)
}

// ReadInto is [Values] into the caller's memory. A dst whose length is not the number of elements
// is ErrShape. After an error, dst's contents are undefined.
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

// ReadIntoContext is [ReadInto] with a limit: it returns when ctx is done, and dst is not
// written, not even later. See [Tensor.EvalContext].
func ReadIntoContext[T Element](ctx context.Context, dst []T, t *Tensor) error {
	t, err := evaluated[T](ctx, "readinto", t)
	defer done(t)
	if err != nil {
		return err
	}
	return ReadInto(dst, t)
}

// Item returns the element of a tensor that has exactly one, of any rank. Another number of
// elements is ErrShape; a T that is not t's dtype is ErrDType.
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

// ItemContext is [Item] with a limit: it returns when ctx is done. See [Tensor.EvalContext].
func ItemContext[T Element](ctx context.Context, t *Tensor) (T, error) {
	t, err := evaluated[T](ctx, "item", t)
	defer done(t)
	if err != nil {
		var none T
		return none, err
	}
	return Item[T](t)
}

// checkRead returns t's present value, or an error if it cannot be read as dt. A tensor of
// unknown dtype carries an error, which failure returns.
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
	// sureBytes is so little memory that it needs no check.
	sureBytes = 1 << 30
	// unknownBytes is how much may be requested from Go if the machine's memory is unknown,
	// without ending the program: 1 GiB on 32 bits, else 256 GiB.
	unknownBytes = 1 << (30 + 8*(^uint(0)>>63))
)

// checkHost refuses to read a tensor that this machine's memory cannot hold. An expanded view of
// one element may have more elements than any machine holds, and Go ends a program that allocates
// too much.
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
