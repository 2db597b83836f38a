package calls_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

type tensor = millrace.Tensor

// line returns the line that it is called from.
func line() int {
	_, _, n, _ := runtime.Caller(1)
	return n
}

// wantError checks the cause and that the error names this file and line.
func wantError(t *testing.T, name string, err, cause error, line int) {
	t.Helper()
	_, file, _, _ := runtime.Caller(1)
	wantErrorAt(t, name, err, cause, fmt.Sprintf("%s:%d", filepath.Base(file), line))
}

// wantErrorAt checks the cause, and the place that the error names.
func wantErrorAt(t *testing.T, name string, err, cause error, place string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Errorf("%s: %v, want %v", name, err, cause)
	}
	var op *millrace.OpError
	if !errors.As(err, &op) {
		t.Errorf("%s: %T is no *OpError: %v", name, err, err)
		return
	}
	if filepath.Base(op.Caller) != place {
		t.Errorf("%s: names %s, want %s: %v", name, op.Caller, place, err)
	}
	if op.Op == "" || !strings.Contains(err.Error(), op.Op) || !strings.Contains(err.Error(), op.Caller) {
		t.Errorf("%s: text lacks op or line: %v", name, err)
	}
}

func sameError(a, b error) bool {
	var x, y *millrace.OpError
	return errors.As(a, &x) && errors.As(b, &y) && x.Op == y.Op && x.Caller == y.Caller
}

// TestBadReads checks that reading with the wrong type or size is an error with the reader's
// line.
func TestBadReads(t *testing.T) {
	f := millrace.FromSlice([]float32{1, 2, 3})
	huge := millrace.Zeros(millrace.Float32).Expand(1<<29, 1<<29)
	_, err := millrace.Values[float64](f)
	wantError(t, "values", err, millrace.ErrDType, line()-1)
	_, err = millrace.Values[bool](f.Cast(millrace.Uint8))
	wantError(t, "values", err, millrace.ErrDType, line()-1)
	err = millrace.ReadInto(make([]float32, 2), f)
	wantError(t, "readinto", err, millrace.ErrShape, line()-1)
	err = millrace.ReadInto(make([]int32, 3), f)
	wantError(t, "readinto", err, millrace.ErrDType, line()-1)
	_, err = millrace.Item[float32](f)
	wantError(t, "item", err, millrace.ErrShape, line()-1)
	_, err = millrace.Item[int64](f)
	wantError(t, "item", err, millrace.ErrDType, line()-1)
	_, err = millrace.Values[float32](nil)
	wantError(t, "nil", err, nil, line()-1)
	_, err = millrace.Values[float32](new(tensor))
	wantError(t, "zero tensor", err, nil, line()-1)
	_, err = millrace.Values[float32](huge)
	wantError(t, "huge", err, millrace.ErrOutOfMemory, line()-1)
	_, err = millrace.Equal(f, nil)
	wantError(t, "equal nil", err, nil, line()-1)
	_, err = millrace.AllClose(f, f.Reshape(3, 1), 0, 0)
	wantError(t, "allclose", err, millrace.ErrShape, line()-1)
	_, err = millrace.AllClose(f, f.Cast(millrace.Float64), 0, 0)
	wantError(t, "allclose", err, millrace.ErrDType, line()-1)
	(*tensor)(nil).Release()
	(*tensor)(nil).Set(f)
	new(tensor).Release()
}

// TestLargerThanMemory checks that sizes beyond the machine's memory are errors when they run,
// not before, and do not end the program.
func TestLargerThanMemory(t *testing.T) {
	dev := openCPU(t, "cpu:memory=64MiB")
	big := millrace.ZerosOn(dev, millrace.Float64, 1<<20, 1<<20).AddScalar(1)
	at := line() - 1
	if err := big.Err(); err != nil {
		t.Errorf("recording: %v", err)
	}
	wantError(t, "eval", big.Eval(), millrace.ErrOutOfMemory, at)
	ok := millrace.OnesOn(dev, millrace.Float32, 10).Sum()
	if v, err := millrace.Item[float32](ok); err != nil || v != 10 {
		t.Errorf("afterwards: %v, %v", v, err)
	}
	over := millrace.FromSliceOn(dev, make([]float32, 20<<20))
	wantError(t, "fromslice", over.Err(), millrace.ErrOutOfMemory, line()-1)
}

