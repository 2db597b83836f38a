package calls_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/millrace-go/millrace"
)

// manyElems is more than one piece, and its last piece is not full.
const manyElems = 1<<18 + 12345

func TestFromReader(t *testing.T) {
	for _, n := range []int{0, 1, 7, manyElems} {
		want := millrace.Arange(millrace.Float64, 0, float64(n), 1)
		var file bytes.Buffer
		if w, err := want.WriteTo(&file); err != nil || w != int64(8*n) || file.Len() != 8*n {
			t.Fatalf("%d elements: wrote %d bytes (says %d): %v", n, file.Len(), w, err)
		}
		file.WriteString("next")
		got, err := millrace.FromReader(iotest.OneByteReader(io.MultiReader(&file)), millrace.Float64, n)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := millrace.Equal(got, want); !same || err != nil {
			t.Errorf("%d elements: %v, %v", n, same, err)
		}
		if file.String() != "next" {
			t.Errorf("%d elements: read beyond the last one", n)
		}
	}
}

func TestFromReaderLittleEndianAndBools(t *testing.T) {
	x, err := millrace.FromReader(strings.NewReader("\x01\x02\x03\x04"), millrace.Int32)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := millrace.Item[int32](x); v != 0x04030201 || err != nil {
		t.Errorf("%#x, %v", v, err)
	}
	b, err := millrace.FromReader(strings.NewReader("\x00\x01\x02\xff"), millrace.Bool, 4)
	if err != nil {
		t.Fatal(err)
	}
	// The engine counts them, and assumes that the memory has only 0 and 1.
	if v, err := millrace.Item[int32](b.Cast(millrace.Int32).Sum()); v != 3 || err != nil {
		t.Errorf("%d true, %v", v, err)
	}
}

// TestWriteToViews checks that the elements of any view are written in order.
func TestWriteToViews(t *testing.T) {
	x := millrace.Arange(millrace.Int32, 0, 24, 1).Reshape(2, 3, 4)
	if err := x.Eval(); err != nil {
		t.Fatal(err)
	}
	views := map[string]*millrace.Tensor{
		"whole": x, "rows": x.Slice(millrace.R(1, 2)), "columns": x.Slice(millrace.All, millrace.All, millrace.R(1, 3)), "permuted": x.Permute(2, 0, 1),
		"flipped": x.Flip(0), "expanded": x.Slice(millrace.All, millrace.R(0, 1)).Expand(2, 5, 4), "pending": x.AddScalar(1), "empty": x.Slice(millrace.R(1, 1)),
		"empty permuted": x.Slice(millrace.R(1, 1)).Permute(2, 1, 0), "a view of nothing": millrace.Zeros(millrace.Int32, 0).Reshape(0, 1),
	}
	for name, v := range views {
		values, err := millrace.Values[int32](v)
		if err != nil {
			t.Fatal(name, err)
		}
		var want []byte
		for _, e := range values {
			want = append(want, byte(e), byte(e>>8), byte(e>>16), byte(e>>24))
		}
		var got bytes.Buffer
		if n, err := v.WriteTo(&got); err != nil || n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s: wrote %x, want %x: %d, %v", name, got.Bytes(), want, n, err)
		}
	}
}

func TestRawErrors(t *testing.T) {
	var nilTensor *millrace.Tensor
	broken := errors.New("broken")
	released := millrace.Ones(millrace.Int32, 2)
	released.Release()
	write := func(x *millrace.Tensor, w io.Writer) error {
		_, err := x.WriteTo(w)
		return err
	}
	read := func(r io.Reader, dt millrace.DType, shape ...int) error {
		x, err := millrace.FromReader(r, dt, shape...)
		if (x == nil) != (err != nil) {
			t.Errorf("tensor %v with error %v", x, err)
		}
		return err
	}
	cases := map[string]struct{ got, want error }{
		"short":           {read(strings.NewReader("12345"), millrace.Int32, 2), io.ErrUnexpectedEOF},
		"nothing":         {read(strings.NewReader(""), millrace.Int32, 2), io.ErrUnexpectedEOF},
		"between pieces":  {read(strings.NewReader(strings.Repeat("x", 1<<20)), millrace.Uint8, 1<<21), io.ErrUnexpectedEOF},
		"reader":          {read(iotest.ErrReader(broken), millrace.Int32, 2), broken},
		"no reader":       {read(nil, millrace.Int32, 2), nil},
		"dtype":           {read(strings.NewReader(""), millrace.Invalid), millrace.ErrDType},
		"negative":        {read(strings.NewReader(""), millrace.Int32, -1), millrace.ErrShape},
		"too many":        {read(strings.NewReader(""), millrace.Int32, 1<<31-1, 1<<31-1, 1<<31-1), millrace.ErrShape},
		"nil":             {write(nilTensor, io.Discard), nil},
		"released":        {write(released, io.Discard), millrace.ErrReleased},
		"failed":          {write(millrace.Zeros(millrace.Int32, -1), io.Discard), millrace.ErrShape},
		"no writer":       {write(millrace.Ones(millrace.Int32, 2), nil), nil},
		"writer":          {write(millrace.Ones(millrace.Int32, 2), brokenWriter{broken}), broken},
		"writer of views": {write(millrace.Arange(millrace.Int32, 0, 9, 1).Slice(millrace.R(0, 9, 2)), brokenWriter{broken}), broken},
	}
	for name, c := range cases {
		var op *millrace.OpError
		if !errors.As(c.got, &op) || c.want != nil && !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want an OpError of %v", name, c.got, c.want)
			continue
		}
		if !strings.Contains(op.Caller, "raw_test.go:") {
			t.Errorf("%s: the caller is %q", name, op.Caller)
		}
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func ExampleFromReader() {
	file := strings.NewReader("\x00\x00\x80\x3f\x00\x00\x00\x40") // two float32, little-endian
	x, err := millrace.FromReader(file, millrace.Float32, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x)
	// Output: [1. 2.]
}

func ExampleTensor_WriteTo() {
	x := millrace.FromSlice([]uint8("tensors\n"))
	if _, err := x.WriteTo(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output: tensors
}

// TestRawErrorsAreSeen checks that the stream does not report an error that a call has returned.
func TestRawErrorsAreSeen(t *testing.T) {
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	s := d.NewStream()
	if _, err := millrace.FromReaderOn(s, strings.NewReader(""), millrace.Int32, 2); err == nil {
		t.Error("no error")
	}
	if err := s.Err(); err != nil {
		t.Errorf("the stream reports %v", err)
	}
}
