package npy_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/npy"
)

// dtypes are those that both NumPy and tensors have.
func dtypes(t *testing.T) []millrace.DType {
	t.Helper()
	return slices.DeleteFunc(filetest.DTypes(t), func(dt millrace.DType) bool { return dt == millrace.BFloat16 })
}

func load(t *testing.T, name string) *millrace.Tensor {
	t.Helper()
	x, err := npy.Load(filetest.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestLoadNumPy(t *testing.T) {
	for _, dt := range dtypes(t) {
		want := filetest.Ramp(t, dt, 2, 3, 4)
		for _, form := range []string{"", "_big", "_fortran"} {
			name := dt.String() + form + ".npy"
			filetest.Same(t, name, load(t, name), want)
		}
	}
	filetest.Same(t, "fortran_big.npy", load(t, "fortran_big.npy"), filetest.Ramp(t, millrace.Float32, 2, 3, 4))
	filetest.Same(t, "scalar.npy", load(t, "scalar.npy"), millrace.Scalar[float32](1.5))
	filetest.Same(t, "empty.npy", load(t, "empty.npy"), millrace.Zeros(millrace.Int32, 0, 3))
	filetest.Same(t, "one.npy", load(t, "one.npy"), millrace.Arange(millrace.Int64, 0, 5, 1))
	filetest.Same(t, "special.npy", load(t, "special.npy"),
		millrace.FromSlice([]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.Float64frombits(0x7ff8 << 48), 5e-324}))
	for _, name := range []string{"version1.npy", "version2.npy", "version3.npy"} {
		filetest.Same(t, name, load(t, name), filetest.Ramp(t, millrace.Int32, 2, 3))
	}
}

// Computing with a file in Fortran order gives what computing with the same
// array in C order does.
func TestFortranComputes(t *testing.T) {
	c, f := load(t, "float32.npy"), load(t, "float32_fortran.npy")
	filetest.Same(t, "sum", f.MulScalar(3).Sum(1), c.MulScalar(3).Sum(1))
}

// Files are, byte for byte, those that NumPy writes, whether in one piece or
// from a view.
func TestSaveAsNumPy(t *testing.T) {
	dir := t.TempDir()
	check := func(name string, x *millrace.Tensor) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := npy.Save(path, x); err != nil {
			t.Fatal(err)
		}
		got, err1 := os.ReadFile(path)
		want, err2 := os.ReadFile(filetest.Path(name))
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		var w bytes.Buffer
		if err := npy.Write(&w, x); err != nil || !bytes.Equal(w.Bytes(), want) {
			t.Errorf("%s: Write gives %q, %v", name, w.Bytes(), err)
		}
	}
	for _, dt := range dtypes(t) {
		check(dt.String()+".npy", filetest.Ramp(t, dt, 2, 3, 4))
		check(dt.String()+".npy", load(t, dt.String()+"_fortran.npy"))
	}
	check("scalar.npy", millrace.Scalar[float32](1.5))
	check("empty.npy", millrace.Zeros(millrace.Int32, 0, 3))
	check("one.npy", millrace.Arange(millrace.Int64, 0, 5, 1))
	check("version1.npy", filetest.Ramp(t, millrace.Int32, 2, 3))
}

func TestStat(t *testing.T) {
	info, err := npy.Stat(filetest.Path("fortran_big.npy"))
	if err != nil || info.DType != millrace.Float32 || !slices.Equal(info.Shape, []int{2, 3, 4}) ||
		!info.FortranOrder || !info.BigEndian || info.Bytes() != 96 {
		t.Errorf("%+v, %v", info, err)
	}
}