// TestUseAfterRelease checks that use after Release is an error with the line of the use, whose
// text has the line of the Release.
func TestUseAfterRelease(t *testing.T) {
	x := millrace.FromSlice([]float32{1, 2, 3})
	y := x.Exp()
	x.Release()
	released := line() - 1
	z := x.Add(y)
	wantError(t, "add", z.Err(), millrace.ErrReleased, line()-1)
	if want := fmt.Sprintf("badinput_test.go:%d", released); !strings.Contains(z.Err().Error(), want) {
		t.Errorf("does not name the Release, %s: %v", want, z.Err())
	}
	_, err := millrace.Values[float32](x)
	wantError(t, "values", err, millrace.ErrReleased, line()-1)
	wantError(t, "reshape", x.Reshape(3, 1).Err(), millrace.ErrReleased, line())
	wantError(t, "to", x.To(x.Stream()).Err(), millrace.ErrReleased, line())
	wantError(t, "reshape misuse", x.Reshape(7).Err(), millrace.ErrReleased, line())
	if s := x.String(); !strings.HasPrefix(s, "<") || !strings.Contains(s, "released") {
		t.Errorf("prints %q", s)
	}
	if x.DType() != millrace.Float32 || x.Len() != 3 {
		t.Errorf("released tensor is %v%v", x.DType(), x.Shape())
	}
	x.Release() // releasing twice is harmless
	if v, err := millrace.Values[float32](y); err != nil || len(v) != 3 {
		t.Errorf("what was computed before: %v, %v", v, err)
	}
}

func TestUseAfterScope(t *testing.T) {
	dev := openCPU(t, "cpu")
	var x, y, kept *tensor
	err := dev.Scope(func(sc *millrace.Scope) error {
		x = millrace.FromSliceOn(sc, []float32{1, 2, 3})
		y = x.MulScalar(2)
		kept = sc.Keep(y.AddScalar(1))
		return nil
	})
	opened := line() - 6
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*tensor{x, y} {
		z := r.Exp()
		wantError(t, "exp", z.Err(), millrace.ErrReleased, line()-1)
		if z.Err() == nil {
			continue
		}
		if want := fmt.Sprintf("badinput_test.go:%d", opened); !strings.Contains(z.Err().Error(), want) {
			t.Errorf("does not name the scope, %s: %v", want, z.Err())
		}
	}
	if v, err := millrace.Values[float32](kept); err != nil || v[2] != 7 {
		t.Errorf("kept: %v, %v", v, err)
	}
}

// TestMakeOnEndedScope checks that making a tensor on an ended scope is an error. It names the
// line that opened the scope, and the stream reports it.
func TestMakeOnEndedScope(t *testing.T) {
	dev := openCPU(t, "cpu")
	var sc *millrace.Scope
	dev.Scope(func(s *millrace.Scope) error { sc = s; return nil })
	opened := fmt.Sprintf("badinput_test.go:%d", line()-1)
	x := millrace.FromSliceOn(dev, []float32{1, 2, 3})
	for name, r := range map[string]*tensor{
		"full":      millrace.FullOn(sc, millrace.Float32, 1, 2),
		"arange":    millrace.ArangeOn(sc, millrace.Float32, 0, 2, 1),
		"uniform":   millrace.UniformOn(sc, millrace.Float32, 0, 2),
		"fromslice": millrace.FromSliceOn(sc, []float32{1}),
		"to":        x.To(sc),
	} {
		err := r.Err()
		if !errors.Is(err, millrace.ErrClosed) || !strings.Contains(err.Error(), opened) {
			t.Errorf("%s: %v, want %v and %s", name, err, millrace.ErrClosed, opened)
		}
	}
	dev.Err()
	wantError(t, "full", millrace.FullOn(sc, millrace.Float32, 1, 2).Err(), millrace.ErrClosed, line())
	millrace.FullOn(sc, millrace.Float32, 1, 2)
	wantError(t, "the stream's", dev.Err(), millrace.ErrClosed, line()-1)
	_, err := millrace.FromReaderOn(sc, strings.NewReader("1234"), millrace.Float32)
	wantError(t, "fromreader", err, millrace.ErrClosed, line()-1)
	err = sc.Scope(func(*millrace.Scope) error { t.Error("a scope in one that has ended"); return nil })
	wantError(t, "scope", err, millrace.ErrClosed, line()-1)
	if sc.Keep(x) != x || sc.Stream() == nil {
		t.Error("Keep and Stream of an ended scope")
	}
	if v, err := millrace.Values[float32](x); err != nil || v[2] != 3 {
		t.Errorf("%v, %v", v, err)
	}
}

