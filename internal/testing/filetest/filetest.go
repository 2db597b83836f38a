package filetest

import (
	"bytes"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
	"github.com/millrace-go/millrace/ir"
)

// Path is the path of a file of the package's testdata.
func Path(name string) string { return filepath.Join("testdata", name) }

// Ramp is the result of the function of that name in testdata/make.py.
func Ramp(t testing.TB, dt millrace.DType, shape ...int) *millrace.Tensor {
	t.Helper()
	n := millrace.Arange(millrace.Int32, 0, float64(ir.Shape(shape).Elems()), 1)
	x := n
	switch {
	case dt == millrace.Bool:
		third := n.Sub(n.DivScalar(3).MulScalar(3))
		return third.EqScalar(0).Reshape(shape...)
	case dt.IsFloat() || dt.IsSigned():
		odd := n.Sub(n.DivScalar(2).MulScalar(2))
		x = n.Mul(odd.MulScalar(-2).AddScalar(1))
	}
	x = x.Cast(dt).Reshape(shape...)
	if err := x.Eval(); err != nil {
		t.Fatal(err)
	}
	return x
}

// DTypes are those of tensors. The default device must have all of them: a missing dtype must not
// leave a file untested.
func DTypes(t testing.TB) []millrace.DType {
	t.Helper()
	d, err := millrace.Default()
	if err != nil {
		t.Fatal(err)
	}
	var list []millrace.DType
	for dt := millrace.Invalid + 1; dt < ir.NumDTypes; dt++ {
		if !dt.Tensor() {
			continue
		}
		if !d.Supports(dt) {
			t.Fatalf("the default device has no %v", dt)
		}
		list = append(list, dt)
	}
	return list
}

// Same compares the bytes of the elements, which works for every dtype.
func Same(t testing.TB, name string, got, want *millrace.Tensor) {
	t.Helper()
	var a, b bytes.Buffer
	_, err1 := got.WriteTo(&a)
	_, err2 := want.WriteTo(&b)
	if err1 != nil || err2 != nil {
		t.Fatalf("%s: %v, %v", name, err1, err2)
	}
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Errorf("%s: %v%v %v, want %v%v %v", name, got.DType(), got.Shape(), got, want.DType(), want.Shape(), want)
	}
}

// Allocated is the number of bytes that f allocates in Go's memory.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
