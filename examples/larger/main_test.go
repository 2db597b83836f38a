package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/npy"
)

// TestRun: columns of any mean and deviation have 0 and 1 in the file that is written, whose
// last part is smaller than the others.
func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "made", "scaled.npy")
	if err := run("", out, 5000, 1536); err != nil {
		t.Fatal(err)
	}
	x, err := npy.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	if x.Dim(0) != 5000 || x.Dim(1) != 64 || x.DType() != millrace.Float32 {
		t.Fatalf("%v%v", x.DType(), x.Shape())
	}
	x = x.Cast(millrace.Float64)
	for what, off := range map[string]*millrace.Tensor{"means": x.Mean(0).Abs().Max(), "squares": x.Square().Mean(0).SubScalar(1).Abs().Max()} {
		if v, err := millrace.Item[float64](off); err != nil || v > 1e-5 {
			t.Errorf("%s are off by %v, %v", what, v, err)
		}
	}
	raw, err := npy.Load(filepath.Join(filepath.Dir(out), "large.npy"))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := millrace.Item[float32](raw.Mean(0).Slice(millrace.At(63))); err != nil || v < 55 || v > 71 {
		t.Errorf("the last column of the file that was made has mean %v, %v", v, err)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npy")
	if err := npy.Save(path, millrace.Ones(millrace.Int32, 2, 3)); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{path, filepath.Join(dir, "none.npy"), dir} {
		if err := run(in, filepath.Join(dir, "out.npy"), 1, 1); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
	if err := run("", filepath.Join(dir, "out.npy"), 10, 0); err == nil {
		t.Error("parts of nothing")
	}
	if _, err := os.Stat(filepath.Join(dir, "out.npy")); err == nil {
		t.Error("a file was written")
	}
}