// TestNilOperandSaysSo checks that the error of a nil operand says so, and does not blame the
// device.
func TestNilOperandSaysSo(t *testing.T) {
	x := millrace.FromSlice([]float32{1, 2, 3})
	for name, r := range map[string]*tensor{
		"add": x.Add(nil), "zero tensor": x.Add(new(tensor)), "receiver": (*tensor)(nil).Add(x), "where": millrace.Where(nil, x, x), "matmul": x.MatMul(nil),
	} {
		if err := r.Err(); err == nil || errors.Is(err, millrace.ErrUnsupported) || !strings.Contains(err.Error(), "nil tensor") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUseAfterClose(t *testing.T) {
	dev := openCPU(t, "cpu")
	x := millrace.FromSliceOn(dev, []float32{1, 2, 3})
	y := x.Exp()
	s := dev.NewStream()
	w := millrace.FromSliceOn(s, []float32{1})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wantError(t, "closed stream", w.Exp().Err(), millrace.ErrClosed, line())
	wantError(t, "closed stream", millrace.ZerosOn(s, millrace.Float32).Err(), millrace.ErrClosed, line())
	if v, err := millrace.Values[float32](w); err != nil || v[0] != 1 {
		t.Errorf("tensor of a closed stream: %v, %v", v, err)
	}
	for range 2 {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	wantError(t, "op", x.Add(x).Err(), millrace.ErrClosed, line())
	wantError(t, "create", millrace.OnesOn(dev, millrace.Float32, 2).Err(), millrace.ErrClosed, line())
	wantError(t, "fromslice", millrace.FromSliceOn(dev, []bool{true}).Err(), millrace.ErrClosed, line())
	_, err := millrace.Values[float32](y)
	wantError(t, "values", err, millrace.ErrClosed, line()-1)
	_, err = millrace.Values[float32](x)
	wantError(t, "values", err, millrace.ErrClosed, line()-1)
	_ = x.String()
	x.Release()
	y.Release()
}

// TestForeignDevice checks that tensors of two devices do not mix, and that To brings them
// together.
func TestForeignDevice(t *testing.T) {
	a, b := openCPU(t, "cpu"), openCPU(t, "cpu:tier=0")
	x, y := millrace.FromSliceOn(a, []float32{1, 2}), millrace.FromSliceOn(b, []float32{10, 20})
	z := x.Add(y)
	wantError(t, "add", z.Err(), nil, line()-1)
	if !strings.Contains(z.Err().Error(), "To") {
		t.Errorf("does not name To: %v", z.Err())
	}
	if v, err := millrace.Values[float32](x.To(b).Add(y)); err != nil || v[1] != 22 {
		t.Errorf("after To: %v, %v", v, err)
	}
}

// TestUnseenErrors checks that the stream reports an error that was not read, once.
func TestUnseenErrors(t *testing.T) {
	dev := openCPU(t, "cpu")
	s := dev.NewStream()
	x := millrace.FromSliceOn(s, []float32{1, 2})
	if err := s.Err(); err != nil {
		t.Errorf("at first: %v", err)
	}
	x.Reshape(3)
	wantError(t, "err", s.Err(), millrace.ErrShape, line()-1)
	if err := s.Err(); err != nil {
		t.Errorf("told twice: %v", err)
	}
	x.Slice(millrace.At(9))
	wantError(t, "sync", s.Sync(context.Background()), millrace.ErrShape, line()-1)
	if err := s.Sync(context.Background()); err != nil {
		t.Errorf("told twice: %v", err)
	}
	_, err := millrace.Values[float32](x.Exp().Add(millrace.ZerosOn(s, millrace.Float32, 5)))
	wantError(t, "values", err, millrace.ErrShape, line()-1)
	if err := s.Err(); err != nil {
		t.Errorf("told twice: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := errors.Join(s.Sync(nil), s.Device().Sync(nil)); err != nil { //nolint:staticcheck // a slip that need not be a panic
		t.Errorf("no context: %v", err)
	}
	if err := s.Sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func openCPU(t testing.TB, spec string) *millrace.Device {
	t.Helper()
	d, err := millrace.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestScopeOfNothing checks that a scope without a function is an error, and does not end the
// program.
func TestScopeOfNothing(t *testing.T) {
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	if d.Scope(nil) == nil || d.NewStream().Scope(nil) == nil {
		t.Error("no function, and no error")
	}
	err = d.Scope(func(sc *millrace.Scope) error { return sc.Scope(nil) })
	if err == nil {
		t.Error("no function inside, and no error")
	}
}

// TestTwoOfOneDevice checks that the error for two devices of one name says that they are two.
func TestTwoOfOneDevice(t *testing.T) {
	d, err := millrace.Open("cpu:compile=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = millrace.Scalar[float32](1).Add(millrace.ScalarOn[float32](d, 1)).Err()
	if !errors.Is(err, millrace.ErrUnsupported) || !strings.Contains(err.Error(), "on two devices, both opened as cpu") || !strings.Contains(err.Error(), "badinput_test.go") {
		t.Errorf("%v", err)
	}
}
