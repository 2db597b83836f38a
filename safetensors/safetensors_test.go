package safetensors_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/safetensors"
)

func open(t *testing.T, name string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(filetest.Path(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestOpen(t *testing.T) {
	f := open(t, "every.safetensors")
	if got := f.Names(); len(got) != 14 || got[0] != "uint64" || got[len(got)-1] != "bool" {
		t.Errorf("names %q", got)
	}
	if got := f.Metadata(); !maps.Equal(got, map[string]string{"format": "np"}) {
		t.Errorf("metadata %q", got)
	}
	read := 0
	for _, name := range f.Names() {
		info, err := f.Info(name)
		if err != nil || info.Name != name {
			t.Fatal(name, info, err)
		}
		switch name {
		case "scalar":
			x, err := f.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			filetest.Same(t, name, x, millrace.Scalar[float32](1.5))
			continue
		case "empty":
			x, err := f.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			filetest.Same(t, name, x, millrace.Zeros(millrace.Int32, 0, 3))
			continue
		}
		dt, ok := ir.ParseDType(name) // tensors here are named by their dtype
		if !ok {
			t.Fatalf("no dtype is called %s", name)
		}
		if info.DType != dt || !slices.Equal(info.Shape, []int{2, 3, 4}) || info.Bytes() != int64(24*dt.Size()) {
			t.Errorf("%+v", info)
		}
		x, err := f.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		filetest.Same(t, name, x, filetest.Ramp(t, dt, 2, 3, 4))
		read++
	}
	if want := len(filetest.DTypes(t)) - 1; read != want { // bfloat16 has its own file
		t.Errorf("%d dtypes were read, want %d", read, want)
	}
	info, _ := f.Info("float32")
	info.Shape[0] = 99
	if again, _ := f.Info("float32"); again.Shape[0] != 2 {
		t.Error("a changed Info changed the file's")
	}
	if _, err := f.Tensor("none"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("a tensor that is not there: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Tensor("float32"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestEmptyAndNames(t *testing.T) {
	f := open(t, "none.safetensors")
	if len(f.Names()) != 0 || f.Metadata() != nil {
		t.Errorf("%q, %q", f.Names(), f.Metadata())
	}
	all, err := safetensors.Load(filetest.Path("names.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "name", all["a\"\\\né😀"], filetest.Ramp(t, millrace.Int32, 2))
}

// TestBFloat16: the values of make.py, in the upper half of a float32.
func TestBFloat16(t *testing.T) {
	f := open(t, "bfloat16.safetensors")
	info, err := f.Info("x")
	if err != nil || info.Stored != "BF16" || info.Bytes() != 8 {
		t.Errorf("%+v, %v", info, err)
	}
	x, err := f.Tensor("x")
	if err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "x", x.Cast(millrace.Float32), millrace.FromSlice([]float32{0, -1, 1.5, 3.140625}))
	var w bytes.Buffer
	if err := safetensors.Write(&w, map[string]*millrace.Tensor{"x": x}, nil); err != nil {
		t.Fatal(err)
	}
	g, err := safetensors.NewFile(bytes.NewReader(w.Bytes()), int64(w.Len()))
	if err != nil {
		t.Fatal(err)
	}
	y, err := g.Tensor("x")
	if err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "again", y, x)
}

// TestOtherDTypes: a dtype that tensors do not have affects only its own tensor.
func TestOtherDTypes(t *testing.T) {
	f := open(t, "float8.safetensors")
	x, err := f.Tensor("x")
	if err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "x", x, filetest.Ramp(t, millrace.Float32, 2))
	if info, err := f.Info("y"); err != nil || info.DType != millrace.Invalid || info.Stored != "F8_E4M3" || info.Bytes() != 4 {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = f.Tensor("y")
	if !errors.Is(err, millrace.ErrDType) || !strings.Contains(err.Error(), "F8_E4M3") || !strings.Contains(err.Error(), filetest.Path("float8.safetensors")) {
		t.Errorf("error %v", err)
	}
	if _, err := safetensors.Load(filetest.Path("float8.safetensors")); !errors.Is(err, millrace.ErrDType) {
		t.Errorf("all of them: %v", err)
	}
}

func TestPlaces(t *testing.T) {
	d, err := millrace.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var all map[string]*millrace.Tensor
	err = d.Scope(func(sc *millrace.Scope) (err error) {
		all, err = safetensors.LoadOn(sc, filetest.Path("first.safetensors"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range all {
		if err := x.Err(); !errors.Is(err, millrace.ErrReleased) {
			t.Errorf("%s after its scope: %v", name, err)
		}
	}
	if _, err := safetensors.LoadOn(nil, filetest.Path("first.safetensors")); err == nil {
		t.Error("no place, and no error")
	}
}

// TestSaveAsPython: files equal those of the Python package byte for byte, however often they are
// written and whatever the tensors are views of.
func TestSaveAsPython(t *testing.T) {
	first := map[string]*millrace.Tensor{}
	for _, dt := range []millrace.DType{millrace.Bool, millrace.Float32, millrace.Int32, millrace.Float64, millrace.Int64, millrace.Uint8} {
		first[dt.String()] = filetest.Ramp(t, dt, 2, 3)
	}
	first["float32"] = filetest.Ramp(t, millrace.Float32, 2, 3).Permute(1, 0).Permute(1, 0)
	cases := map[string]map[string]*millrace.Tensor{
		"first.safetensors": first,
		"none.safetensors":  nil,
		"names.safetensors": {"a\"\\\né😀": filetest.Ramp(t, millrace.Int32, 2)},
	}
	for name, tensors := range cases {
		path := filepath.Join(t.TempDir(), name)
		for range 2 {
			if err := safetensors.Save(path, tensors, nil); err != nil {
				t.Fatal(err)
			}
			got, err1 := os.ReadFile(path)
			want, err2 := os.ReadFile(filetest.Path(name))
			if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

func TestSaveEvery(t *testing.T) {
	f := open(t, "every.safetensors")
	all := map[string]*millrace.Tensor{}
	for _, name := range f.Names() {
		x, err := f.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = x
	}
	var w bytes.Buffer
	if err := safetensors.Write(&w, all, f.Metadata()); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filetest.Path("every.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(w.Bytes(), want) {
		t.Errorf("%q, want %q", w.Bytes(), want)
	}
	g, err := safetensors.NewFile(bytes.NewReader(w.Bytes()), int64(w.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range all {
		y, err := g.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		filetest.Same(t, name, y, x)
	}
}

func TestMetadata(t *testing.T) {
	want := map[string]string{"format": "pt", "b": "\x01\u2028<>&\x7f\"", "a": "", "ключ": "значение"}
	var w bytes.Buffer
	if err := safetensors.Write(&w, nil, want); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.NewFile(bytes.NewReader(w.Bytes()), int64(w.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Metadata(); !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSaveErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.safetensors")
	one := map[string]*millrace.Tensor{"a": millrace.Ones(millrace.Int32)}
	if err := safetensors.Save(path, one, nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tensors  map[string]*millrace.Tensor
		metadata map[string]string
		want     error
	}{
		"nil":      {map[string]*millrace.Tensor{"a": nil}, nil, nil},
		"failed":   {map[string]*millrace.Tensor{"a": millrace.Zeros(millrace.Int32, -1)}, nil, millrace.ErrShape},
		"reserved": {map[string]*millrace.Tensor{"__metadata__": millrace.Ones(millrace.Int32)}, nil, nil},
		"name":     {map[string]*millrace.Tensor{"\xff": millrace.Ones(millrace.Int32)}, nil, nil},
		"key":      {one, map[string]string{"\xff": ""}, nil},
		"value":    {one, map[string]string{"x": "\xff"}, nil},
	} {
		var w bytes.Buffer
		for _, err := range []error{safetensors.Save(path, c.tensors, c.metadata), safetensors.Write(&w, c.tensors, c.metadata)} {
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			var op *millrace.OpError
			if errors.As(err, &op) && !strings.Contains(op.Caller, "safetensors_test.go:") {
				t.Errorf("%s: the caller is %q", name, op.Caller)
			}
		}
		if w.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, w.Len())
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old file is not as it was: %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
	if _, err := safetensors.Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if safetensors.Write(nil, one, nil) == nil {
		t.Error("no writer, and no error")
	}
	if _, err := safetensors.NewFile(nil, 0); err == nil {
		t.Error("no reader, and no error")
	}
}