// Read takes one array and leaves the rest, as a file of several needs.
func TestReadInTurn(t *testing.T) {
	f, err := os.Open(filetest.Path("two.npy"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, want := range []*millrace.Tensor{filetest.Ramp(t, millrace.Int32, 3), filetest.Ramp(t, millrace.Float32, 2)} {
		x, err := npy.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		filetest.Same(t, "two.npy", x, want)
	}
	if x, err := npy.Read(f); !errors.Is(err, npy.ErrFormat) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("behind the last: %v, %v", x, err)
	}
}

// A stream that does not say how long it is gives what a file does, also where
// it comes in pieces.
func TestReadStream(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 300_000} {
		x := millrace.Arange(millrace.Float64, 0, float64(n), 1).Reshape(n, 1)
		var file bytes.Buffer
		if err := npy.Write(&file, x); err != nil {
			t.Fatal(err)
		}
		big := bytes.Replace(file.Bytes(), []byte("<f8"), []byte(">f8"), 1)
		for name, r := range map[string]io.Reader{"sized": bytes.NewReader(file.Bytes()), "stream": io.MultiReader(bytes.NewReader(file.Bytes()))} {
			got, err := npy.Read(r)
			if err != nil {
				t.Fatal(name, n, err)
			}
			filetest.Same(t, name, got, x)
		}
		got, err := npy.Read(io.MultiReader(bytes.NewReader(big)))
		if err != nil {
			t.Fatal(n, err)
		}
		for i := range n {
			b := big[len(big)-8*n+8*i:][:8]
			slices.Reverse(b)
		}
		var elems bytes.Buffer
		if _, err := got.WriteTo(&elems); err != nil || !bytes.Equal(elems.Bytes(), big[len(big)-8*n:]) {
			t.Errorf("%d big-endian elements: %v", n, err)
		}
	}
}

func TestPlaces(t *testing.T) {
	d, err := millrace.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var x *millrace.Tensor
	err = d.Scope(func(sc *millrace.Scope) (err error) {
		x, err = npy.LoadOn(sc, filetest.Path("float32_fortran.npy"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Err(); !errors.Is(err, millrace.ErrReleased) {
		t.Errorf("after its scope the tensor says %v", err)
	}
	if _, err := npy.LoadOn(nil, filetest.Path("float32.npy")); err == nil {
		t.Error("no place, and no error")
	}
	d.Close()
	if _, err := npy.LoadOn(d, filetest.Path("float32.npy")); !errors.Is(err, millrace.ErrClosed) {
		t.Errorf("on a closed device: %v", err)
	}
}

func TestUnknownDTypes(t *testing.T) {
	for name, word := range map[string]string{
		"complex": "complex", "string": "strings", "bytes": "byte strings", "record": "records", "object": "Python objects", "date": "dates", "longdouble": "width",
	} {
		path := filetest.Path(name + ".npy")
		_, err := npy.Load(path)
		if !errors.Is(err, millrace.ErrDType) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := npy.Load(filetest.Path("nine_dims.npy")); !errors.Is(err, millrace.ErrShape) {
		t.Errorf("nine dimensions: %v", err)
	}
}

func TestSaveErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := npy.Save(path, millrace.Ones(millrace.Int32, 2)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	released := millrace.Ones(millrace.Int32, 2)
	released.Release()
	for name, c := range map[string]struct {
		t    *millrace.Tensor
		want error
	}{
		"nil":      {nil, nil},
		"failed":   {millrace.Zeros(millrace.Int32, -1), millrace.ErrShape},
		"released": {released, millrace.ErrReleased},
	} {
		var w bytes.Buffer
		for _, err := range []error{npy.Save(path, c.t), npy.Write(&w, c.t)} {
			var op *millrace.OpError
			if !errors.As(err, &op) || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(op.Caller, "npy_test.go:") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if w.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, w.Len())
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file is not as it was: %v", err)
	}
	if err := npy.Save(filepath.Join(path, "x"), millrace.Ones(millrace.Int32, 2)); err == nil {
		t.Error("saved below a file")
	}
	if _, err := npy.Load(filepath.Join(t.TempDir(), "x.npy")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if npy.Write(nil, millrace.Ones(millrace.Int32, 2)) == nil {
		t.Error("no writer, and no error")
	}
	if _, err := npy.Read(nil); err == nil {
		t.Error("no reader, and no error")
	}
}

// bfloat16 cannot go into an .npy file, and says where it can.
func TestNoBFloat16(t *testing.T) {
	x, err := millrace.FromReader(strings.NewReader("\x80\x3f"), millrace.BFloat16)
	if err != nil {
		t.Fatal(err)
	}
	err = npy.Write(io.Discard, x)
	if !errors.Is(err, millrace.ErrDType) || !strings.Contains(err.Error(), "safetensors") {
		t.Errorf("error %v", err)
	}
}
